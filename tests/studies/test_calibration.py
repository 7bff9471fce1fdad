"""Whether a study says so when there is something, and says nothing when there is not.

The rule, fixed before any seed was run: of 100 draws of made data, seeds 0 to 99, a study says of each whether the
insurer's columns add AUC to what the bank has alone (its interval leaves out 0). Without a joint effect (300 rows, 60
of them test rows) no difference is shown in 88 to 99 draws. With an effect of 0.03 AUC (0.75 to 0.78; 3,000 rows, 1,000
of them test rows, balanced classes) it is shown, as more, in at least 80.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.small_studies import study_here, write_config, write_rows

DRAWS = 100


def shown(folder: Path, *, n: int, test_fraction: float, joint: float) -> list[int]:
    """Of each draw 1 where more is shown, -1 where less is, 0 where nothing is."""
    found = []
    for seed in range(DRAWS):
        here = folder / str(seed)
        here.mkdir()
        write_rows(here / "rows.csv", n=n, seed=seed, alone=0.75, joint=joint)
        gain = study_here(write_config(here, test_fraction=test_fraction), here / "study").gain("central", "bank alone")
        assert gain is not None
        found.append(((gain.low > 0) - (gain.high < 0)) * gain.shown)
    return found


@pytest.fixture(autouse=True)
def without_yardsticks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Boosted trees say nothing about this, and take most of the time."""
    monkeypatch.setattr("crosshatch.studies.yardsticks.yardsticks", lambda *_: [])


@pytest.mark.slow
def test_without_an_effect_none_is_shown(tmp_path: Path) -> None:
    found = shown(tmp_path, n=300, test_fraction=0.2, joint=0.75)
    print("shown:", found.count(1), "more,", found.count(-1), "less")
    assert 88 <= found.count(0) <= 99


@pytest.mark.slow
def test_an_effect_of_three_hundredths_is_shown(tmp_path: Path) -> None:
    found = shown(tmp_path, n=3000, test_fraction=1 / 3, joint=0.78)
    print("shown:", found.count(1), "more,", found.count(-1), "less")
    assert found.count(1) >= 80
