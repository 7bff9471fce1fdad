"""Codecs: what a tensor becomes on the wire, exactly how long that is, and what is left of it on the other side.

To add one: "How to add" in CONTRIBUTING.md. One of the user's own is named `file.py:Class` and needs none of that.
"""

from crosshatch.codecs.chain import Chain
from crosshatch.codecs.codec import Codec, Draw, Stage, Step
from crosshatch.codecs.dense import Half, Identity
from crosshatch.codecs.feedback import AnyCodec, ErrorFeedback
from crosshatch.codecs.own_codec import spell
from crosshatch.codecs.parse import parse_codec
from crosshatch.codecs.quantise import Quantise
from crosshatch.codecs.sparse import RandomK, TopK

__all__ = [
    "AnyCodec", "Chain", "Codec", "Draw", "ErrorFeedback", "Half", "Identity", "Quantise", "RandomK", "Stage", "Step",
    "TopK", "parse_codec", "spell",
]  # fmt: skip
