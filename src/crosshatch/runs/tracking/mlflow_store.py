"""A run for MLflow: in a folder of the run directory, or where MLFLOW_TRACKING_URI says."""

import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from crosshatch.errors import RunError, one_line
from crosshatch.runs.files import write_whole
from crosshatch.runs.tracking.tracker import Account
from crosshatch.runs.watcher import Outcome

_ADDRESS, _EXPERIMENT = "MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME"
_STATUS = {"finished": "FINISHED", "stopped": "KILLED", "diverged": "FAILED", "failed": "FAILED"}
# Parameters of a request, and letters of a key and of a value: what servers of any version take.
_MOST_PARAMS, _LONGEST_KEY, _LONGEST = 100, 250, 500
_ODD = re.compile(r"[^\w. -]")  # what a key may not have, though the name of a silo in it may
# Unless the environment says otherwise: MLflow would wait many minutes for a server that is gone.
_PATIENCE = {"MLFLOW_HTTP_REQUEST_MAX_RETRIES": "2", "MLFLOW_HTTP_REQUEST_TIMEOUT": "20"}
# The folder is ours, and a file per figure is all that a run needs; MLflow wants a database by default.
_OWN = {"MLFLOW_ALLOW_FILE_STORE": "true"}


class MlflowStore:
    """A run of an experiment. The run directory keeps its id for each address, so that it can go on."""

    def __init__(self, folder: Path, account: Account) -> None:
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # it would report its use to its makers
        import mlflow  # late, here and below: few have it
        from mlflow.exceptions import MlflowException

        self._error: type[Exception] = MlflowException
        self._folder = folder
        self._address = os.environ.get(_ADDRESS) or folder.resolve().as_uri()
        self._is_own = not os.environ.get(_ADDRESS)
        with self._asking():
            self._client: Any = mlflow.MlflowClient(self._address)
            kept = folder.with_name("mlflow_runs.json")
            runs: dict[str, str] = json.loads(kept.read_bytes()) if kept.is_file() else {}
            known = runs.get(self._public)
            self._run = known or self._begin(account)
            names = self._client.get_run(self._run).data.metrics if known else ()
            history = {name: self._client.get_metric_history(self._run, name) for name in names}
            self.written = {name: max(one.step for one in many) for name, many in history.items()}
            if not known:
                kept.parent.mkdir(parents=True, exist_ok=True)
                write_whole(kept, json.dumps({**runs, self._public: self._run}).encode())
            self._client.update_run(self._run, status="RUNNING")
            self._client.set_tag(self._run, "crosshatch.state", "running")

    def write(self, round: int, figures: Mapping[str, float]) -> None:
        from mlflow.entities import Metric

        now = time.time_ns() // 1_000_000
        with self._asking():
            self._client.log_batch(
                self._run, [Metric(name, float(value), now, round) for name, value in figures.items()]
            )

    def close(self, outcome: Outcome) -> None:
        """The status, why, the best of each metric, and the summary as a file."""
        if self._is_own and not self._folder.is_dir():  # the run was given up, and nothing of it is left
            return
        for name, best in outcome.summary.get("best", {}).items():
            if self.written.get(f"best_{name}", -1) < best["round"]:
                self.write(best["round"], {f"best_{name}": best["value"]})
        with self._asking():
            self._client.set_tag(self._run, "crosshatch.state", outcome.state)
            why = outcome.summary.get("diverged", {}).get("why", outcome.why)
            self._client.set_tag(self._run, "crosshatch.why", why[:_LONGEST])
            if outcome.summary:
                self._client.log_dict(self._run, outcome.summary, "summary.json")
            self._client.set_terminated(self._run, _STATUS[outcome.state])

    def _begin(self, account: Account) -> str:
        from mlflow.entities import Param

        name = os.environ.get(_EXPERIMENT) or "crosshatch"
        tags = {f"crosshatch.{key}": value for key, value in account.tags.items()}
        run: str = self._client.create_run(self._experiment(name), run_name=account.name, tags=tags).info.run_id
        settings = {_ODD.sub("_", key)[:_LONGEST_KEY]: value for key, value in account.settings.items()}
        params = [Param(key, str(value)[:_LONGEST]) for key, value in settings.items()]
        for first in range(0, len(params), _MOST_PARAMS):
            self._client.log_batch(run, params=params[first : first + _MOST_PARAMS])
        self._client.log_text(run, account.config, "config.toml")
        return run

    def _experiment(self, name: str) -> str:
        found = self._client.get_experiment_by_name(name)
        if found is None:
            try:
                created: str = self._client.create_experiment(name)
            except self._error:  # another run of a sweep was faster
                found = self._client.get_experiment_by_name(name)
                if found is None:
                    raise
            else:
                return created
        number: str = found.experiment_id
        return number

    @property
    def _public(self) -> str:
        """The address without the name and the password that may be in it; the run directory may be moved."""
        if self._is_own:
            return "the run directory"
        parts = urlsplit(self._address)
        return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """While MLflow is asked; what it complains of becomes one line."""
        before = dict(os.environ)
        os.environ.update({**_PATIENCE, **(_OWN if self._is_own else {}), **before})
        try:
            yield
        except (self._error, OSError, ValueError) as error:
            raise RunError(
                f"run.track: MLflow at {self._public} cannot be used ({one_line(error)}): check {_ADDRESS}, or leave "
                "mlflow out"
            ) from None
        finally:
            for name in {*_PATIENCE, *_OWN} - set(before):
                os.environ.pop(name, None)
