"""Real processes and real faults: the undisturbed model and meter, bit for bit, or a line that names what is wrong."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from threading import Event

import pytest
from _pytest.mark import ParameterSet

from crosshatch.parties.line import Key, Line, Name
from tests.runtime.fleet import Fleet, engine_of
from tests.runtime.proxy import Proxies, Weather

CASES = ("TDCD", "ABCD", "HSGD, coded", "MTCD")
KILLED = (
    ("TDCD", "client-0-1-0"),
    ("TDCD", "hub-0-0"),
    ("TDCD, random blocks, Adam, labels held, coded", "client-0-0-1"),
    ("TDCD, random blocks, Adam, labels held, coded", "client-0-1-0"),
    ("ABCD", "client-0-0-1"),
    ("ABCD", "client-0-1-0"),
    ("ABCD", "hub-0-0"),
    ("ABCD", "hub-0-1"),
    ("HSGD, coded", "client-0-1-2"),
    ("HSGD, coded", "hub-0-1"),
    ("HSGD, coded", "server-0-0"),
    ("MTCD", "agent-1"),
    ("MTCD", "server-0-0"),
)
STRUCK = (  # of every case one of each kind
    ("TDCD", "hub-0-1"),
    ("TDCD", "client-0-0-0"),
    ("ABCD", "hub-0-1"),
    ("ABCD", "client-0-0-1"),
    ("HSGD, coded", "server-0-0"),
    ("HSGD, coded", "hub-0-1"),
    ("HSGD, coded", "client-0-1-2"),
    ("MTCD", "agent-1"),
    ("MTCD", "server-0-0"),
)
FOLLOWING = (("TDCD", "client-0-0-0"), ("HSGD, coded", "client-0-1-2"))  # they keep nothing
KEEPING = tuple(one for one in STRUCK if one not in FOLLOWING)
ENDLESS = 100_000  # rounds
QUICK = ("TDCD", "client-0-1-0")


def slow_but(quick: tuple[object, ...], all_of_them: Iterable[tuple[object, ...]]) -> list[ParameterSet]:
    """Parameters of a test that is slow but for one."""
    return [pytest.param(*one, marks=[] if one == quick else pytest.mark.slow) for one in all_of_them]


class Counting:
    """A line that counts occasions to be killed at, per round."""

    def __init__(self, line: Line) -> None:
        self.line, self.occasions = line, Counter[int]()

    def send(self, to: Name, key: Key, message: bytes) -> None:
        self.occasions[key[0]] += 2
        self.line.send(to, key, message)

    def recv(self, sender: Name, key: Key) -> bytes:
        self.occasions[key[0]] += 2
        return self.line.recv(sender, key)


def occasions(case: str, who: Name, rounds: int) -> Counter[int]:
    engine = engine_of(case)
    counting = Counting(engine.parties[who].role.post.line)
    engine.parties[who].join(counting)
    for _ in range(rounds):
        engine.run_round()
    return counting.occasions


@pytest.mark.parametrize(("case", "who"), slow_but(QUICK, KILLED))
def test_killed_before_and_after_each_send_and_receive(case: str, who: Name, tmp_path: Path) -> None:
    kills, rounds = until_all_are_struck(occasions(case, who, 200))
    with Fleet(case, tmp_path, rounds=rounds, struck=who) as fleet:
        fleet.start()
        fleet.wait()
        assert fleet.restarts == len(list((tmp_path / who).glob("struck-*"))) == kills
        fleet.check_model()


def until_all_are_struck(occasions: Counter[int]) -> tuple[int, int]:
    """How many kills it takes to be killed on every occasion of a round, and how many rounds.

    Agents have more to do in some rounds than in others: theirs is as full as the fullest that comes five times.
    """
    struck, most = 0, sorted(occasions.values())[-5]
    for round in range(1, 200):
        struck += occasions[round] > struck
        if struck == most:
            return struck, round + 1
    raise AssertionError(f"{struck} of {most} in 200 rounds")


def test_some_are_killed_and_then_everybody(tmp_path: Path) -> None:
    with Fleet("TDCD", tmp_path, rounds=ENDLESS) as fleet:
        fleet.start()
        for n, houses in enumerate((["client-0-0-0", "hub-0-1"], fleet.houses), start=1):
            fleet.wait(lambda n=n: fleet.stored("hub-0-0") >= 8 * n)  # type: ignore[misc]
            fleet.kill(*houses)
        fleet.end_and_check()
        assert fleet.restarts == 8


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_killed_again_and_again(case: str, tmp_path: Path) -> None:
    random = Random(case)
    with Fleet(case, tmp_path, rounds=ENDLESS) as fleet:
        fleet.start()
        for n in range(1, 11):
            fleet.wait(lambda n=n: fleet.stored(fleet.houses[0]) >= 10 * n)  # type: ignore[misc]
            some = random.choice((1, 1, 2, len(fleet.houses)))
            fleet.kill(*random.sample(fleet.houses, some))
        fleet.end_and_check()
        assert fleet.restarts >= 10


@pytest.mark.slow
@pytest.mark.parametrize(("case", "who"), STRUCK)
def test_frozen_for_a_while(case: str, who: Name, tmp_path: Path) -> None:
    with Fleet(case, tmp_path, rounds=ENDLESS) as fleet:
        fleet.start()
        fleet.wait(lambda: fleet.reached(who) >= 10)
        fleet.kill(who, how=signal.SIGSTOP)
        Event().wait(15)
        fleet.kill(who, how=signal.SIGCONT)
        before = fleet.reached(who)
        fleet.wait(lambda: fleet.reached(who) > before)
        fleet.end_and_check()
        assert fleet.restarts == 0


@pytest.mark.parametrize("case", slow_but(("TDCD",), zip(CASES)))
def test_connections_are_cut(case: str, tmp_path: Path) -> None:
    with Proxies() as network, Fleet(case, tmp_path, rounds=ENDLESS, through=network.before) as fleet:
        fleet.start()
        for n in range(1, 4):
            fleet.wait(lambda n=n: fleet.stored(fleet.houses[0]) >= 8 * n)  # type: ignore[misc]
            network.cut()
        fleet.end_and_check()
        assert (network.cuts, fleet.restarts) == (3, 0)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("weather", [Weather(delay=0.2), Weather(stall=0.05, held=3.0)], ids=["slow", "stalling"])
def test_slow_and_stalling_networks(case: str, weather: Weather, tmp_path: Path) -> None:
    with Proxies() as network, Fleet(case, tmp_path, rounds=12, through=network.before) as fleet:
        network.weather = weather
        fleet.start()
        fleet.wait()
        assert (network.stalls > 0) == (weather.stall > 0)
        fleet.check_model()


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_connections_that_are_dead_without_a_word(case: str, tmp_path: Path) -> None:
    with Proxies() as network, Fleet(case, tmp_path, rounds=ENDLESS, through=network.before) as fleet:
        fleet.start()
        fleet.wait(lambda: fleet.stored(fleet.houses[0]) >= 8)
        network.swallow()
        before = fleet.stored(fleet.houses[0]) + 200  # it gets nowhere near that without connections
        fleet.wait(lambda: fleet.stored(fleet.houses[0]) > before)
        fleet.end_and_check()


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[None]:
    """A folder that holds so much."""
    folder.mkdir(mode=0o700)
    command = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=700", "none", str(folder)]
    if os.geteuid() or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("who may not mount a file system cannot fill one up")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(path: Path) -> None:
    """A file as large as there is room."""
    with suppress(OSError), open(path, "wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass


@pytest.mark.parametrize(("case", "who"), slow_but(STRUCK[0], KEEPING))
def test_a_full_disk_ends_everybody_with_a_line_and_with_room_it_goes_on(case: str, who: Name, tmp_path: Path) -> None:
    with small_disk(tmp_path / who, "1m"), Fleet(case, tmp_path, rounds=ENDLESS) as fleet:
        fleet.start()
        fleet.wait(lambda: fleet.stored(who) >= 5)
        filling = tmp_path / who / "filling"
        fill(filling)
        lines = fleet.wait_refused()
        assert f"cannot write {tmp_path / who / 'state'}" in lines[who]
        assert all(
            "No space left on device: make room" in line and str(tmp_path / who) in line for line in lines.values()
        )
        filling.unlink()
        fleet.start()
        fleet.end_and_check()


@pytest.mark.parametrize(("case", "who"), slow_but(FOLLOWING[0], FOLLOWING))
def test_who_keeps_nothing_needs_neither_disk_nor_folder(case: str, who: Name, tmp_path: Path) -> None:
    with small_disk(tmp_path / who, "1m"), Fleet(case, tmp_path, rounds=ENDLESS) as fleet:
        fleet.start()
        fleet.wait(lambda: fleet.reached(who) >= 5)
        assert fleet.stored(who) == 0
        filling = tmp_path / who / "filling"
        fill(filling)
        full = fleet.reached(who) + 5
        fleet.wait(lambda: fleet.reached(who) >= full)
        filling.unlink()
        fleet.kill(who, fleet.keeping[0])
        for name in ("state", "begun"):
            (tmp_path / who / name).unlink()
        fleet.end_and_check()
        assert fleet.restarts == 2


@pytest.mark.parametrize(("case", "who"), slow_but(STRUCK[0], STRUCK))
def test_a_state_that_is_gone_is_refused_and_all_can_begin_again(case: str, who: Name, tmp_path: Path) -> None:
    with Fleet(case, tmp_path, rounds=60, keep=frozenset({10, 20})) as fleet:
        fleet.start()
        fleet.wait(lambda: all((tmp_path / name / "state-10").exists() for name in fleet.keeping))
        fleet.kill(*fleet.houses)
        (tmp_path / who / "state").unlink()
        fleet.start([who])
        kept = "none is kept there" if (case, who) in FOLLOWING else "kept there: 10"
        with pytest.raises(AssertionError, match=rf"{who} ended with 2: {who}: its state is gone .* \({kept}"):
            fleet.wait()
        fleet.kill(*fleet.houses)
        fleet.change(again=(10,))
        fleet.start()
        fleet.wait()
        fleet.check_model()


def test_a_folder_that_is_gone_is_noticed_by_the_others(tmp_path: Path) -> None:
    with Fleet("ABCD", tmp_path, rounds=ENDLESS) as fleet:
        fleet.start()
        fleet.wait(lambda: fleet.heard("hub-0-1", "client-0-1-1") >= 10)  # and so it has forgotten what it sent before
        fleet.kill(*fleet.houses)
        for name in ("state", "begun"):
            (tmp_path / "client-0-1-1" / name).unlink()
        fleet.start()
        lines = fleet.wait_refused()
    said = "client-0-1-1 begins at round 0, but had stored round"
    assert all(said in line and line.endswith("--resume --from ROUND") for line in lines.values()), lines


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"text": "2e"}, "text is 2e at hub-0-1, 1f at {me}: give both the same, then resume the run"),
        ({"again": (10,)}, "begun again is [10] at hub-0-1, [] at {me}: give both the same, then resume the run"),
    ],
)
def test_who_has_another_text_or_has_begun_again_alone_is_refused(
    change: dict[str, object], told: str, tmp_path: Path
) -> None:
    with Fleet("TDCD", tmp_path, rounds=ENDLESS, keep=frozenset({10})) as fleet:
        fleet.start()
        fleet.wait(lambda: all((tmp_path / name / "state-10").exists() for name in fleet.keeping))
        fleet.kill(*fleet.houses)
        others = [house for house in fleet.houses if house != "hub-0-1"]
        fleet.start(others)
        fleet.change(**change)
        fleet.start(["hub-0-1"])
        lines = fleet.wait_refused()
    assert any(told.format(me=house) in line for house in others for line in lines.values()), lines
    assert all("hub-0-1 and " in line or " and hub-0-1" in line for line in lines.values()), lines


def test_after_a_crash_another_number_of_threads_is_refused_after_a_stop_it_is_not(tmp_path: Path) -> None:
    with Fleet("TDCD", tmp_path, rounds=ENDLESS) as fleet:
        fleet.start()
        fleet.wait(lambda: fleet.stored("hub-0-0") >= 3)
        fleet.kill("hub-0-0")
        fleet.change(threads=2)
        with pytest.raises(AssertionError, match=r"hub-0-0 crashed in round .*: threads was 1 and is 2: go on where"):
            fleet.wait()
        fleet.change(threads=1)
        fleet.start(["hub-0-0"])
        last = fleet.end_and_check()
        fleet.change(threads=2, rounds=last + 3)
        fleet.start()
        fleet.wait()
        assert {fleet.stored(house) for house in fleet.houses} == {last + 3}


CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
#include <sys/time.h>
static long jump(void) {  /* the wall clock of a machine that somebody sets, back and forth by hours, twice a second */
    static int (*real)(clockid_t, struct timespec *);
    struct timespec now;
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    real(CLOCK_MONOTONIC, &now);
    long n = now.tv_sec * 2 + (now.tv_nsec > 500000000);
    return (n * 7919 % 41 - 20) * 3600;
}
int clock_gettime(clockid_t clock, struct timespec *at) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int code = real(clock, at);
    if (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE) at->tv_sec += jump();
    return code;
}
int gettimeofday(struct timeval *at, void *zone) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec; at->tv_usec = now.tv_nsec / 1000;
    return 0;
}
time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}
"""
UNDER_IT = """
import sys, time
from pathlib import Path
from tests.runtime.fleet import Fleet
if __name__ == "__main__":
    before = time.time() - time.monotonic()
    with Fleet(sys.argv[2], Path(sys.argv[1]), rounds=100_000) as fleet:
        fleet.start()
        fleet.wait(lambda: fleet.stored(fleet.houses[0]) >= 8)
        fleet.kill(fleet.houses[0], fleet.houses[-1])
        fleet.end_and_check()
        assert fleet.restarts == 2
    now = time.time() - time.monotonic()
    assert abs(now - before) > 1000 or abs(time.time() - time.monotonic() - now) > 1000, "the clock did not jump"
    print("equal")
"""


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_clock_that_jumps(case: str, tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("no compiler for a clock that jumps")
    (tmp_path / "clock.c").write_text(CLOCK)
    (tmp_path / "run.py").write_text(UNDER_IT)
    library, work = tmp_path / "clock.so", tmp_path / "work"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, tmp_path / "clock.c", "-ldl"], check=True)
    work.mkdir()
    here = str(Path(__file__).parents[2])
    paths = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
    ended = subprocess.run(
        [sys.executable, tmp_path / "run.py", work, case], cwd=here, capture_output=True, text=True, check=False,
        timeout=300, env={**os.environ, "LD_PRELOAD": str(library), "PYTHONPATH": paths},
    )  # fmt: skip
    assert ended.stdout.strip().endswith("equal"), ended.stderr
