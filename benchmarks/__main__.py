"""Race local steps against central training and the naive loop, and see what many clients cost."""

from __future__ import annotations

import argparse
import os
from functools import partial
from pathlib import Path

from benchmarks import hospitals, race, scale, workers
from benchmarks.cases import CASES, Case
from benchmarks.runtime import race as runtime
from benchmarks.runtime.settings import SETTINGS


def main() -> None:
    """Print the tables, line by line as they come; `--out` writes them to a file as well."""
    names = [case.name for case in CASES]
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer turns, and none of the heavy models")
    parser.add_argument(
        "--model",
        action="append",
        choices=[*names, hospitals.NAME, "scale", "runtime", "workers"],
        help="only this one; may be repeated",
    )
    parser.add_argument("--threads", type=int, action="append", help="only so many; default: 1, and all cores")
    parser.add_argument("--steps", type=int, action="append", help="only this Q; default: 1 and 10")
    parser.add_argument("--out", type=Path, help="write the tables to this file, in markdown")
    options = parser.parse_args()
    wanted = options.model or [case.name for case in CASES if not (case.on_request or (options.quick and case.heavy))]
    if not (options.model or options.quick):
        wanted.append(hospitals.NAME)
    results = []
    runs = [partial(race.run_case, case, turns=_turns(case, options.quick)) for case in CASES if case.name in wanted]
    if hospitals.NAME in wanted:
        runs.append(partial(hospitals.run, turns=7))
    if runs:
        print(race.HEAD, flush=True)
        for threads in options.threads or sorted({1, os.cpu_count() or 1}):
            for run in runs:
                for local_steps in options.steps or (1, 10):
                    result = run(local_steps, threads)
                    print(race.line(result), flush=True)
                    results.append(result)
    tables = [race.table(results)] if results else []
    if not options.model or "scale" in options.model:
        tables.append(scale.table(*scale.run()))
        print(f"\n{tables[-1]}")
    if "workers" in wanted or not (options.model or options.quick):
        tables.append(workers.table())
        print(f"\n{tables[-1]}", flush=True)
    if not options.model or "runtime" in options.model:
        folder = os.environ.get("CROSSHATCH_DATA")
        print(flush=True)
        few = ["logistic"] if options.quick else list(SETTINGS)
        tables.append(runtime.table(few, Path(folder) if folder else None, turns=3 if options.quick else 7))
    if options.out:
        options.out.write_text("\n\n".join(tables) + "\n", encoding="utf-8")


def _turns(case: Case, quick: bool) -> int:
    if case.heavy:
        return 5
    return 5 if quick else 25


if __name__ == "__main__":
    main()
