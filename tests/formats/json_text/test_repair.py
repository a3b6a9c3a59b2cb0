"""What can be mended in one event's text, what is counted, and what is left alone."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inferometer.formats.json_text.repair import repair
from inferometer.trace.losses import Losses


def mend(text: bytes) -> tuple[bytes, dict[str, int]]:
    losses = Losses()
    mended = repair(text, losses)
    return mended, {loss.name: loss.count for loss in losses}


@pytest.mark.parametrize(
    ("text", "mended", "counted"),
    [
        (b'{"a":"x\ny"}', b'{"a":"x y"}', "control_character"),
        (b'{"a":NaN}', b'{"a":null}', "not_finite"),
        (b'{"a":-Infinity,"b":1}', b'{"a":null,"b":1}', "not_finite"),
        (b'{"a":inf}', b'{"a":null}', "not_finite"),
        (b'{"a":"\xff"}', '{"a":"\ufffd"}'.encode(), "invalid_utf8"),
        (rb'{"a":"C:\dir"}', rb'{"a":"C:\\dir"}', "bad_escape"),
        (rb'{"a":"\u12"}', rb'{"a":"\\u12"}', "bad_escape"),
        (rb'{"a":"\ud800"}', rb'{"a":"\ufffd"}', "bad_escape"),
        (rb'{"a":"\udc00\ud800"}', rb'{"a":"\ufffd\ufffd"}', "bad_escape"),
    ],
)
def test_one_defect_is_mended_and_counted_once(text: bytes, mended: bytes, counted: str) -> None:
    assert mend(text) == (mended, {counted: 1})
    json.loads(mended)


@pytest.mark.parametrize(
    "text",
    [
        rb'{"a":"NaN, Infinity and inf are words here"}',
        rb'{"a":"\\n","b":"\"","c":"\\\""}',
        rb'{"a":"\ud83d\ude00"}',
        '{"a":"μs 😀"}'.encode(),
        b'{"information":1,"nano":2}',
        b'{"a":1',
    ],
)
def test_text_without_these_defects_stays_as_it_is(text: bytes) -> None:
    assert mend(text) == (text, {})


@given(
    st.recursive(
        st.one_of(st.none(), st.integers(), st.text()),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_good_json_stays_as_it_is(value: object) -> None:
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False)):
        data = text.encode("utf-8", "surrogatepass")
        if "\ud800" <= max(text, default="") <= "\udfff" or r"\ud" in text:
            continue
        assert mend(data) == (data, {})


@given(st.binary(max_size=60))
def test_bytes_of_any_kind_in_a_string_come_out_as_json(inner: bytes) -> None:
    inside = inner.replace(b'"', b"'").rstrip(b"\\")
    mended, _ = mend(b'{"a":"' + inside + b'"}')
    assert list(json.loads(mended)) == ["a"]
