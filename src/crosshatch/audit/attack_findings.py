"""What an attack found, in figures; what it took to be known, and beside what its figures are to be read."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class AttackFindings:
    """Of one attack on one silo or on the labels.

    `beside` has what chance gives, and what the attacker's own columns alone would give to somebody who has all labels.
    `knows` says what the attacker is taken to know, `lowers` which setting would lower the figures. `why` is empty
    where the attack was carried out; elsewhere it says what there is nothing to attack in, or what was not tried.
    """

    attack: str
    target: str
    figures: Mapping[str, float] = field(default_factory=dict)
    beside: Mapping[str, float] = field(default_factory=dict)
    knows: str = ""
    lowers: str = ""
    why: str = ""
    remark: str = ""
    warning: str = ""
