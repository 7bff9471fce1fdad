"""Codecs from a config's text, and the errors of each."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosshatch.codecs import AnyCodec, Chain, ErrorFeedback, Half, Identity, Quantise, RandomK, TopK, parse_codec
from crosshatch.codecs.codec import Stage
from crosshatch.errors import ConfigError


@pytest.mark.parametrize(
    ("given", "codec"),
    [
        ("identity", Identity()),
        ("half", Half()),
        (" half() ", Half()),
        ("topk(0.01)", TopK(0.01)),
        ("topk(fraction=1e-3)", TopK(0.001)),
        ("topk(k=100)", TopK(k=100)),
        ("topk(1)", TopK(1.0)),
        ("randomk(0.1)", RandomK(0.1)),
        ("randomk(0.1, unbiased)", RandomK(0.1, unbiased=True)),
        ("randomk(0.1, unbiased=true)", RandomK(0.1, unbiased=True)),
        ("randomk(0.1, unbiased=false)", RandomK(0.1)),
        ("quantise(128)", Quantise(128)),
        ("topk(0.01) | quantise(128)", Chain(TopK(0.01), Quantise(128))),
        ("half|topk(0.1)|quantise(levels=4)", Chain(Half(), TopK(0.1), Quantise(4))),
        ("half | (topk(0.1) | quantise(4))", Chain(Half(), TopK(0.1), Quantise(4))),
        ("ef(topk(0.01))", ErrorFeedback(TopK(0.01))),
        ("ef(topk(0.01) | half, accumulate)", ErrorFeedback(Chain(TopK(0.01), Half()), "accumulate")),
        ("ef(half, mode='ef21')", ErrorFeedback(Half())),
    ],
)
def test_reads(given: object, codec: AnyCodec) -> None:
    assert parse_codec(given) == codec


fractions = st.floats(0, 1, exclude_min=True)
sparse: st.SearchStrategy[Stage] = st.one_of(
    fractions.map(TopK),
    st.integers(1, 10**9).map(lambda k: TopK(k=k)),
    fractions.map(RandomK),
    fractions.map(lambda fraction: RandomK(fraction, unbiased=True)),
)
inner: st.SearchStrategy[Stage] = st.one_of(st.just(Identity()), st.just(Half()), sparse)
last: st.SearchStrategy[Stage] = st.one_of(inner, st.integers(2, 2**24).map(Quantise))
chains = st.builds(lambda parts, end: Chain(*parts, end), st.lists(inner, min_size=1, max_size=2), last)


@given(codec=st.one_of(last, chains))
def test_text_is_the_inverse(codec: Stage | Chain) -> None:
    assert parse_codec(str(codec)) == codec
    if not any(isinstance(stage, RandomK) and stage.unbiased for stage in codec.stages):
        for feedback in (ErrorFeedback(codec), ErrorFeedback(codec, "accumulate")):
            assert parse_codec(str(feedback)) == feedback


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("gzip", "unknown codec 'gzip': choose one of identity, half, topk, randomk, quantise, ef"),
        ("gzip(9)", "unknown codec 'gzip'|choose one of identity"),
        ("Half", "unknown codec 'Half'"),
        ("topk", "topk takes a fraction or k"),
        ("topk(k=0)", "k >= 1"),
        ("topk(0)", "fraction above 0 and at most 1, got 0"),
        ("topk(-0.5)", "got -0.5"),
        ("topk(1.5)", "got 1.5"),
        ("topk(0.1, 3, 4)", "too many arguments"),
        ("topk(0.1, fraction=0.2)", "fraction is given twice"),
        ("topk(size=3)", "unknown argument 'size' of topk: it takes fraction and k"),
        ("topk(**{})", "cannot read|unknown argument"),
        ("half(2)", "too many arguments in 'half\\(2\\)': it takes none"),
        ("randomk", "randomk needs its fraction"),
        ("randomk(unbiased)", "randomk needs its fraction"),
        ("quantise", "quantise needs its levels"),
        ("quantise(1)", "levels from 2"),
        ("ef", "ef needs its codec"),
        ("ef(0.1)", "cannot read '0.1'"),
        ("ef(topk(0.1), forever)", "unknown error feedback 'forever': choose one of ef21, accumulate"),
        ("ef(topk(0.1)) | half", "put error feedback around it"),
        ("ef(ef(half))", "goes around a codec"),
        ("quantise(4) | half", "must come last"),
        ("topk(0.1) + half", "cannot read"),
        ("topk(0.1) |", "cannot read the codec"),
        ("", "cannot read the codec ''"),
        ("half\0", "cannot read the codec"),
        ("topk(__import__('os'))", "expected a number or a word"),
        ("(" * 300, "300 characters"),
        (3, "a codec is a string"),
        (None, "a codec is a string"),
        (["half"], "a codec is a string"),
        ({"kind": "half"}, "a codec is a string"),
        ("half(bits=8)", "unknown argument 'bits' of half: it takes none"),
    ],
)  # fmt: skip
def test_refuses_in_one_line(given: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        parse_codec(given, place="algorithm.codec")
    assert str(caught.value).startswith("algorithm.codec: ")
    assert "\n" not in str(caught.value)


@given(text=st.text(alphabet="topkhalfe()|,.=0123456789 -'\n", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        outcome = str(parse_codec(text))
    except ConfigError as error:
        outcome = str(error)
    else:
        assert parse_codec(outcome) == parse_codec(text)
    assert "\n" not in outcome
