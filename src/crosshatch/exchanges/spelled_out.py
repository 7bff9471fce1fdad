"""Local steps whose settings are spelled out one by one, as `descend` took them before they were one value."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from crosshatch.local.local_steps import LocalSteps


def as_local_steps(local: LocalSteps | None, spelled: Mapping[str, Any]) -> LocalSteps:
    """The value put together of keywords, which `descend` took one by one before there was one."""
    if local is not None or not spelled:
        raise TypeError(
            "descend takes its local steps as one value: descend(blocks, batch, frozen, LocalSteps(5, 0.1))"
        )
    made = LocalSteps(**spelled)
    given = ", ".join(f"{name}=..." for name in spelled)
    warnings.warn(
        f"descend({given}): give one value, crosshatch.LocalSteps({given}); the next release takes no single keywords",
        DeprecationWarning,
        stacklevel=3,
    )
    return made
