"""Models from a folder: the same as what was saved, and what a broken folder says. Nothing goes over a network."""

import json
import os
import resource
import shutil
import socket
import time
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any, NoReturn

import pytest

from inferometer.engines.bundled import require_config
from inferometer.engines.hf.model import load_model
from inferometer.errors import FormatError, InferometerError, InputError, UnknownName

torch: Any = pytest.importorskip("torch")
transformers: Any = pytest.importorskip("transformers")
safetensors: Any = pytest.importorskip("safetensors.torch")


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> NoReturn:
        raise AssertionError("a connection")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Mixtral, whose checkpoint has other names than its modules."""
    folder = tmp_path_factory.mktemp("models") / "saved"
    load_model("tiny-mixtral", seed=3).model.save_pretrained(folder)
    return folder


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    """A copy to break."""
    return Path(shutil.copytree(saved, tmp_path / "broken"))


def logits_of(engine: Any, length: int = 20) -> Any:
    tokens_BT = torch.randint(0, 256, (2, length), generator=torch.Generator().manual_seed(1))
    return engine.forward(engine.start(2, length), tokens_BT)


def change_config(folder: Path, **fields: object) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **fields}))


def change_weights(folder: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    path = folder / "model.safetensors"
    safetensors.save_file(change(safetensors.load_file(path)), path, metadata={"format": "pt"})


def without(word: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda weights: {name: weight for name, weight in weights.items() if word not in name}


def test_a_bundled_configuration_stays_as_it_is() -> None:
    before = deepcopy(require_config("tiny-llama").config)
    load_model("tiny-llama")
    assert require_config("tiny-llama").config == before


@pytest.mark.parametrize("name", ["tiny-gemma2", "tiny-mixtral", "tiny-qwen-moe"])
def test_a_saved_model_in_several_files_gives_the_same_logits(name: str, tmp_path: Path) -> None:
    engine = load_model(name, seed=3)
    engine.model.save_pretrained(tmp_path / "mine", max_shard_size="300KB")
    found = load_model(str(tmp_path / "mine"))
    assert len(list((tmp_path / "mine").glob("*.safetensors"))) > 1
    assert torch.equal(logits_of(found), logits_of(engine))
    assert (found.name, found.source, found.parameters) == ("mine", str(tmp_path / "mine"), engine.parameters)
    assert (found.context_limit, found.tokenizer.name) == (4096, "bytes")
    assert found.notes == (f"{tmp_path / 'mine'} has no tokenizer.json: text goes in as bytes",)


def test_weights_come_in_the_dtype_that_was_asked_for(saved: Path) -> None:
    engine = load_model(str(saved), dtype="bfloat16")
    assert {weight.dtype for weight in engine.model.parameters()} == {torch.bfloat16}
    assert logits_of(engine).dtype == torch.bfloat16


def test_qwen3_with_experts_gives_what_transformers_gives(tmp_path: Path) -> None:
    fields = load_model("tiny-qwen3").config
    own = {"num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 48, "norm_topk_prob": True}
    rest = {"decoder_sparse_step": 1, "mlp_only_layers": [], "initializer_range": 0.2}
    del fields["model_type"]
    config = transformers.Qwen3MoeConfig(**fields, **own, **rest)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    model.save_pretrained(tmp_path)
    assert_same_logits(model, tmp_path)


def test_the_text_part_of_a_gemma_3_that_sees_runs(tmp_path: Path) -> None:
    text = {**load_model("tiny-gemma3").config, "initializer_range": 0.2}
    sizes = {"hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    vision = {**sizes, "image_size": 32, "patch_size": 8}
    config = transformers.Gemma3Config(text_config=text, vision_config=vision, mm_tokens_per_image=16)
    model = transformers.Gemma3ForConditionalGeneration(config).eval()
    model.save_pretrained(tmp_path)
    assert_same_logits(model, tmp_path)


def assert_same_logits(model: Any, folder: Path) -> None:
    engine = load_model(str(folder))
    tokens_BT = torch.randint(0, 250, (2, 30), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        wanted = model(tokens_BT, attention_mask=torch.ones_like(tokens_BT), use_cache=False).logits[:, -1]
    found = engine.forward(engine.start(2, 30), tokens_BT)
    assert (found - wanted).abs().max() <= 1e-5 * wanted.abs().max()
    assert wanted.std() > 0.1
    assert engine.context_limit == 4096


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        (lambda folder: (folder / "config.json").unlink(), InputError, "config.json: No such file"),
        (lambda folder: (folder / "config.json").write_text("{"), FormatError, "config.json: expected JSON"),
        (lambda folder: change_config(folder, model_type="mamba"), UnknownName, "Known, nearest first: llama, gemma2"),
        (lambda folder: change_config(folder, model_type=None), FormatError, "model_type: expected text, found None"),
        (lambda folder: change_config(folder, num_attention_heads="four"), InputError, "transformers "),
        (lambda folder: change_config(folder, hidden_act="relu"), InputError, "expected an activation of silu, swish"),
        (lambda folder: change_config(folder, quantization_config={"quant_method": "awq"}), InputError, "quantized"),
        (lambda folder: change_config(folder, num_hidden_layers=5), InputError, "missing (model.layers.3."),
        (lambda folder: change_config(folder, num_hidden_layers=2), InputError, "unexpected (model.layers.2."),
        (lambda folder: change_config(folder, hidden_size=128), InputError, "of another shape (lm_head.weight"),
        (lambda folder: (folder / "model.safetensors").unlink(), InputError, "*.safetensors, found none\n  Copy"),
        (
            lambda folder: (folder / "model.safetensors").rename(folder / "pytorch_model.bin"),
            InputError,
            "found pytorch_model.bin\n  Save the model again with save_pretrained",
        ),
        (lambda folder: change_weights(folder, without("model.norm")), InputError, "1 missing (model.norm.weight)"),
        (lambda folder: change_weights(folder, without("1.block_sparse_moe.experts.2.w1")), InputError, "experts.2.w1"),
        (
            lambda folder: change_weights(folder, lambda weights: {**weights, "model.sinks": torch.ones(2)}),
            InputError,
            "1 unexpected (model.sinks)",
        ),
        (lambda folder: cut(folder, -100), FormatError, "model.safetensors: expected 12"),
        (lambda folder: cut(folder, 50), FormatError, "expected a header of safetensors, found a length of"),
        (lambda folder: cut(folder, 0), FormatError, "expected a header of safetensors"),
        (
            lambda folder: (folder / "model.safetensors.index.json").write_text(
                '{"weight_map": {"a": "b.safetensors"}}'
            ),
            InputError,
            "names 1 files, 1 of them aren't there: b.safetensors",
        ),
        (
            lambda folder: (folder / "model.safetensors.index.json").write_text("[]"),
            FormatError,
            "expected a JSON object with weight_map",
        ),
    ],
)
def test_a_broken_folder_says_what_is_wrong(
    folder: Path, change: Callable[[Path], object], kind: type[InferometerError], words: str
) -> None:
    change(folder)
    with pytest.raises(kind) as error:
        load_model(str(folder))
    assert words in str(error.value)
    assert str(error.value).startswith((str(folder), "unknown architecture", "mixtral"))


_HOSTILE_SIZES = {
    "num_hidden_layers": (10**9, 4_000, 0, -1),
    "hidden_size": (2**32, 2**21),
    "head_dim": (2**32, 60_000),
    "vocab_size": (2**31, 2**24, 0, -1),
    "num_attention_heads": (10**9, 0),
    "num_key_value_heads": (10**9, 0),
    "num_local_experts": (10**9, 8_000),
    "pad_token_id": (10**9, 4_000),
    "num_labels": (10**9,),
    "vision_config": ({"num_hidden_layers": 10**9}, {"hidden_size": 2**40}),
}


@pytest.mark.parametrize(
    ("field", "value"), [(field, value) for field, values in _HOSTILE_SIZES.items() for value in values]
)
def test_a_size_that_the_files_dont_have_is_refused_in_little_time_and_memory(
    folder: Path, field: str, value: object
) -> None:
    change_config(folder, **{field: value})
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    with pytest.raises(InputError) as error:
        load_model(str(folder))
    assert str(folder) in str(error.value)
    assert time.process_time() - began < 10
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 512 << 10


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "model.safetensors.index.json", "tokenizer.json"])
def test_a_pipe_or_a_device_in_a_folder_is_refused_at_once(folder: Path, name: str) -> None:
    path = folder / name
    for place in (lambda: os.mkfifo(path), lambda: path.symlink_to("/dev/zero")):
        path.unlink(missing_ok=True)
        place()
        with pytest.raises(InputError, match=r"expected a file, found a (pipe|device)"):
            load_model(str(folder))


@pytest.mark.parametrize("index", ["99999999999", "99999999", "9" * 5_000])
def test_an_expert_beyond_all_is_named_and_not_counted_to(folder: Path, index: str) -> None:
    name = "model.layers.1.block_sparse_moe.experts.2.w1.weight"
    change_weights(folder, lambda weights: {key.replace(".2.w1", f".{index}.w1") if key == name else key: value
                                            for key, value in weights.items()})  # fmt: skip
    with pytest.raises(InputError, match=r"experts"):
        load_model(str(folder))


def cut(folder: Path, end: int) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:end])


def test_weights_that_are_not_in_the_family_are_refused(saved: Path) -> None:
    from inferometer.engines.hf.decoder import Decoder

    model = load_model(str(saved)).model
    model.model.layers[1].self_attn.sinks = torch.nn.Parameter(torch.ones(4))
    with pytest.raises(InputError, match=r"can't place: layers\.1\.self_attn\.sinks"):
        Decoder(model)


def test_code_in_a_folder_is_not_run(folder: Path) -> None:
    (folder / "own.py").write_text("raise SystemExit('was run')")
    change_config(folder, auto_map={"AutoConfig": "own.Config", "AutoModelForCausalLM": "own.Model"})
    assert type(load_model(str(folder)).model).__name__ == "MixtralForCausalLM"


def test_a_file_is_no_folder(saved: Path) -> None:
    with pytest.raises(
        InputError, match=r"expected a folder with config\.json and safetensors, or a GGUF file, found another file"
    ):
        load_model(str(saved / "config.json"))
