"""Text to tokens and back: bytes, a folder's file, its chat template, and files that don't fit the model."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from inferometer.engines.chat.tokens import BytesTokenizer, Tokenizer, read_tokenizer
from inferometer.errors import FormatError, InputError, Unavailable

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
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(Unavailable, match=r"pip install 'inferometer\[webgpu\]'"):
        read(tmp_path)
