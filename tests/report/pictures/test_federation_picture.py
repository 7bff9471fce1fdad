"""The picture's parts, counted in the SVG it writes."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

from crosshatch.report.pictures.federation_picture import MOST_CLIENTS, MOST_SILOS, draw_federation, federation_title
from crosshatch.report.summary_file import FederationShape, SiloShape


def shape(
    clients: list[int], tiers: str = "V(10) H(10)", groups: int = 1, label_silo: int | None = 0
) -> FederationShape:
    silos = [SiloShape(f"silo {i}", n, 5, 700, 42, label_silo in (None, i)) for i, n in enumerate(clients)]
    return FederationShape(tuple(silos), tiers, groups)


def drawn(federation: FederationShape) -> tuple[ElementTree.Element, list[str]]:
    """The parsed picture and its texts."""
    root = ElementTree.fromstring(draw_federation(federation))
    return root, ["".join(text.itertext()) for text in root.iter("text")]


def count(root: ElementTree.Element, kind: str) -> int:
    return len(root.findall(f".//*[@class='{kind}']"))


@pytest.mark.parametrize("clients", [[1], [3, 1], [4, 5, 6], [100, 100_000], [1] * 6])
def test_every_silo_and_a_handful_of_clients(clients: list[int]) -> None:
    root, texts = drawn(shape(clients))
    assert count(root, "hub") == len(clients)
    assert count(root, "client") == sum(n if n <= MOST_CLIENTS + 1 else MOST_CLIENTS for n in clients)
    assert count(root, "labels") == 1
    for n in clients:
        if n > MOST_CLIENTS + 1:
            assert f"+ {n - MOST_CLIENTS:,} more clients" in texts
    assert {"5 features", "700 samples", "42 parameters"} <= set(texts)


def test_many_silos_are_summed_up_and_the_label_holder_stays() -> None:
    root, texts = drawn(shape([2] * 17, label_silo=16))
    assert count(root, "hub") == MOST_SILOS - 1
    assert count(root, "labels") == 1
    assert "silo 16" in texts
    assert "+ 12 more silos" in texts


def test_exchanges_follow_the_tiers() -> None:
    assert "hubs share embeddings every 10 steps" in drawn(shape([2, 2]))[1]
    assert "averaged every step" in drawn(shape([2, 2], "V(1) H(1)"))[1]
    assert not any("averaged" in text for text in drawn(shape([1, 1], "V(5)"))[1])
    one, texts = drawn(shape([9], "H(5)"))
    assert "averaged every 5 steps" in texts
    assert count(one, "across") == 0
    assert count(one, "server") == 0


def test_server_and_groups_stand_above() -> None:
    root, texts = drawn(shape([12, 120], "H(20) V(10) H(10)", groups=12))
    assert count(root, "server") == count(root, "group") == 1
    assert {"1 client", "+ 6 more clients", "58 samples"} <= set(texts)  # of one group
    assert {"server", "12 groups like this", "averaged every 20 steps"} <= set(texts)


def test_nothing_known_nothing_drawn() -> None:
    assert draw_federation(FederationShape()) == ""


def test_names_are_escaped_and_shortened() -> None:
    name = "<script>alert('x')</script> & more"
    _, texts = drawn(FederationShape((SiloShape(name),), ""))
    assert any(text.startswith("<script>alert(") and text.endswith(name) for text in texts)


@pytest.mark.parametrize(
    ("federation", "title"),
    [
        (shape([1]), "1 silo with 1 client"),
        (shape([10, 20]), "2 silos with 30 clients; the labels stay at silo 0"),
        (shape([1, 1], label_silo=None), "2 silos with 2 clients; all share the labels"),
        (shape([3, 30], groups=3, label_silo=9), "3 groups, each of 2 silos with 11 clients (33 in all)"),
    ],
)
def test_title(federation: FederationShape, title: str) -> None:
    assert federation_title(federation) == title


@pytest.mark.parametrize("clients", [[1], [3, 3], [9] * 6, [1] * 20])
def test_everything_lies_inside(clients: list[int]) -> None:
    root, _ = drawn(shape(clients, "H(4) V(2) H(1)", groups=2))
    _, _, width, height = (float(number) for number in root.attrib["viewBox"].split())
    for box in root.iter("rect"):
        x, y, w, h = (float(box.attrib[key]) for key in ("x", "y", "width", "height"))
        assert 0 <= x <= x + w <= width
        assert 0 <= y <= y + h <= height
