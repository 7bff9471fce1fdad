"""What happens to a message on its way, at one place for all exchanges, with what either end remembers of it."""

from __future__ import annotations

from crosshatch.channels.channel import Channel, Ids
from crosshatch.channels.channels import Channels

__all__ = ["Channel", "Channels", "Ids"]
