"""What an attack found, in figures, or why it does not apply."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class AttackFindings:
    """Of one attack on one silo or on the labels; `why` is empty where the attack was carried out."""

    attack: str
    target: str
    figures: Mapping[str, float] = field(default_factory=dict)
    why: str = ""
    remark: str = ""
    warning: str = ""
