"""The recorded messages of a run: safetensors files in its folder `messages`, each of some rounds in a row.

A file is called by its first round and the one behind its last, counted from 0 as the algorithm's text counts them, and
is there whole or not at all. It has the values of each message, ids once for all messages about the same samples, and
in the header a line per message: who sent it, to whom, in which exchange.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from crosshatch.errors import RunError, saying_where
from crosshatch.protocol.batches import Ids
from crosshatch.report.units import human_bytes
from crosshatch.runs.config import Config
from crosshatch.runs.directory import MESSAGES
from crosshatch.runs.files import write_whole, writing
from crosshatch.simulator.listening import Heard
from crosshatch.simulator.simulator import Simulator

LARGEST = 2 * 10**9  # bytes of all messages of a run
FULL = 64 * 10**6  # bytes in memory, beyond which they are written before the next checkpoint
_NAME = re.compile(r"rounds-(\d+)-(\d+)\.safetensors")


class MessageLine(msgspec.Struct, frozen=True):
    """A message in the header of its file; `ids` is the number of the ids' tensor."""

    round: int
    exchange: str
    use: int
    sender: str
    receivers: tuple[str, ...]
    part: int
    ids: int


class MessageRecorder:
    """Hears a run's messages and writes them: at every checkpoint, or before where memory is short."""

    def __init__(self, folder: Path, silos: tuple[str, ...], rounds: int) -> None:
        self.folder, self._silos, self._rounds = folder, silos, rounds
        self._held: list[Heard] = []
        self._bytes = 0
        self._next = 0  # the first round that no file has
        self._fits = False  # whether all rounds do, known after the first

    def hear(self, message: Heard) -> None:
        if self._held and message.round > self._held[-1].round:
            self._require_room(message.round)
            if self._bytes > FULL:
                self.write(message.round)
        new_ids = not self._held or message.ids is not self._held[-1].ids
        self._held.append(message)
        self._bytes += message.values.nbytes + (message.ids.nbytes // 2 if new_ids else 0)

    def _require_room(self, done: int) -> None:
        """Refuse what will not fit, as soon as a round tells."""
        forecast = self._bytes * self._rounds // (done - self._next)
        if not self._fits and forecast > LARGEST:
            raise RunError(
                f"run.record_messages = true: the messages of {self._rounds} rounds take about "
                f"{human_bytes(forecast)}, at most {human_bytes(LARGEST)} are recorded: set fewer run.rounds or a "
                "smaller algorithm.batch_size, or do not record"
            )
        self._fits = True

    def write(self, done: int) -> None:
        """Put what was heard of the rounds before `done`, and not written yet, into a file of its own."""
        if done == self._next:
            return
        self._require_room(done)
        lines, tensors = [], {}
        numbers: dict[int, int] = {}  # of ids, by identity: messages about the same samples have the same array
        for number, heard in enumerate(self._held):
            if id(heard.ids) not in numbers:
                numbers[id(heard.ids)] = len(numbers)
                tensors[f"ids.{numbers[id(heard.ids)]}"] = torch.from_numpy(heard.ids.astype(np.int32))
            tensors[f"values.{number}"] = heard.values.contiguous()
            names = tuple(self._silos[j] for j in heard.receivers)
            line = MessageLine(
                heard.round, heard.exchange, heard.use, self._silos[heard.sender], names, heard.part,
                numbers[id(heard.ids)],
            )  # fmt: skip
            lines.append(line)
        content = save(tensors, {"messages": msgspec.json.encode(lines).decode()})
        with writing(self.folder):
            self.folder.mkdir(exist_ok=True)
            write_whole(self.folder / f"rounds-{self._next:06d}-{done:06d}.safetensors", content)
        self._held, self._bytes, self._next = [], 0, done

    def cut(self, done: int) -> None:
        """Drop files of rounds that a resumed run repeats: those from `done` on, written after its checkpoint."""
        with writing(self.folder):
            for first, _, path in _files(self.folder):
                if first >= done:
                    path.unlink()
        self._next = done


def recorder_of(config: Config, simulator: Simulator, folder: Path) -> MessageRecorder | None:
    """Who records a run, where its config asks for it; refuses what sends no messages between silos."""
    if not config.run.record_messages:
        return None
    recorder = MessageRecorder(folder, simulator.task.names, config.run.rounds)
    with saying_where("run.record_messages = true"):
        simulator.listen(recorder.hear)
    return recorder


def read_messages(run: Path, silos: tuple[str, ...]) -> Iterator[Heard]:
    """All recorded messages of a run in their order; a RunError where there are none, or some are missing."""
    files, done = _files(run / MESSAGES), 0
    if not files:
        raise RunError(f"the messages of {run} were not recorded: train it with run.record_messages = true")
    for first, end, path in files:
        if first != done:
            raise RunError(f"{run / MESSAGES} lacks the messages of round {done}: get them again, or train again")
        done = end
        yield from _read(path, silos)


def _read(path: Path, silos: tuple[str, ...]) -> list[Heard]:
    try:
        with safe_open(path, framework="pt") as file:
            lines = msgspec.json.decode((file.metadata() or {})["messages"], type=list[MessageLine])
            ids: dict[int, Ids] = {
                line.ids: file.get_tensor(f"ids.{line.ids}").numpy().astype(np.int64) for line in lines
            }
            return [
                Heard(
                    line.round, line.exchange, line.use, silos.index(line.sender),
                    tuple(silos.index(name) for name in line.receivers), line.part, ids[line.ids],
                    file.get_tensor(f"values.{number}").clone(),
                )
                for number, line in enumerate(lines)
            ]  # fmt: skip
    except (SafetensorError, OSError, KeyError, ValueError, msgspec.MsgspecError) as error:
        raise RunError(f"{path} cannot be read ({error}): get it again, or train again") from None


def _files(folder: Path) -> list[tuple[int, int, Path]]:
    """First round, the one behind the last, and path of each file, in order."""
    found = ((_NAME.fullmatch(path.name), path) for path in (folder.iterdir() if folder.is_dir() else ()))
    return sorted((int(match[1]), int(match[2]), path) for match, path in found if match is not None)
