"""The meter: sums by link and by exchange are two views of the same messages."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from crosshatch.meter import Meter

counts = st.lists(
    st.tuples(
        st.sampled_from(["client-hub up", "client-hub down", "hub-hub across"]),
        st.sampled_from(["share", "average"]),
        st.integers(0, 10**6),
        st.integers(0, 10**15),
    )
)


@given(counts)
def test_totals_are_the_sums(entries: list[tuple[str, str, int, int]]) -> None:
    meter = Meter()
    for link, exchange, messages, size in entries:
        meter.count(link, exchange, messages=messages, size=size)
    assert meter.messages == sum(entry[2] for entry in entries)
    assert meter.bytes == sum(entry[3] for entry in entries)
    for totals, position in ((meter.links, 0), (meter.exchanges, 1)):
        assert set(totals) == {entry[position] for entry in entries}
        for name, (size, messages) in totals.items():
            assert size == sum(entry[3] for entry in entries if entry[position] == name)
            assert messages == sum(entry[2] for entry in entries if entry[position] == name)


@given(counts)
def test_a_snapshot_goes_through_json_and_stands_still(entries: list[tuple[str, str, int, int]]) -> None:
    meter = Meter()
    for link, exchange, messages, size in entries:
        meter.count(link, exchange, messages=messages, size=size)
    snapshot = meter.snapshot()
    before = json.dumps(snapshot)
    restored = Meter()
    restored.count("hub-hub across", "share", messages=5, size=5)  # what it had before is gone
    restored.load(json.loads(before))
    assert restored == meter
    restored.count("hub-hub across", "share", messages=1, size=1)
    meter.count("hub-hub across", "share", messages=1, size=1)
    assert json.dumps(snapshot) == before
    assert restored == meter
