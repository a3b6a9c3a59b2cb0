"""Models by name, and that what is bundled says where it is from."""

from pathlib import Path

import pytest

from inferometer.architectures import bundled_models, find_model, read_model, require_model
from inferometer.architectures.known import BundledModel, plain_name
from inferometer.errors import InputError, UnknownName

TINY = (
    '{"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, '
    '"num_attention_heads": 4, "vocab_size": 100}'
)


@pytest.mark.parametrize("bundled", bundled_models(), ids=lambda bundled: bundled.name)
def test_a_bundled_model_has_a_source_and_leaves_nothing_to_defaults(bundled: BundledModel) -> None:
    assert "config.json" in bundled.source
    assert (bundled.model.name, bundled.model.source) == (bundled.name, bundled.source)
    assert bundled.model.defaulted == ()
    assert bundled.model.dtype is not None
    assert find_model(bundled.name) == bundled.model


def test_no_two_bundled_models_share_a_name() -> None:
    names = [plain_name(name) for bundled in bundled_models() for name in (bundled.name, *bundled.aliases)]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("gemma-3-1b-it", "gemma-3-1b"),
        ("google/gemma-3-1b-pt", "gemma-3-1b"),
        ("Gemma_3_1B_IT", "gemma-3-1b"),
        ("/models/local/gemma-3-1b-it/", "gemma-3-1b"),
        ("meta-llama/Llama-3.1-8B-Instruct", "Llama-3.1-8B"),
        ("Meta-Llama-3.1-8B-Instruct", "Llama-3.1-8B"),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", "Mixtral-8x7B"),
        ("Qwen/Qwen3-30B-A3B-Thinking-2507", "Qwen3-30B-A3B"),
        ("deepseek-ai/DeepSeek-R1", "DeepSeek-V3"),
        ("gemma-3-12b-it", None),
        ("gemma-3-1b-it-qat", None),
        ("gemma", None),
        ("", None),
    ],
)
def test_a_name_is_found_whatever_its_organisation_and_tuning(name: str, found: str | None) -> None:
    model = find_model(name)
    assert (model and model.name) == found


def test_a_model_is_required_by_file_or_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "gemma-3-1b"
    path.mkdir()
    monkeypatch.chdir(tmp_path)
    assert require_model("gemma-3-1b").architecture == "gemma3_text"  # a folder without a configuration is no model
    (path / "config.json").write_text(TINY, "utf-8")
    assert require_model("gemma-3-1b") == read_model("gemma-3-1b")
    assert require_model("gemma-3-1b").architecture == "llama"
    assert require_model("google/gemma-3-1b").architecture == "gemma3_text"


def test_what_is_neither_says_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match='unknown model "gemma-3-2b"') as caught:
        require_model("gemma-3-2b")
    assert caught.value.known[0].startswith("gemma-")
    with pytest.raises(InputError, match="No such file"):
        require_model(str(tmp_path / "none.json"))
    for name in ("x" * 5000, "a\0b", "{"):
        with pytest.raises(InputError):
            require_model(name)
