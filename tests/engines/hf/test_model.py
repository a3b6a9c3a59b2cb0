"""Models run with operators of any backend: the numbers of transformers, every operator reached, nothing patched."""

import importlib
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import pytest
from tests.engines.made_backends import decoder_backend

from inferometer.architectures import count_parameters, read_model
from inferometer.backends.backend import DecoderKernel
from inferometer.engines import arms, memory
from inferometer.engines.arms import Arm, Check, checking, using
from inferometer.engines.chat.tokens import BytesTokenizer
from inferometer.engines.generation import generate, take_first
from inferometer.engines.hf.loading import build_random
from inferometer.engines.hf.model import HfEngine, bundled_names, load_model
from inferometer.engines.paths import PathRecorder
from inferometer.engines.random_weights import fill
from inferometer.errors import InferometerError, InputError, Unavailable, UnknownName

torch: Any = pytest.importorskip("torch")
pytest.importorskip("transformers")

FAMILIES = ("tiny-llama", "tiny-gemma2", "tiny-gemma3", "tiny-mixtral", "tiny-qwen-moe", "tiny-qwen2", "tiny-qwen3")
PROMPT, NEW = 23, 6  # past the window of 16
DENSE = {"rms_norm", "rope", "attention_prefill", "attention_decode", "linear"}
OPERATORS = {name: DENSE | {"silu_mul"} for name in FAMILIES}
OPERATORS |= {name: DENSE | {"gelu_mul"} for name in ("tiny-gemma2", "tiny-gemma3")}
OPERATORS |= {name: DENSE | {"silu_mul", "moe_route"} for name in ("tiny-mixtral", "tiny-qwen-moe")}


@cache
def engine_of(name: str) -> HfEngine:
    return load_model(name)


def tokens(length: int = PROMPT + NEW, batch: int = 2) -> Any:
    return torch.randint(0, 256, (batch, length), generator=torch.Generator().manual_seed(1))


def run(engine: HfEngine, tokens_BT: Any, prompt: int = PROMPT) -> list[Any]:
    """Logits [B, V] after the prompt and after each token behind it."""
    cache = engine.start(*tokens_BT.shape)
    steps = [tokens_BT[:, :prompt], *(tokens_BT[:, at : at + 1] for at in range(prompt, tokens_BT.shape[1]))]
    return [engine.forward(cache, step) for step in steps]


def assert_near(found: Any, wanted: Any, relative: float = 1e-5) -> None:
    assert (found - wanted).abs().max() <= relative * wanted.abs().max()


def arm_with(operator: str, function: Callable[..., Any]) -> Arm:
    """The base, but for one operator."""
    backend = decoder_backend("ours", (operator,), lambda name: DecoderKernel(function))
    return Arm("ours", {operator: backend})


def test_the_small_models_are_the_seven_families_one_deep_and_the_default_is_first() -> None:
    assert bundled_names() == (*FAMILIES[:3], "tiny-gemma3-26l", *FAMILIES[3:])


@pytest.mark.parametrize("name", FAMILIES)
def test_logits_are_those_of_transformers_in_prefill_decode_and_chunks(name: str) -> None:
    engine, tokens_BT = engine_of(name), tokens(PROMPT + NEW + 9)
    with torch.no_grad():
        wanted_BTV = engine.model(tokens_BT, use_cache=False).logits
    cache = engine.start(2, PROMPT + NEW + 9)
    assert_near(engine.forward(cache, tokens_BT[:, :PROMPT]), wanted_BTV[:, PROMPT - 1])
    for at in range(PROMPT, PROMPT + NEW):
        assert_near(engine.forward(cache, tokens_BT[:, at : at + 1]), wanted_BTV[:, at])
    assert_near(engine.forward(cache, tokens_BT[:, PROMPT + NEW :]), wanted_BTV[:, -1])
    assert 2 < wanted_BTV.std() < 4  # neither flat nor certain


@pytest.mark.parametrize(
    ("name", "window"),
    [("tiny-qwen2", {"use_sliding_window": True, "max_window_layers": 1}), ("tiny-mixtral", {})],
)
def test_windows_of_families_that_seldom_have_one_are_those_of_transformers(name: str, window: dict[str, Any]) -> None:
    fields = {**engine_of(name).config, "sliding_window": 8, **window}
    model = build_random(name, fields, 0, device="cpu", dtype="float32")
    if name == "tiny-qwen2" and not hasattr(model.config, "layer_types"):
        pytest.skip("transformers that knows no layer_types has no window for it in plain attention")
    engine = HfEngine(model, fields, BytesTokenizer(), name=name, source="")
    with torch.no_grad():
        wanted_BTV = model(tokens(), use_cache=False).logits
    for at, logits_BV in enumerate(run(engine, tokens())):
        assert_near(logits_BV, wanted_BTV[:, PROMPT - 1 + at])
    assert (run(engine_of(name), tokens())[0] - wanted_BTV[:, PROMPT - 1]).abs().max() > 1e-2


@pytest.mark.parametrize("name", FAMILIES)
def test_greedy_tokens_are_those_of_transformers_generate(name: str) -> None:
    engine, prompt_BT = engine_of(name), tokens(PROMPT)
    wanted_BT = engine.model.generate(
        prompt_BT,
        attention_mask=torch.ones_like(prompt_BT),
        max_new_tokens=NEW,
        min_new_tokens=NEW,
        do_sample=False,
        eos_token_id=None,
        pad_token_id=0,
    )
    with torch.no_grad():
        found = [token_B for _, token_B in generate(engine, prompt_BT, NEW, take_first)]
    assert torch.stack(found, 1).tolist() == wanted_BT[:, PROMPT:].tolist()


@pytest.mark.parametrize("name", ["tiny-llama", "tiny-gemma3"])
def test_norms_round_where_the_family_rounds(name: str) -> None:
    engine = load_model(name, dtype="bfloat16")
    x = torch.randn(5, 64, generator=torch.Generator().manual_seed(0)).to(torch.bfloat16)
    module = engine.model.model.norm
    seen = {}

    class Keep(Check):
        def __call__(self, operator: str, args: tuple[Any, ...], settings: Mapping[str, Any]) -> Any:
            seen.update({operator: dict(settings)})
            return super().__call__(operator, args, settings)

    with checking(Keep()):
        run(engine, tokens(3, 1), 3)
    found = arms.call("rms_norm", x, module.weight, **seen["rms_norm"])
    with torch.no_grad():
        assert torch.equal(found, module(x))
    assert engine.dtype == "bfloat16"
    assert engine.weight_bytes == 2 * engine.parameters


@pytest.mark.parametrize("name", FAMILIES)
def test_every_operator_is_called_through_the_arm_and_a_wrong_one_shows(name: str) -> None:
    engine, tokens_BT = engine_of(name), tokens(PROMPT + 2)
    called: dict[str, int] = {}

    class Count(Check):
        def __call__(self, operator: str, args: tuple[Any, ...], settings: Mapping[str, Any]) -> Any:
            called[operator] = called.get(operator, 0) + 1
            return super().__call__(operator, args, settings)

    with checking(Count()):
        right = run(engine, tokens_BT)
    assert called.keys() == OPERATORS[name]

    def wrong(operator: str) -> Callable[..., Any]:
        base = arms.load(arms.known_backends()["torch"], operator)

        def function(*args: Any, **settings: Any) -> Any:
            out = base.call(*args, **settings)
            return (out[0].roll(1, -1), *out[1:]) if isinstance(out, tuple) else out.roll(1, -1)

        return function

    for operator in called:
        with using(arm_with(operator, wrong(operator))):
            found = run(engine, tokens_BT)
        first = 1 if operator == "attention_decode" else 0
        for at, (logits_BV, right_BV) in enumerate(zip(found, right, strict=True)):
            assert ((logits_BV - right_BV).abs().max() > 1e-3) == (at >= first), (operator, at)


def test_paths_are_the_attributes_of_the_modules() -> None:
    engine, recorder = engine_of("tiny-qwen3"), PathRecorder()
    with recorder.entered():
        run(engine, tokens())
    found = [(path.key, path.operator) for path in recorder.paths if "layers.1" in path.key or "layers" not in path.key]
    layer = "forward.layers.1"
    assert found == [
        ("forward", None),
        ("forward.embed_tokens", None),
        ("forward.rotary_emb", None),
        (layer, None),
        (f"{layer}.input_layernorm", "rms_norm"),
        (f"{layer}.self_attn", None),
        (f"{layer}.self_attn.q_proj", "linear"),
        (f"{layer}.self_attn.k_proj", "linear"),
        (f"{layer}.self_attn.v_proj", "linear"),
        (f"{layer}.self_attn.q_norm", "rms_norm"),
        (f"{layer}.self_attn.k_norm", "rms_norm"),
        (f"{layer}.self_attn.rope", "rope"),
        (f"{layer}.self_attn.cache", None),
        (f"{layer}.self_attn.attention_prefill", "attention_prefill"),
        (f"{layer}.self_attn.o_proj", "linear"),
        (f"{layer}.attention_residual", None),
        (f"{layer}.post_attention_layernorm", "rms_norm"),
        (f"{layer}.mlp", None),
        (f"{layer}.mlp.gate_proj", "linear"),
        (f"{layer}.mlp.up_proj", "linear"),
        (f"{layer}.mlp.silu_mul", "silu_mul"),
        (f"{layer}.mlp.down_proj", "linear"),
        (f"{layer}.feed_forward_residual", None),
        ("forward.norm", "rms_norm"),
        ("forward.lm_head", "linear"),
        (f"{layer}.self_attn.attention_decode", "attention_decode"),
    ]
    layers = [path.name for path in recorder.paths if path.depth == 1 and path.name.startswith("layers")]
    assert layers == ["layers.0", "layers.1", "layers.2"]


def test_experts_and_caps_have_paths_of_their_own() -> None:
    recorder = PathRecorder()
    with recorder.entered():
        run(engine_of("tiny-qwen-moe"), tokens())
        run(engine_of("tiny-gemma2"), tokens())
    keys = {path.key: path.operator for path in recorder.paths}
    mlp = "forward.layers.1.mlp"
    assert keys[f"{mlp}.gate"] == "linear"
    assert keys[f"{mlp}.moe_route"] == "moe_route"
    assert {f"{mlp}.experts", f"{mlp}.experts.dispatch", f"{mlp}.experts.combine"} <= keys.keys()
    assert keys[f"{mlp}.experts.down_proj"] == "linear"
    assert keys[f"{mlp}.experts.silu_mul"] == "silu_mul"
    assert keys[f"{mlp}.shared_expert.gate_proj"] == "linear"
    assert keys[f"{mlp}.shared_expert_gate"] == "linear"
    assert "forward.logit_softcap" in keys


@pytest.mark.parametrize(("name", "site"), [("tiny-llama", "post_attention"), ("tiny-gemma3", "pre_feedforward")])
def test_an_arm_that_has_it_adds_and_norms_in_one_call(name: str, site: str) -> None:
    engine, recorder = engine_of(name), PathRecorder()
    apart = run(engine, tokens())
    fused = arms.load(arms.known_backends()["torch"], "add_rms_norm").call
    with using(arm_with("add_rms_norm", fused)), recorder.entered():
        together = run(engine, tokens())
    for found, wanted in zip(together, apart, strict=True):
        assert_near(found, wanted)
    keys = {path.key: path.operator for path in recorder.paths}
    assert keys[f"forward.layers.0.{site}_layernorm"] == "add_rms_norm"
    assert "forward.layers.0.attention_residual" not in keys
    with using(arm_with("add_rms_norm", lambda *args, **settings: [each * 1.25 for each in fused(*args, **settings)])):
        assert (run(engine, tokens())[0] - apart[0]).abs().max() > 1e-3


def test_the_model_and_its_library_stay_as_they_were() -> None:
    library = importlib.import_module("transformers.models.llama.modeling_llama")
    before = dict(vars(library))
    engine = load_model("tiny-llama", seed=5)
    weights = {name: weight.clone() for name, weight in engine.model.named_parameters()}
    run(engine, tokens())
    assert {name: id(value) for name, value in vars(library).items()} == {name: id(v) for name, v in before.items()}
    assert not [name for name, module in engine.model.named_modules() if "forward" in vars(module)]
    assert all(torch.equal(weight, weights[name]) for name, weight in engine.model.named_parameters())


def test_two_engines_with_two_arms_run_side_by_side_in_threads() -> None:
    names = ("tiny-llama", "tiny-gemma3")
    wanted = {name: run(engine_of(name), tokens()) for name in names}
    base = arms.load(arms.known_backends()["torch"], "linear").call
    calls: dict[str, int] = dict.fromkeys(names, 0)

    def work(name: str) -> list[Any]:
        def linear(*args: Any) -> Any:
            calls[name] += 1
            return base(*args)

        with using(arm_with("linear", linear)):
            return [logits for _ in range(3) for logits in run(engine_of(name), tokens())]

    with ThreadPoolExecutor(2) as pool:
        for name, found in zip(names, pool.map(work, names), strict=True):
            for logits_BV, wanted_BV in zip(found, wanted[name] * 3, strict=True):
                assert_near(logits_BV, wanted_BV)
    assert calls == dict.fromkeys(names, 3 * (1 + NEW) * (3 * 7 + 1))  # seven projections a layer, and the head


def test_the_same_seed_gives_the_same_weights_in_every_dtype() -> None:
    first, again = load_model("tiny-qwen3", seed=7), load_model("tiny-qwen3", seed=7, dtype="bfloat16")
    other = load_model("tiny-qwen3", seed=8)
    pairs = zip(first.model.parameters(), again.model.parameters(), other.model.parameters(), strict=True)
    for weight, rounded, different in pairs:
        assert torch.equal(weight.to(torch.bfloat16), rounded)
        assert not torch.equal(weight, different)
    assert first.source == "random weights, seed 7"
    norm = first.model.model.norm.weight
    assert 0.05 < (norm - 1).abs().mean() < 0.2  # one that is left out shows


def test_a_weight_is_even_and_does_not_depend_on_how_it_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, cut = torch.empty(3, 100_001), torch.empty(3, 100_001)
    fill(whole, "0 a", 0.0, 2.0)
    monkeypatch.setattr("inferometer.engines.random_weights._CHUNK", 2**10)
    fill(cut, "0 a", 0.0, 2.0)
    assert torch.equal(whole, cut)
    assert abs(whole.mean()) < 0.02
    assert abs(whole.std() - 2) < 0.02
    neighbours = torch.corrcoef(torch.stack([whole.flatten()[1:], whole.flatten()[:-1]]))
    assert abs(neighbours[0, 1]) < 0.01


def test_building_a_model_draws_nothing_from_the_users_generator() -> None:
    torch.manual_seed(3)
    wanted = torch.rand(4)
    torch.manual_seed(3)
    load_model("tiny-mixtral")
    assert torch.equal(torch.rand(4), wanted)


@pytest.mark.parametrize("name", FAMILIES)
def test_parameters_are_those_that_the_architecture_counts(name: str) -> None:
    import json

    engine = engine_of(name)
    biases = sum(w.numel() for n, w in engine.model.named_parameters() if n.endswith("bias"))
    counted = count_parameters(read_model(json.dumps(engine.config)))
    assert engine.parameters in (counted, counted + biases)
    assert engine.weight_bytes == 4 * engine.parameters
    assert engine.vocabulary == 320
    assert engine.context_limit == 4096
    assert engine.tokenizer.name == "bytes"
    assert engine.device == "cpu"


def test_a_published_shape_that_does_not_fit_is_refused_before_anything_is_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(memory, "free_bytes", lambda device: 10**9)
    with pytest.raises(Unavailable) as error:
        load_model("llama_3_1_8b", dtype="bfloat16")
    assert str(error.value).splitlines()[0] == (
        "Llama-3.1-8B: weights in bfloat16: expected 16.061 GB on cpu, found 1.000 GB free"
    )


def test_running_out_of_memory_says_what_it_was_for(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_of("tiny-llama")
    with pytest.raises(
        Unavailable, match=r"keys and values of 1000000000 sequences of 4096 positions: expected 3\.146 PB"
    ):
        engine.start(10**9, 4096)
    monkeypatch.setattr(memory, "free_bytes", lambda device: None)  # a system that doesn't tell
    with pytest.raises(Unavailable, match=r"out of memory on cpu; its weights or cache alone are 3\.146 PB"):
        engine.start(10**9, 4096)

    def out_of_memory(*args: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory")

    with (
        using(arm_with("linear", out_of_memory)),
        pytest.raises(Unavailable, match="a pass over 2 sequences of 23 tokens: out of memory"),
    ):
        run(engine, tokens())


def test_another_error_of_a_backend_stays_what_it_is() -> None:
    def broken(*args: Any) -> Any:
        raise RuntimeError("an illegal instruction")

    with using(arm_with("linear", broken)), pytest.raises(RuntimeError, match="illegal instruction"):
        run(engine_of("tiny-llama"), tokens())


def test_positions_beyond_the_limit_or_the_cache_are_refused() -> None:
    engine = engine_of("tiny-llama")
    with pytest.raises(InputError, match=r"at most 4096 positions \(max_position_embeddings\), found 4097"):
        engine.start(1, 4097)
    cache = engine.start(2, 10)
    engine.forward(cache, tokens(8))
    with pytest.raises(InputError, match="room for 10 positions, found 8 and 3 more"):
        engine.forward(cache, tokens(3))
    with pytest.raises(InputError, match="at least one token"):
        engine.forward(cache, tokens(0))
    with pytest.raises(InputError, match="is for 2 sequences, found 1"):
        engine.forward(cache, tokens(1, 1))


@pytest.mark.parametrize(
    ("model", "options", "kind", "words"),
    [
        ("tiny-lama", {}, UnknownName, "Known, nearest first: tiny-llama, "),
        ("deepseek_v3", {}, UnknownName, 'unknown architecture (model_type) "deepseek_v3"'),
        ("meta-llama/Llama-3.1-8B", {}, InputError, "there is no such folder\n  Nothing is downloaded"),
        ("tiny-llama", {"device": "cuda:99"}, Unavailable, "there is no GPU cuda:99 here"),
        ("tiny-llama", {"device": "tpu"}, Unavailable, "expected cpu or cuda as the device, found tpu"),
        ("tiny-llama", {"dtype": "int8"}, UnknownName, 'unknown dtype "int8"'),
    ],
)
def test_what_is_not_there_is_said(
    model: str, options: dict[str, str], kind: type[InferometerError], words: str
) -> None:
    with pytest.raises(kind) as error:
        load_model(model, **options)  # type: ignore[arg-type]
    assert words in str(error.value)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_gets_the_same_weights_and_logits() -> None:
    there = load_model("tiny-gemma3", device="cuda")
    for weight, wanted in zip(there.model.parameters(), engine_of("tiny-gemma3").model.parameters(), strict=True):
        assert torch.equal(weight.cpu(), wanted)
    for found, right in zip(run(there, tokens().cuda()), run(engine_of("tiny-gemma3"), tokens()), strict=True):
        assert_near(found.cpu(), right, 1e-3)
