"""Codecs: what a tensor becomes on the wire, exactly how long that is, and what is left of it on the other side.

To add one: a frozen dataclass that derives from `Stage`, or from `Step` where nothing gets shorter, in a file of its
own (`codec.py` says what its methods mean); its spelling, which its `__str__` gives back, goes into the table
`_KINDS` of `parse.py`; one that leaves no numbers to encode is named in `chain.py` too, as one that comes last; its
name goes into this file and `crosshatch/__init__.pyi`. One of the user's own is named `file.py:Class` and needs none
of these.
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
