"""Text to tokens and back: bytes, a folder's file, its chat template, and files that don't fit the model."""

import json
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from inferometer.engines.chat import tokens
from inferometer.engines.chat.tokens import BytesTokenizer, Tokenizer, read_tokenizer
from inferometer.errors import FormatError, InputError, Unavailable
from inferometer.guarded import Guarded

CHAT = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hello"}]
WORDS = ["<unk>", "<s>", "</s>", "hello", "be", "brief", "user", "system", "assistant", "[", "]"]
TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}[ {{ m['role'] }} ] {{ m['content'] }} {% endfor %}"
    "{% if add_generation_prompt %}[ assistant ]{% endif %}"
)


def write_tokenizer(folder: Path, *, added: int = 0) -> None:
    """One token a word, begun by <s>; `added` special ones lie above the vocabulary."""
    tokenizers: Any = pytest.importorskip("tokenizers")
    made = tokenizers.Tokenizer(tokenizers.models.WordLevel({w: i for i, w in enumerate(WORDS)}, unk_token="<unk>"))
    made.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    made.add_special_tokens(["<s>", "</s>", *(f"<image{i}>" for i in range(added))])
    made.post_processor = tokenizers.processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])
    made.save(str(folder / "tokenizer.json"))


def write_config(folder: Path, **fields: object) -> None:
    (folder / "tokenizer_config.json").write_text(json.dumps({"bos_token": "<s>", "eos_token": "</s>", **fields}))


def read(folder: Path, vocabulary: int = len(WORDS), **config: object) -> Tokenizer:
    return read_tokenizer(folder, vocabulary, config)


def test_bytes_are_tokens_and_come_back() -> None:
    tokenizer = BytesTokenizer()
    ids = tokenizer.encode("né 🙂")
    assert ids == [256, *"né 🙂".encode()]
    assert tokenizer.decode([*ids, 257, 258]) == "né 🙂"
    assert tokenizer.decode([0xF0, 0x9F, 300, 65]) == "\ufffd\ufffdA"  # half a character, a token that is no byte
    assert tokenizer.eos == {257}
    assert tokenizer.vocabulary == 259
    assert tokenizer.decode(tokenizer.chat(CHAT)) == "system: be brief\nuser: hello\nassistant: "


def test_a_folder_without_a_file_is_read_as_bytes_where_the_model_can_be_one_of_bytes(tmp_path: Path) -> None:
    assert read(tmp_path, 320).name == "bytes"
    for vocabulary in (258, 32_000):
        tokenizer = read(tmp_path, vocabulary, eos_token_id=[1, 2])
        assert (tokenizer.name, tokenizer.vocabulary, sorted(tokenizer.eos)) == ("none", vocabulary, [1, 2])
        for use in (lambda: tokenizer.encode("a"), lambda: tokenizer.decode([1]), lambda: tokenizer.chat(CHAT)):  # noqa: B023
            with pytest.raises(InputError) as error:
                use()
            assert str(error.value).startswith(f"{tmp_path}: expected a tokenizer.json to read text with, found none\n")
            assert "save_pretrained" in str(error.value)


def test_a_file_is_read_with_what_begins_and_ends_a_text(tmp_path: Path) -> None:
    write_tokenizer(tmp_path)
    write_config(tmp_path)
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": [7]}')
    tokenizer = read(tmp_path, eos_token_id=8)
    assert tokenizer.encode("hello user") == [1, 3, 6]
    assert tokenizer.decode([1, 3, 6, 2]) == "hello user"
    assert tokenizer.eos == {2, 7, 8}
    assert (tokenizer.name, tokenizer.vocabulary) == ("tokenizer.json", len(WORDS))


@pytest.mark.parametrize("place", ["field", "named", "file"])
def test_a_conversation_goes_through_the_folders_template(tmp_path: Path, place: str) -> None:
    write_tokenizer(tmp_path)
    named = [{"name": "default", "template": TEMPLATE}, {"name": "tools", "template": "no"}]
    write_config(tmp_path, chat_template={"field": TEMPLATE, "named": named, "file": "no"}[place])
    if place == "file":
        (tmp_path / "chat_template.jinja").write_text(TEMPLATE)
    words = [WORDS[i] for i in read(tmp_path).chat(CHAT)]
    assert " ".join(words) == "<s> [ system ] be brief [ user ] hello [ assistant ]"


def test_without_a_template_a_conversation_is_plain_text(tmp_path: Path) -> None:
    write_tokenizer(tmp_path)
    tokenizer = read(tmp_path)
    assert tokenizer.chat(CHAT) == tokenizer.encode("system: be brief\nuser: hello\nassistant: ")


def test_a_template_that_refuses_says_why(tmp_path: Path) -> None:
    write_tokenizer(tmp_path)
    write_config(tmp_path, chat_template="{{ raise_exception('System role not supported') }}")
    with pytest.raises(InputError, match="its chat template refuses the conversation: System role not supported"):
        read(tmp_path).chat(CHAT)


def test_a_tokenizer_of_a_larger_model_is_refused(tmp_path: Path) -> None:
    write_tokenizer(tmp_path)
    with pytest.raises(InputError, match=r"tokenizer\.json: expected at most the model's 10 tokens, found 11"):
        read(tmp_path, 10)


def test_an_added_token_above_the_models_is_refused_only_where_it_is_used(tmp_path: Path) -> None:
    write_tokenizer(tmp_path, added=1)
    tokenizer = read(tmp_path)
    assert tokenizer.encode("hello") == [1, 3]
    with pytest.raises(InputError, match=r"<image0> is token 11; the model has only 11"):
        tokenizer.encode("hello <image0>")


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json", "generation_config.json"])
def test_a_broken_file_is_named(tmp_path: Path, name: str) -> None:
    write_tokenizer(tmp_path)
    (tmp_path / name).write_text("[1, ")
    with pytest.raises(FormatError) as error:
        read(tmp_path)
    assert str(error.value).startswith(f"{tmp_path / name}: expected ")


def test_without_the_library_a_file_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tokenizer.json").write_text("{}")
    (tmp_path / "tokenizers.py").write_text("raise ImportError('not here')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(Unavailable, match=r"pip install 'inferometer\[webgpu\]'"):
        read(tmp_path)


@pytest.mark.parametrize("name", [["x"], {"a": 1}, 5, None])
def test_a_template_whose_name_is_no_text_is_passed_over(tmp_path: Path, name: object) -> None:
    write_tokenizer(tmp_path)
    write_config(tmp_path, chat_template=[{"name": name, "template": "no"}, {"name": "default", "template": "hello"}])
    assert read(tmp_path).chat(CHAT) == read(tmp_path).encode("hello")[1:]


TAKES_ALL_MEMORY = (
    "{% set ns = namespace(x='aaaaaaaa') %}{% for i in range(40) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}"
)
NEVER_ENDS = "{% for a in range(90000) %}{% for b in range(90000) %}{% endfor %}{% endfor %}"


@pytest.mark.parametrize("template", [TAKES_ALL_MEMORY, NEVER_ENDS, "{{ '%999999999999d' % 1 }}"])
def test_a_template_without_end_is_the_folders_fault_and_the_next_question_works(
    tmp_path: Path, template: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tokens, "Guarded", partial(Guarded, seconds=2.0))
    write_tokenizer(tmp_path)
    write_config(tmp_path, chat_template=template)
    tokenizer = read(tmp_path)
    with pytest.raises(InputError, match="its chat template"):
        tokenizer.chat(CHAT)
    assert tokenizer.encode("hello user") == [1, 3, 6]


def _changed(**parts: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda fields: {**fields, **parts}


_CORRUPT = {
    "no object": lambda fields: [fields],
    "another model": _changed(model={"type": "Unigram", "unk_id": 99, "vocab": [["a", 0.0]], "byte_fallback": True}),
    "an empty vocabulary": _changed(model={"type": "WordLevel", "vocab": {}, "unk_token": "<unk>"}),
    "an id beyond all": _changed(model={"type": "WordLevel", "vocab": {"a": 2**32 - 1}, "unk_token": "a"}),
    "padding without end": _changed(
        padding={
            "strategy": {"Fixed": 2**33}, "direction": "Right", "pad_to_multiple_of": None,
            "pad_id": 0, "pad_type_id": 0, "pad_token": "a",
        }
    ),
    "a bad pattern": _changed(
        pre_tokenizer={"type": "Split", "pattern": {"Regex": "(" * 9}, "behavior": "Isolated", "invert": False}
    ),
    "a pattern that goes back": _changed(
        pre_tokenizer={"type": "Split", "pattern": {"Regex": "(a|a?)+$"}, "behavior": "Isolated", "invert": False}
    ),
    "no special token": _changed(
        post_processor={
            "type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "x", "type_id": 0}}],
            "pair": [], "special_tokens": {},
        }
    ),
}  # fmt: skip


@pytest.mark.parametrize("corrupt", _CORRUPT.values(), ids=_CORRUPT)
def test_a_tokenizer_that_ends_its_reader_is_an_error_of_the_file(
    tmp_path: Path, corrupt: Callable[[dict[str, Any]], object]
) -> None:
    write_tokenizer(tmp_path)
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(corrupt(json.loads(path.read_bytes()))))
    with pytest.raises(InputError) as error:
        read(tmp_path).encode("a" * 40 + "b")
    assert str(path) in error.value.message


@pytest.mark.parametrize(
    "name", ["tokenizer.json", "tokenizer_config.json", "generation_config.json", "chat_template.jinja"]
)
@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "deep", "a number of 5,000 digits", "bytes"])
def test_what_is_no_plain_file_of_text_is_refused_at_once(tmp_path: Path, name: str, kind: str) -> None:
    write_tokenizer(tmp_path)
    path = tmp_path / name
    path.unlink(missing_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "folder":
        path.mkdir()
    else:
        contents = {"deep": b"[" * 100_000, "bytes": b"\xff\xfe\0"}
        path.write_bytes(contents.get(kind, b'{"a": ' + b"9" * 5_000 + b"}"))
    if name.endswith("jinja") and kind in ("deep", "a number of 5,000 digits"):
        return  # texts like others
    with pytest.raises(InputError) as error:
        read(tmp_path)
    assert str(path) in error.value.message
