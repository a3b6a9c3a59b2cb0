"""Our Triton kernels, interpreted: against answers in float64 and by rules, on odd sizes and memory full of NaN.

And compiled for a GPU, without one. Attention has its own tests. Legend: B rows or sequences, T tokens, H heads or
hidden size, D head size, V vocabulary, E experts, M rows, N outputs, K inputs.
"""

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="torch isn't installed")
pytest.importorskip("triton", reason="triton isn't installed")

from inferometer.backends import require_backend  # noqa: E402  torch comes first
from inferometer.backends.triton import loading  # noqa: E402
from inferometer.backends.triton.decoder import DECODER  # noqa: E402
from inferometer.bench.builds.building import build_candidate  # noqa: E402
from inferometer.bench.candidates import Candidate  # noqa: E402
from inferometer.bench.comparison import compare_outputs  # noqa: E402
from inferometer.bench.isolation import CandidateProcess  # noqa: E402
from inferometer.bench.session import Session  # noqa: E402
from inferometer.engines import arms  # noqa: E402
from inferometer.errors import Unavailable, UnknownName  # noqa: E402
from inferometer.operators import require_operator  # noqa: E402
from inferometer.operators.decoder.contracts import CONTRACTS  # noqa: E402

DTYPES = ("float32", "float16", "bfloat16")
ERROR = {"float32": 1e-6, "float16": 6e-4, "bfloat16": 5e-3}  # of the norm, three to five roundings
SIZES = (1, 63, 129)
NORMS = ("rms_norm", "fused_add_rms_norm", "fused_qk_rmsnorm")
CATALOGUES = (*NORMS, "silu_and_mul", "topk_filter", "moe_topk_gating_softmax")

KERNELS = "from inferometer.backends.triton.kernels"
BUILT = f"""
import torch
{KERNELS}.linear import linear
{KERNELS}.rope import rope
{KERNELS}.top_k_top_p import top_k_top_p

def linear_sigmoid_mul(x, weight, bias, other):
    heads = torch.ones(1, 2, 5, 64)
    rope(heads, heads, heads[:, 0], heads[:, 0])
    top_k_top_p(torch.ones(2, 5000), torch.ones(2), k=50, p=0.9)
    return linear(x, weight, bias)
"""


@pytest.fixture(autouse=True)
def poisoned(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """New memory is full of NaN, and of the greatest integers."""

    def filled(make: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            made = make(*args, **kwargs)
            return made.fill_(math.nan if made.is_floating_point() else torch.iinfo(made.dtype).max)

        return call

    for name in ("empty", "empty_like"):
        monkeypatch.setattr(torch, name, filled(getattr(torch, name)))
    with torch.no_grad():
        yield


def draw(*shape: int, dtype: str = "float32", seed: int = 0) -> Any:
    made = torch.randn(shape, generator=torch.Generator().manual_seed(seed + sum(shape)), dtype=torch.float64)
    return made.to(getattr(torch, dtype))


def run(operator: str, *args: Any, **settings: Any) -> Any:
    """By `triton`, which must not refuse."""
    out, backend = arms.run(arms.parse_arm("triton"), operator, args, settings)
    assert backend == "triton"
    return out


def assert_near(found: Any, right64: Any, like: Any) -> None:
    """Dtype and shape, and the norm of the error."""
    assert (found.dtype, found.shape) == (like.dtype, right64.shape)
    error = (found.double() - right64).norm() / right64.norm()
    assert error <= ERROR[str(like.dtype).removeprefix("torch.")]


def normed64(x: Any, weight: Any, eps: float, offset: float) -> Any:
    x = x.double()
    return x / (x.square().mean(-1, keepdim=True) + eps).sqrt() * (offset + weight.double())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("H", "offset", "late"), [(1, 0.0, False), (63, 1.0, True), (129, 0.0, False), (16_385, 1.0, True)]
)
def test_rms_norm_alone_and_of_a_sum(H: int, offset: float, late: bool, dtype: str) -> None:
    x, residual, weight = draw(2, 3, H, dtype=dtype), draw(2, 3, H, dtype=dtype, seed=1), draw(H, dtype=dtype)
    settings = {"eps": 1e-3, "offset": offset, "late_cast": late}
    assert_near(run("rms_norm", x, weight, **settings), normed64(x, weight, 1e-3, offset), x)
    normed, total = run("add_rms_norm", x, residual, weight, **settings)
    assert torch.equal(total, x + residual)
    assert_near(normed, normed64(x + residual, weight, 1e-3, offset), x)


def test_where_a_norm_is_rounded_is_a_setting() -> None:
    x, weight = draw(1, 512, dtype="bfloat16"), draw(512, dtype="bfloat16")
    scale = (x.float().square().mean() + 1e-6).rsqrt()
    early = (x.float() * scale).to(torch.bfloat16) * weight
    late = (x.float() * scale * weight.float()).to(torch.bfloat16)
    assert not torch.equal(early, late)
    assert torch.equal(run("rms_norm", x, weight, eps=1e-6), early)  # as CONTRACTS has it
    assert torch.equal(run("rms_norm", x, weight, eps=1e-6, late_cast=True), late)


def test_a_norm_of_swapped_heads_keeps_their_place_in_memory() -> None:
    x, weight = draw(2, 5, 3, 20).transpose(1, 2), draw(20)
    found = run("rms_norm", x, weight, eps=1e-6)
    assert found.stride() == x.stride()
    assert_near(found, normed64(x, weight, 1e-6, 0.0), x)
    gaps = draw(4, 60)[:, 7:27]
    assert_near(run("rms_norm", gaps, weight, eps=1e-6), normed64(gaps, weight, 1e-6, 0.0), gaps)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("B", "T", "Hq", "Hk", "D"), [(1, 1, 1, 1, 2), (2, 7, 6, 2, 18), (1, 65, 3, 1, 64)])
def test_rope_turns_halves_as_complex_numbers(B: int, T: int, Hq: int, Hk: int, D: int, dtype: str) -> None:
    q, k = (draw(B, T, H, D, dtype=dtype, seed=H).transpose(1, 2) for H in (Hq, Hk))
    angle = draw(1, T, D // 2)
    cos, sin = (each(torch.cat((angle, angle), -1)).to(q.dtype) for each in (torch.cos, torch.sin))
    turn = torch.complex(cos[..., : D // 2].double(), sin[..., : D // 2].double())[:, None]
    for found, given in zip(run("rope", q, k, cos, sin), (q, k), strict=True):
        turned = torch.complex(*given.double().chunk(2, -1)) * turn
        assert_near(found, torch.cat((turned.real, turned.imag), -1), given)
        assert found.data_ptr() != given.data_ptr()


def test_rope_in_bfloat16_rounds_where_pytorch_does() -> None:
    q, cos, sin = draw(2, 3, 9, 32, dtype="bfloat16"), *(draw(2, 9, 32, dtype="bfloat16", seed=i) for i in (1, 2))
    first, second = q.chunk(2, -1)
    right = q * cos[:, None] + torch.cat((-second, first), -1) * sin[:, None]
    assert torch.equal(run("rope", q, q, cos, sin)[0], right)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("width", SIZES)
def test_gates_of_halves_of_rows(width: int, dtype: str) -> None:
    gate, up = (draw(3, 5, 2 * width, dtype=dtype) * 4).chunk(2, -1)
    gate64, up64 = gate.double(), up.double()
    assert_near(run("silu_mul", gate, up), gate64 / (1 + (-gate64).exp()) * up64, gate)
    inner = math.sqrt(2 / math.pi) * (gate64 + 0.044715 * gate64**3)
    assert_near(run("gelu_mul", gate, up), gate64 * (1 + inner.tanh()) / 2 * up64, gate)


def test_gates_far_out_are_zero_or_the_value() -> None:
    gate, up = torch.tensor([[-1e4, -100.0, 100.0, 1e4]]), torch.full((1, 4), 2.0)
    for name in ("silu_mul", "gelu_mul"):
        assert run(name, gate, up).tolist() == [[0.0, 0.0, 200.0, 2e4]]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("V", [*SIZES, 8_193])
def test_softmax_of_any_length(V: int, dtype: str) -> None:
    logits = draw(3, V, dtype=dtype) * 4
    logits[0, : V // 2] = -math.inf
    found = run("softmax", logits, temperature=0.7)
    assert_near(found, torch.softmax(logits.double() / 0.7, -1), found)
    assert bool((found[0, : V // 2] == 0).all())


def test_softmax_of_a_row_that_allows_nothing_is_nan() -> None:
    assert bool(run("softmax", torch.full((1, 5), -math.inf)).isnan().all())


@pytest.mark.parametrize("dtype", DTYPES)
def test_argmax_takes_the_first_of_equals_in_any_block(dtype: str) -> None:
    logits = draw(5, 8_200, dtype=dtype).clamp(max=3)
    logits[0, [9, 8_191, 8_199]] = 4.0
    logits[1, 8_195] = 4.0
    logits[2] = -math.inf
    logits[3, [4, 7]] = math.nan
    logits[4] = torch.where(torch.arange(8_200) < 3, -0.0, 0.0)
    assert run("argmax", logits).tolist() == [9, 8_195, 0, 4, 0]
    assert run("argmax", logits[:, :1]).tolist() == [0] * 5


@pytest.mark.parametrize("V", [1, 63, 1_500])
def test_sampling_keeps_exactly_k_and_p(V: int) -> None:
    """Probabilities are multiples of 2^-12, with many equals, so sums are exact in any order."""
    raw = draw(3, V).abs().mul(8).round().clamp(min=1.0) / 2**12
    for row, (k, p) in enumerate(((0, 1.0), (5, 1.0), (0, 0.75), (40, 0.5), (V, 2**-20))):
        uniform = torch.tensor([0.0, 0.4375, 1 - 2**-10]).roll(row)
        right = [by_sorting(*each, k, p) for each in zip(raw.tolist(), uniform.tolist(), strict=True)]
        assert run("top_k_top_p", raw, uniform, k=k, p=p).tolist() == right


def by_sorting(weights: list[float], uniform: float, k: int, p: float) -> int:
    ranked = sorted(range(len(weights)), key=lambda place: (-weights[place], place))[: k or None]
    target, kept = p * sum(weights[place] for place in ranked), list[int]()
    while ranked and (not kept or sum(weights[place] for place in kept) < target):
        kept.append(ranked.pop(0))
    limit, running = uniform * sum(weights[place] for place in kept), 0.0
    for place in sorted(kept):
        running += weights[place]
        if running > limit:
            return place
    raise AssertionError("a uniform below 1 is always passed")


def test_what_has_no_probability_is_never_drawn() -> None:
    row = torch.tensor([[0.0, 0.25, 0.0, 0.75, 0.0]])
    for uniform, right in ((0.0, 1), (0.2, 1), (0.25, 3), (1.0, 3)):
        assert run("top_k_top_p", row, torch.tensor([uniform])).item() == right


@pytest.mark.parametrize("E", [3, *SIZES[1:]])
def test_routing_takes_the_largest_and_of_equals_the_lower(E: int) -> None:
    logits = draw(7, E).mul(2).round()
    right64 = torch.softmax(logits.double(), -1)
    order = logits.sort(dim=-1, descending=True, stable=True).indices[:, :3]
    for renormalize in (False, True):
        weights, experts = run("moe_route", logits, k=3, renormalize=renormalize)
        assert experts.dtype == torch.int64
        assert torch.equal(experts, order)
        chosen = right64.gather(1, order)
        assert_near(weights, chosen / chosen.sum(-1, keepdim=True) if renormalize else chosen, logits)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("M", "N", "K"), [(1, 1, 1), (1, 129, 63), (63, 1, 300), (129, 300, 129)])
def test_linear_of_any_size_with_and_without_a_bias(M: int, N: int, K: int, dtype: str) -> None:
    x, weight, bias = draw(1, M, K, dtype=dtype), draw(N, K, dtype=dtype), draw(N, dtype=dtype)
    right64 = x.double() @ weight.double().T
    assert_near(run("linear", x, weight, None), right64, x)
    assert_near(run("linear", x, weight, bias), right64 + bias.double(), x)


def test_linear_takes_tensors_with_any_distances() -> None:
    x, weight = draw(6, 40)[::2, 3:20], draw(17, 9).T
    assert_near(run("linear", x, weight, None), x.double() @ weight.double().T, x)


def test_each_tile_for_a_gpu_is_right_too() -> None:
    from inferometer.backends.triton.kernels import linear as module

    for dtype, tiles in (("bfloat16", module._NARROW), ("float32", module._WIDE)):
        for tile in tiles.values():
            M, N, K = 2 * tile.rows + 1, tile.columns + 1, tile.depth + 1
            x, weight = draw(M, K, dtype=dtype), draw(N, K, dtype=dtype)
            assert_near(module.linear(x, weight, tile=tile), x.double() @ weight.double().T, x)
    low = module.Tile(16, 16, 16, warps=4, stages=2, group=2)  # groups of tiles, the last of them not full
    x, weight = draw(70, 16), draw(40, 16)
    assert_near(module.linear(x, weight, tile=low), x.double() @ weight.double().T, x)


@pytest.mark.parametrize("name", CATALOGUES)
def test_the_catalogues_operators_are_right(name: str) -> None:
    operator = require_operator(name)
    kernel = require_backend("triton").load(name)
    for args in operator.tiny:
        tensors = operator.inputs(**args, seed=1)
        before = {key: tensor.clone() for key, tensor in tensors.items()}
        found = kernel(*tensors.values(), **operator.settings_of(args))
        checks = compare_outputs(operator, found, operator.answer(tensors, args))
        assert [check for check in checks if not check.is_right] == []
        assert all(torch.equal(tensors[key], before[key]) for key in before)


def test_a_process_of_bench_interprets_the_backend() -> None:
    operator = require_operator("rms_norm")
    (args, *_), session = operator.tiny, Session(operator, Candidate("triton"))
    tensors = operator.inputs(**args, seed=1)
    with CandidateProcess(session) as process:
        (found,) = process.answer(tensors, args).outputs
    (check,) = compare_outputs(operator, found, operator.answer(tensors, args))
    assert check.is_right
    assert not Session(operator, Candidate("torch")).interprets
    assert not Session(operator, Candidate("triton"), device="cuda").interprets


REFUSED: list[tuple[str, Callable[[], tuple[Any, ...]], dict[str, Any], str]] = [
    ("rms_norm", lambda: (draw(2, 4, dtype="float64"), draw(4)), {"eps": 1e-6}, "dtypes float64, float32"),
    ("rms_norm", lambda: (draw(2, 4, dtype="bfloat16"), draw(4)), {"eps": 1e-6}, "dtypes bfloat16, float32"),
    ("rms_norm", lambda: (draw(2, 0), draw(0)), {"eps": 1e-6}, "rows of 0"),
    ("add_rms_norm", lambda: (draw(2, 4), draw(1, 4), draw(4)), {"eps": 1e-6}, "shapes [2, 4] and [1, 4]"),
    ("rope", lambda: (draw(1, 1, 2, 5), draw(1, 1, 2, 5), draw(1, 2, 5), draw(1, 2, 5)), {}, "head size 5"),
    ("rope", lambda: (draw(1, 1, 2, 8), draw(1, 1, 2, 8), draw(1, 2, 4), draw(1, 2, 4)), {}, "turns 4 of 8"),
    ("linear", lambda: (draw(2, 4), draw(3, 4, dtype="float16"), None), {}, "dtypes float32, float16"),
    ("silu_mul", lambda: (draw(2, 4), draw(4)), {}, "shapes [2, 4] and [4]"),
    ("softmax", lambda: (draw(2, 4),), {"temperature": 0.0}, "temperature 0"),
    ("argmax", lambda: (draw(2, 2, 4),), {}, "ndim 3"),
    ("top_k_top_p", lambda: (draw(2, 4, dtype="float16"), draw(2)), {}, "dtypes float16, float32"),
    ("moe_route", lambda: (draw(2, 4),), {"k": 5, "renormalize": True}, "5 of 4 experts"),
]


@pytest.mark.parametrize(("operator", "args", "settings", "why"), REFUSED)
def test_what_a_kernel_does_not_take_is_said(
    operator: str, args: Callable[[], tuple[Any, ...]], settings: dict[str, Any], why: str
) -> None:
    assert DECODER.load(operator).refuses(*args(), **settings) == why


def test_a_wanted_gradient_is_refused() -> None:
    weight = draw(3, 4).requires_grad_()
    refuses = DECODER.load("linear").refuses
    assert refuses(draw(2, 4), weight, None) is None  # of parameters, where none is recorded
    with torch.enable_grad():
        assert refuses(draw(2, 4), weight, None) == "a gradient is wanted"


def test_every_operator_of_a_model_is_there() -> None:
    assert set(DECODER.operators) == set(CONTRACTS)
    assert all(callable(DECODER.load(name).call) for name in CONTRACTS)
    with pytest.raises(UnknownName, match="rms_nrom"):
        DECODER.load("rms_nrom")


def test_where_triton_is_loaded_without_its_interpreter_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    import triton.language.standard as standard
    from triton.runtime import jit

    assert DECODER.unavailable("cpu") is None
    monkeypatch.setattr(standard, "sum", object.__new__(jit.JITFunction))
    why = DECODER.unavailable("cpu")
    assert why is not None
    assert "start the process with TRITON_INTERPRET=1" in why
    with pytest.raises(Unavailable, match="TRITON_INTERPRET=1"):
        loading.load_late("rms_norm", "rms_norm")(draw(1, 4), draw(4))


def test_a_gpu_is_not_given_interpreted_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loading, "torch_unavailable", lambda device: None)  # as if there were one
    assert "TRITON_INTERPRET=1 is set" in str(loading.triton_unavailable("cuda"))
    monkeypatch.delenv("TRITON_INTERPRET")
    assert loading.triton_unavailable("cuda") is None


def test_kernels_compile_for_a_gpu(tmp_path: Path) -> None:
    candidate = tmp_path / "some.py"
    candidate.write_text(BUILT, "utf-8")
    args = {"token_count": 129, "hidden_size": 256, "out_features": 256}
    found = build_candidate(candidate, require_operator("linear_sigmoid_mul"), [args], ["sm_90"])
    assert found.passed, found.findings
    built = {kernel.kernel: kernel for kernel in found.kernels}
    assert set(built) == {"product_tiles", "turned_heads", "sampled_rows"}
    assert all(name.startswith("HGMMA") for name in built["product_tiles"].matrix)
    assert not any(kernel.spills for kernel in found.kernels)
