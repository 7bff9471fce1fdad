"""The names that all parties give to what they exchange, and to how they average."""

from __future__ import annotations

from typing import Literal

ClientWeights = Literal["equal", "samples", "at_work"]
"""How clients count in an average: all of a silo alike, by the samples they hold, or only those at work, alike."""
CODED = ("share", "head", "derivatives", "broadcast", "average", "average_groups")
"""What may have a codec, by the names in a config: the exchanges, and the head that `share` sends along."""
