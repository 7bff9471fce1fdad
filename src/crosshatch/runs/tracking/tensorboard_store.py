"""A run for TensorBoard: event files in a folder, with scalars by round, and the settings for its tab of hparams."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from crosshatch.errors import RunError
from crosshatch.report.measures import COST_KEYS
from crosshatch.runs.tracking.tracker import Account
from crosshatch.runs.watcher import Outcome

_STATUS = {
    "finished": "STATUS_SUCCESS",
    "stopped": "STATUS_RUNNING",  # it may go on
    "diverged": "STATUS_FAILURE",
    "failed": "STATUS_FAILURE",
}


class TensorBoardStore:
    """Event files of one run; a process that goes on with it adds one, as TensorBoard expects."""

    def __init__(self, folder: Path, account: Account) -> None:
        from torch.utils.tensorboard import SummaryWriter  # late, here and below: few have what it needs

        self._folder = folder
        with self._complaining():
            self.written: dict[str, int] = {}
            if folder.is_dir():
                from tensorboard.backend.event_processing.event_accumulator import SCALARS, EventAccumulator

                events = EventAccumulator(str(folder), size_guidance={SCALARS: 0})  # 0: all of them
                events.Reload()
                last = {tag: max(event.step for event in events.Scalars(tag)) for tag in events.Tags()[SCALARS]}
                self.written = {tag.partition("/")[2]: step for tag, step in last.items()}
            self._writer: Any = SummaryWriter(str(folder))
            if not self.written:
                self._introduce(account)

    def write(self, round: int, figures: Mapping[str, float]) -> None:
        """On the disk at once: what a killed run had is complete."""
        with self._complaining():
            for name, value in figures.items():
                self._writer.add_scalar(_tag(name), value, round)
            self._writer.flush()

    def close(self, outcome: Outcome) -> None:
        if not self._folder.is_dir():  # the run was given up, and nothing of it is left
            return
        with self._complaining():
            why = outcome.summary.get("diverged", {}).get("why", outcome.why)
            self._writer.add_text("state", f"{outcome.state}: {why}" if why else outcome.state, outcome.round)
            if outcome.summary:
                self._writer.add_text("summary", _block(json.dumps(outcome.summary, indent=2)), outcome.round)
            self._writer.file_writer.add_summary(_session_end(_STATUS[outcome.state]))
            self._writer.close()

    def _introduce(self, account: Account) -> None:
        from torch.utils.tensorboard.summary import hparams

        said = {**account.settings, **{f"tag.{name}": value for name, value in account.tags.items()}}
        messages: Any = hparams  # which has no types
        for summary in messages(said, dict.fromkeys(map(_tag, account.metrics)))[:2]:  # the third: it has ended
            self._writer.file_writer.add_summary(summary)
        self._writer.add_text("config", _block(account.config), 0)

    @contextmanager
    def _complaining(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise RunError(
                f"run.track: TensorBoard's files in {self._folder} cannot be written ({error.strerror or error}): free "
                "some space, or leave tensorboard out"
            ) from None


def _tag(name: str) -> str:
    """What comes before the slash is a heading in TensorBoard."""
    return f"cost/{name}" if name in COST_KEYS else f"metrics/{name}"


def _block(text: str) -> str:
    """Verbatim in Markdown, as which texts are shown."""
    return "".join(f"    {line}\n" for line in text.splitlines())


def _session_end(status: str) -> Any:
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.plugins.hparams import api_pb2, metadata, plugin_data_pb2

    ended = plugin_data_pb2.SessionEndInfo(status=api_pb2.Status.Value(status))
    about = plugin_data_pb2.HParamsPluginData(session_end_info=ended, version=metadata.PLUGIN_DATA_VERSION)
    value = Summary.Value(tag=metadata.SESSION_END_INFO_TAG, metadata=metadata.create_summary_metadata(about))
    return Summary(value=[value])
