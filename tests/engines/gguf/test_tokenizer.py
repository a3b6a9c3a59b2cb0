"""Tokenizers of GGUF metadata: pieces merged by score as SentencePiece does, ways to split words, begins and ends."""

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from tests.engines.gguf.model_files import save_gguf

from inferometer.engines.chat.tokens import BytesTokenizer, Tokenizer, read_gguf_tokenizer
from inferometer.engines.gguf.header import read_header
from inferometer.engines.gguf.metadata import Metadata
from inferometer.engines.gguf.tokenizer import ends_of_answers, merges_of, special_tokens
from inferometer.errors import FormatError, InputError

pytest.importorskip("tokenizers")

NORMAL, UNKNOWN, CONTROL, USER, BYTE = 1, 2, 3, 4, 6
PIECES = (
    "e",
    "t",
    "h",
    "a",
    "i",
    "n",
    "▁",
    "th",
    "he",
    "the",
    "▁t",
    "▁the",
    "in",
    "an",
    "hen",
    "then",
    "▁a",
    "▁an",
    "at",
)
LLAMA3_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
    r"\s+(?!\S)|\s+"
)


def sentence_pieces(scores: Sequence[float] | None = None, **more: Any) -> dict[str, Any]:
    """Metadata: <unk>, <s>, </s>, all bytes, pieces with falling scores, a token that a user defined."""
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(256)), *PIECES, "<b>"]
    types = [UNKNOWN, CONTROL, CONTROL, *[BYTE] * 256, *[NORMAL] * len(PIECES), USER]
    own = list(scores or [-float(i) for i in range(len(PIECES))])
    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.scores": [*[0.0] * 259, *own, 0.0],
        "tokenizer.ggml.token_type": types,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
        **more,
    }


def byte_level(merges: Sequence[str], pre: str, **more: Any) -> dict[str, Any]:
    """Metadata: each byte's character, what merges make, three tokens that control."""
    letters = [*(chr(i) for i in range(33, 127)), *"Ċ\u0120éÃ©"]
    made = [merge.replace(" ", "") for merge in merges]
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    tokens = list(dict.fromkeys([*special, *letters, *made]))
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.merges": list(merges),
        "tokenizer.ggml.token_type": [CONTROL] * 3 + [NORMAL] * (len(tokens) - 3),
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        **more,
    }


def opened(folder: Path, more: dict[str, Any], vocabulary: int = 400) -> tuple[Tokenizer, Metadata]:
    header = read_header(save_gguf(folder / "a.gguf", "tiny-llama", more=more))
    metadata = Metadata(header.path, header.metadata)
    return read_gguf_tokenizer(metadata, vocabulary), metadata


def by_score(text: str, scores: dict[str, float]) -> list[str]:
    """SentencePiece's way: while any are left, join the neighbours whose text has the highest score, leftmost first."""
    parts = list(text)
    while joined := [(-scores[a + b], at) for at, (a, b) in enumerate(pairwise(parts)) if a + b in scores]:
        at = min(joined)[1]
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return parts


@pytest.mark.parametrize("seed", range(4))
def test_pieces_are_joined_by_score(tmp_path: Path, seed: int) -> None:
    rng = Random(seed)
    own = [-float(each) for each in rng.sample(range(100), len(PIECES))]
    scores = dict(zip(PIECES, own, strict=True))
    tokenizer, metadata = opened(tmp_path, sentence_pieces(own))
    names = metadata.texts("tokenizer.ggml.tokens")
    for _ in range(200):
        text = "".join(rng.choice("ethain ") for _ in range(rng.randint(1, 30)))
        wanted = by_score("▁" + text.replace(" ", "▁"), scores)
        assert [names[i] for i in tokenizer.encode(text)] == ["<s>", *wanted]
        assert tokenizer.decode(tokenizer.encode(text)) == text


def test_merges_stand_in_the_order_of_scores() -> None:
    scores = {"a": -9.0, "b": -9.0, "ab": -2.0, "ba": -1.0, "aba": -3.0, "xx": 0.0}
    assert merges_of(scores) == [("b", "a"), ("a", "b"), ("a", "ba"), ("ab", "a")]


def test_unknown_characters_are_spelled_in_bytes(tmp_path: Path) -> None:
    tokenizer, _ = opened(tmp_path, sentence_pieces())
    assert tokenizer.encode("é") == [1, 259 + PIECES.index("▁"), 3 + 0xC3, 3 + 0xA9]
    assert tokenizer.decode(tokenizer.encode("the 🙂 é\n")) == "the 🙂 é\n"


def test_no_blank_is_put_in_front_where_the_file_says_so(tmp_path: Path) -> None:
    more: dict[str, Any] = {"tokenizer.ggml.add_space_prefix": False, "tokenizer.ggml.add_bos_token": False}
    tokenizer, metadata = opened(tmp_path, sentence_pieces(**more))
    names = metadata.texts("tokenizer.ggml.tokens")
    assert [names[i] for i in tokenizer.encode("the an")] == ["the", "▁an"]
    assert tokenizer.decode(tokenizer.encode(" the")) == " the"


def test_tokens_of_users_and_of_control_are_one_each(tmp_path: Path) -> None:
    more: dict[str, Any] = {"tokenizer.ggml.add_space_prefix": False}
    tokenizer, metadata = opened(tmp_path, sentence_pieces(**more))
    names = metadata.texts("tokenizer.ggml.tokens")
    ids = tokenizer.encode("then<b>an</s>")
    assert [names[i] for i in ids] == ["<s>", "then", "<b>", "an", "</s>"]
    assert tokenizer.decode(ids) == "then<b>an"


WAYS = {
    "gpt-2": (
        ["1 2", "12 3", "' s", "' S", "a ."],
        "a123's 1234 'S a.\n\na",
        ["a", "123", "'s", "Ġ", "123", "4", "Ġ", "'", "S"],
    ),
    "llama-bpe": (["1 2", "12 3", "123 4", "' S", ". Ċ"], "1234'S.\n", ["<|im_start|>", "123", "4", "'S", ".Ċ"]),
    "qwen2": (["1 2", "' S", ". Ċ"], "12'S.\ne\u0301", ["1", "2", "'S", ".Ċ", "Ã", "©"]),
    "smollm": (["1 2", "Ġ 1", "' s", "' S"], "12 1's'S", ["1", "2", "Ġ", "1", "'s", "'", "S"]),
}


@pytest.mark.parametrize(("merges", "text", "wanted"), WAYS.values(), ids=WAYS.keys())
def test_words_are_split_as_the_name_says(
    tmp_path: Path, request: pytest.FixtureRequest, merges: list[str], text: str, wanted: list[str]
) -> None:
    """Digits one by one or up to three, short forms in capitals, ends of lines with what is before them, NFC."""
    tokenizer, metadata = opened(tmp_path, byte_level(merges, request.node.callspec.id))
    names = metadata.texts("tokenizer.ggml.tokens")
    assert [names[i] for i in tokenizer.encode(text)][: len(wanted)] == wanted


def test_whole_words_of_llama_3_need_no_merges(tmp_path: Path) -> None:
    more = byte_level(["h e"], "llama-bpe", **{"tokenizer.ggml.add_bos_token": False})
    more["tokenizer.ggml.tokens"] = [*more["tokenizer.ggml.tokens"], "hello"]
    more["tokenizer.ggml.token_type"] = [*more["tokenizer.ggml.token_type"], NORMAL]
    tokenizer, metadata = opened(tmp_path, more)
    assert tokenizer.encode("hello") == [metadata.texts("tokenizer.ggml.tokens").index("hello")]


def test_qwen_and_llama_split_as_their_own_tokenizers() -> None:
    """The patterns, against those that transformers and Meta publish."""
    from inferometer.engines.gguf.tokenizer import _SPLITTINGS

    transformers: Any = pytest.importorskip("transformers.models.qwen2.tokenization_qwen2")
    assert _SPLITTINGS["qwen2"].steps[0]["pattern"] == {"Regex": transformers.PRETOKENIZE_REGEX}
    assert _SPLITTINGS["llama-bpe"].steps[0]["pattern"] == {"Regex": LLAMA3_WORDS}


def test_a_template_and_the_ends_come_from_the_file(tmp_path: Path) -> None:
    template = "{{ bos_token }}{% for m in messages %}{{ m.role }}: {{ m.content }}{% endfor %}{{ eos_token }}"
    tokenizer, metadata = opened(tmp_path, byte_level(["h i"], "smollm", **{"tokenizer.chat_template": template}))
    names = metadata.texts("tokenizer.ggml.tokens")
    ids = tokenizer.chat([{"role": "user", "content": "hi"}])
    assert [names[i] for i in ids] == ["<|im_start|>", *"user:", "Ġ", "hi", "<|im_end|>"]
    assert special_tokens(metadata) == {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>"}
    assert ends_of_answers(metadata) == tokenizer.eos == {0, 2}


def test_an_unknown_kind_can_run_tokens_and_no_text(tmp_path: Path) -> None:
    for more, words in (
        ({"tokenizer.ggml.model": "t5"}, "tokenizer.ggml.model: expected gpt2 or llama, found t5"),
        (byte_level(["h i"], "tekken"), "tokenizer.ggml.pre: expected gpt-2, .*, found tekken"),
    ):
        tokenizer, _ = opened(tmp_path, more)
        assert tokenizer.name == "none"
        with pytest.raises(InputError, match=words):
            tokenizer.encode("hi")


def test_a_file_without_one_has_bytes_or_none(tmp_path: Path) -> None:
    assert isinstance(opened(tmp_path, {}, 320)[0], BytesTokenizer)
    with pytest.raises(InputError, match="expected a tokenizer to read text with, found none"):
        opened(tmp_path, {}, 32_000)[0].encode("hi")


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"tokenizer.ggml.tokens": None}, "tokenizer.ggml.tokens: expected a list of texts, found nothing"),
        ({"tokenizer.ggml.tokens": ["a"] * 279}, "tokenizer.ggml.tokens: expected each token once, found 279 texts"),
        ({"tokenizer.ggml.tokens": [1, 2]}, "tokenizer.ggml.tokens: expected a list of texts, found 2 numbers"),
        ({"tokenizer.ggml.token_type": [1, 2]}, "tokenizer.ggml.token_type: expected 279 numbers, found 2 numbers"),
        ({"tokenizer.ggml.scores": None}, "tokenizer.ggml.scores: expected 279 numbers, found nothing"),
        ({"tokenizer.ggml.eos_token_id": 279}, "eos_token_id: expected one of the 279 tokens, found 279"),
        ({"tokenizer.ggml.add_bos_token": 1}, "add_bos_token: expected true or false, found 1"),
        ({"tokenizer.chat_template": 1}, "tokenizer.chat_template: expected text, found 1"),
    ],
)
def test_metadata_that_is_wrong_names_its_key(tmp_path: Path, more: dict[str, Any], words: str) -> None:
    with pytest.raises(FormatError, match=words):
        opened(tmp_path, sentence_pieces(**more))


def test_more_tokens_than_the_model_has_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="expected at most the model's 100 tokens, found 279"):
        opened(tmp_path, sentence_pieces(), 100)


def test_scores_that_are_no_numbers_do_no_harm(tmp_path: Path) -> None:
    tokenizer, _ = opened(tmp_path, sentence_pieces([float("nan"), *[-np.inf] * (len(PIECES) - 1)]))
    assert tokenizer.decode(tokenizer.encode("then")) == "then"
