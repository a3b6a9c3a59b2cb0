"""The tokenizer in a GGUF file's metadata as a `tokenizer.json`, which the tokenizers library reads; what ends a text.

Two kinds: byte-level BPE with merges (`gpt2`), whose way to split words has a name, and SentencePiece's BPE (`llama`),
whose merges follow from the scores of tokens. Source: `llama-vocab.cpp` of llama.cpp, read 2026-11-26, for keys,
defaults and names; the tokenizers that Llama 3, Qwen 2 and SmolLM publish for how each name splits. Left out:
WordPiece, Unigram, RWKV, other ways to split.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from inferometer.engines.gguf.metadata import Metadata
from inferometer.errors import InputError

KIND = "tokenizer.ggml.model"
"""The key of a tokenizer's kind; a file without it has none."""
_SPACE = "\u2581"  # what SentencePiece writes for a blank
_NORMAL, _UNKNOWN, _CONTROL, _USER, _BYTE = 1, 2, 3, 4, 6  # types of tokens
_LONGEST_MERGED = 64  # characters; longer tokens, of which a hostile file may have megabytes, aren't put together
_ENDS = frozenset(("<|eot_id|>", "<|eom_id|>", "<|im_end|>", "<|endoftext|>", "<|end_of_text|>", "<end_of_turn>"))
"""Tokens that control and end an answer, whether or not a file says so: many name only one."""

_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,%d}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|"
    r"\s+(?!\S)|\s+"
)
_BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}


class _Splitting(NamedTuple):
    """What a name of `tokenizer.ggml.pre` stands for: steps, and what Llama 3's and Qwen's tokenizers have besides."""

    steps: Sequence[Mapping[str, Any]]
    normalizer: Mapping[str, Any] | None = None
    ignores_merges: bool = False
    begins: bool = False


def _split(pattern: str) -> Sequence[Mapping[str, Any]]:
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    return split, {**_BYTE_LEVEL, "use_regex": False}


_GPT2 = _Splitting(({**_BYTE_LEVEL, "use_regex": True},))
_LLAMA3 = _Splitting(_split(_WORDS % 3), ignores_merges=True, begins=True)
_QWEN2 = _Splitting(_split(_WORDS.replace("{1,%d}", "")), normalizer={"type": "NFC"})
_SMOLLM = _Splitting(({"type": "Digits", "individual_digits": True}, *_GPT2.steps))
_SPLITTINGS: Mapping[str, _Splitting] = {
    "gpt-2": _GPT2,
    "llama-bpe": _LLAMA3,
    "llama3": _LLAMA3,
    "llama-v3": _LLAMA3,
    "qwen2": _QWEN2,
    "deepseek-r1-qwen": _QWEN2,
    "smollm": _SMOLLM,
}


def tokenizer_fields(metadata: Metadata) -> dict[str, Any]:
    """The fields of a `tokenizer.json`.

    Raises:
        InputError: It is of a kind that isn't known here.
        FormatError: A key is missing or wrong.
    """
    why = unknown_kind(metadata)
    if why is not None:
        raise InputError(why)
    kind = metadata.text(KIND)
    tokens = metadata.texts("tokenizer.ggml.tokens")
    types = metadata.numbers("tokenizer.ggml.token_type", len(tokens)).tolist()
    if len(set(tokens)) < len(tokens):
        metadata.refuse("tokenizer.ggml.tokens", "each token once", tokens)
    made = _byte_level(metadata, tokens) if kind == "gpt2" else _sentence_piece(metadata, tokens, types)
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": i, "content": tokens[i], "special": type_ != _USER, "normalized": False, "single_word": False,
             "lstrip": False, "rstrip": False}
            for i, type_ in enumerate(types) if type_ in (_CONTROL, _USER) or (type_ == _UNKNOWN and kind == "llama")
        ],
        **made,
        "post_processor": _ends(metadata, tokens, begins=_begins(metadata, kind)),
    }  # fmt: skip


def unknown_kind(metadata: Metadata) -> str | None:
    """Why no tokenizer can be made of this file; None where one can.

    Raises:
        FormatError: The file doesn't name its kind.
    """
    kind = metadata.text(KIND)
    if kind not in ("gpt2", "llama"):
        return f"{metadata.path}: {KIND}: expected gpt2 or llama, found {kind}"
    name = metadata.text("tokenizer.ggml.pre") if kind == "gpt2" else None
    if name is None or name in _SPLITTINGS:
        return None
    return f"{metadata.path}: tokenizer.ggml.pre: expected {', '.join(_SPLITTINGS)}, found {name}"


def special_tokens(metadata: Metadata) -> dict[str, str]:
    """The tokens that a chat template may name: `bos_token`, `eos_token`, `unk_token`, `pad_token`."""
    tokens = metadata.texts("tokenizer.ggml.tokens")
    keys = {"bos_token": "bos", "eos_token": "eos", "unk_token": "unknown", "pad_token": "padding"}
    found = {name: _token(metadata, key, tokens) for name, key in keys.items()}
    return {name: tokens[i] for name, i in found.items() if i is not None}


def ends_of_answers(metadata: Metadata) -> frozenset[int]:
    """Tokens that end an answer: those that the file names, and those whose text is known to."""
    tokens = metadata.texts("tokenizer.ggml.tokens")
    named = [_token(metadata, key, tokens) for key in ("eos", "eot", "eom")]
    types = metadata.numbers("tokenizer.ggml.token_type", len(tokens)).tolist()
    known = {i for i, token in enumerate(tokens) if types[i] == _CONTROL and token in _ENDS}
    return frozenset(known.union(i for i in named if i is not None))


def _byte_level(metadata: Metadata, tokens: Sequence[str]) -> dict[str, Any]:
    splitting = _SPLITTINGS[metadata.text("tokenizer.ggml.pre")]
    merges = [_pair(merge) for merge in metadata.texts("tokenizer.ggml.merges")]
    return {
        "normalizer": splitting.normalizer,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": list(splitting.steps)},
        "model": _bpe(tokens, merges, ignore_merges=splitting.ignores_merges),
        "decoder": {**_BYTE_LEVEL, "use_regex": True},
    }


def _sentence_piece(metadata: Metadata, tokens: Sequence[str], types: Sequence[int]) -> dict[str, Any]:
    """Blanks become `▁`, one is put in front where the file says so, and unknown characters are spelled in bytes."""
    scores = metadata.numbers("tokenizer.ggml.scores", len(tokens)).tolist()
    parts = {token: scores[i] for i, token in enumerate(tokens) if types[i] == _NORMAL}
    prefixed = metadata.flag("tokenizer.ggml.add_space_prefix", default=True)
    blank = {"type": "Replace", "pattern": {"String": " "}, "content": _SPACE}
    back = {"type": "Replace", "pattern": {"String": _SPACE}, "content": " "}
    front = [{"type": "Prepend", "prepend": _SPACE}] if prefixed else []
    strip = [{"type": "Strip", "content": " ", "start": 1, "stop": 0}] if prefixed else []
    unknown = _token(metadata, "unknown", tokens)
    return {
        "normalizer": {"type": "Sequence", "normalizers": [*front, blank]},
        "pre_tokenizer": None,
        "model": _bpe(
            tokens,
            merges_of(parts),
            unk_token=None if unknown is None else tokens[unknown],
            fuse_unk=True,
            byte_fallback=_BYTE in types,
        ),
        "decoder": {"type": "Sequence", "decoders": [back, {"type": "ByteFallback"}, {"type": "Fuse"}, *strip]},
    }


def merges_of(scores: Mapping[str, float]) -> list[tuple[str, str]]:
    """Pairs of tokens to merge, the first first, so that BPE by rank makes what SentencePiece makes by score.

    SentencePiece merges the two neighbours whose joined text has the highest score. So a token is made of any two that
    give it, and tokens are in the order of their scores.

    Args:
        scores: Of the tokens that text is made of; a higher one goes first.
    """
    ranked = sorted((token for token in scores if 1 < len(token) <= _LONGEST_MERGED), key=lambda token: -scores[token])
    found = []
    for token in ranked:
        for at in range(1, len(token)):
            if (left := token[:at]) in scores and (right := token[at:]) in scores:
                found.append((left, right))  # noqa: PERF401 - a comprehension would cut each token twice
    return found


def _pair(merge: str) -> tuple[str, str]:
    at = merge.find(" ", 1)
    return (merge[:at], merge[at + 1 :]) if at > 0 else (merge, "")


def _bpe(tokens: Sequence[str], merges: Sequence[tuple[str, str]], **more: Any) -> dict[str, Any]:
    plain = {"dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None}
    flags = {"fuse_unk": False, "byte_fallback": False, "ignore_merges": False}
    vocabulary = {token: i for i, token in enumerate(tokens)}
    return {"type": "BPE", **plain, **flags, **more, "vocab": vocabulary, "merges": merges}


def _begins(metadata: Metadata, kind: str) -> bool:
    """Whether a text has a token in front where the file doesn't say."""
    return kind == "llama" or _SPLITTINGS[metadata.text("tokenizer.ggml.pre")].begins


def _ends(metadata: Metadata, tokens: Sequence[str], *, begins: bool) -> dict[str, Any] | None:
    """Puts in front of a text what begins it, and behind it what ends it, as the file asks."""
    wanted = (("bos", metadata.flag("tokenizer.ggml.add_bos_token", default=begins)),
              ("eos", metadata.flag("tokenizer.ggml.add_eos_token", default=False)))  # fmt: skip
    found = {name: _token(metadata, name, tokens) if is_added else None for name, is_added in wanted}
    if not any(each is not None for each in found.values()):
        return None
    special = {tokens[i]: {"id": tokens[i], "ids": [i], "tokens": [tokens[i]]} for i in found.values() if i is not None}
    front, back = ([{"SpecialToken": {"id": tokens[i], "type_id": 0}}] if i is not None else [] for i in found.values())
    single = [*front, {"Sequence": {"id": "A", "type_id": 0}}, *back]
    pair = [*single, *front, {"Sequence": {"id": "B", "type_id": 1}}, *back]
    return {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": special}


def _token(metadata: Metadata, name: str, tokens: Sequence[str]) -> int | None:
    key = f"tokenizer.ggml.{name}_token_id"
    found = metadata.optional_integer(key)
    if found is not None and found >= len(tokens):
        metadata.refuse(key, f"one of the {len(tokens):,} tokens", found)
    return found
