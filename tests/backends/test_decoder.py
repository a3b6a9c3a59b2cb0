"""Plain PyTorch, which every other backend is compared with, against float64; and compiled, against plain.

B sequences, T queries, S keys, Hq query heads, Hk key heads, D head size, V vocabulary, E experts.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.backends.attention_by_definition import attended

torch = pytest.importorskip("torch", reason="torch isn't installed")

from inferometer.backends.compile import decoder as compiled  # noqa: E402
from inferometer.backends.torch import decoder as eager  # noqa: E402
from inferometer.engines import arms  # noqa: E402  torch comes first
from inferometer.errors import UnknownName  # noqa: E402
from inferometer.operators.decoder.contracts import CONTRACTS  # noqa: E402

ERROR = {"float32": 1e-6, "float16": 8e-4, "bfloat16": 8e-3}  # of the norm: an answer may be rounded three times
DTYPES = tuple(ERROR)
CPU_UNCOMPILED = compiled.DECODER.unavailable("cpu")


@pytest.fixture(autouse=True)
def without_gradients() -> Iterator[None]:
    with torch.no_grad():
        yield


def draw(*shape: int, dtype: str = "float32", seed: int = 0) -> Any:
    made = torch.randn(shape, generator=torch.Generator().manual_seed(seed + sum(shape)))
    return made.to(getattr(torch, dtype))


def run(operator: str, *args: Any, **settings: Any) -> Any:
    return arms.run(arms.TORCH_ONLY, operator, args, settings)[0]


def assert_near(found: Any, right64: Any, dtype: str) -> None:
    assert (found.shape, found.dtype) == (right64.shape, getattr(torch, dtype))
    assert (found.double() - right64).norm() <= ERROR[dtype] * right64.norm()


def test_torch_has_every_operator_and_refuses_nothing() -> None:
    assert set(eager.DECODER.operators) == set(CONTRACTS) == set(eager.FUNCTIONS)
    assert eager.DECODER.load("linear").refuses(1, 2, 3) is None
    with pytest.raises(UnknownName, match="norm"):
        eager.DECODER.load("norm")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("offset", "late"), [(0.0, False), (0.5, False), (1.0, True), (0.0, True)])
def test_norms(offset: float, late: bool, dtype: str) -> None:
    x, residual, weight = draw(2, 3, 63, dtype=dtype), draw(2, 3, 63, dtype=dtype, seed=1), draw(63, dtype=dtype)
    settings = {"eps": 1e-2, "offset": offset, "late_cast": late}
    normed, total = run("add_rms_norm", x, residual, weight, **settings)
    assert torch.equal(total, x + residual)
    for found, given in ((normed, x + residual), (run("rms_norm", x, weight, **settings), x)):
        given64 = given.double()
        scaled = given64 / (given64.square().mean(-1, keepdim=True) + 1e-2).sqrt()
        assert_near(found, scaled * (weight.double() + offset), dtype)


def test_a_norm_rounds_where_the_contract_says() -> None:
    x, weight = draw(4, 512, dtype="bfloat16"), draw(512, dtype="bfloat16")
    scaled = x.float() * (x.float().square().mean(-1, keepdim=True) + 1e-6).rsqrt()
    early, late = weight * scaled.to(torch.bfloat16), (scaled * (1 + weight.float())).to(torch.bfloat16)
    assert torch.equal(run("rms_norm", x, weight, eps=1e-6), early)
    assert torch.equal(run("rms_norm", x, weight, eps=1e-6, offset=1.0, late_cast=True), late)


@pytest.mark.parametrize("dtype", DTYPES)
def test_rope_turns_pairs_of_halves(dtype: str) -> None:
    q, k, angle = draw(2, 4, 5, 6, dtype=dtype), draw(2, 1, 5, 6, dtype=dtype), draw(2, 5, 3)
    cos, sin = (each(torch.cat((angle, angle), -1)).to(q.dtype) for each in (torch.cos, torch.sin))
    turn = torch.complex(cos[..., :3].double(), sin[..., :3].double())[:, None]
    for found, given in zip(run("rope", q, k, cos, sin), (q, k), strict=True):
        turned = torch.complex(*given.double().chunk(2, -1)) * turn
        assert_near(found, torch.cat((turned.real, turned.imag), -1), dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("softcap", [None, 3.0])
@pytest.mark.parametrize("window", [None, 1, 5, 20, 100])
@pytest.mark.parametrize(("T", "S", "heads"), [(1, 1, (2, 2)), (1, 33, (4, 2)), (20, 20, (4, 1)), (7, 20, (4, 2))])
def test_attention_sees_what_it_should(
    T: int, S: int, heads: tuple[int, int], window: int | None, softcap: float | None, dtype: str
) -> None:
    q = 2 * draw(2, T, heads[0], 24, dtype=dtype).transpose(1, 2)  # as a projection leaves it
    k, v = draw(2, heads[1], S, 24, dtype=dtype), draw(2, heads[1], S, 24, dtype=dtype, seed=1)
    wanted = attended(q, k, v, 0.3, window, softcap)
    for name in ("attention_prefill", "attention_decode")[: 2 if T == 1 else 1]:
        found = run(name, q, k, v, scale=0.3, window=window, softcap=softcap)
        assert found.is_contiguous()
        assert_near(found, wanted, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_linear_and_gated_products(dtype: str) -> None:
    x, weight, bias = draw(2, 3, 63, dtype=dtype), draw(5, 63, dtype=dtype), draw(5, dtype=dtype)
    product = torch.einsum("btk,nk->btn", x.double(), weight.double())
    assert_near(run("linear", x, weight, None), product, dtype)
    assert_near(run("linear", x, weight, bias), product + bias.double(), dtype)
    gate, up = draw(2, 3, 63, dtype=dtype), draw(2, 3, 63, dtype=dtype, seed=1)
    gate64, up64 = gate.double(), up.double()
    assert_near(run("silu_mul", gate, up), gate64 / (1 + (-gate64).exp()) * up64, dtype)
    inner = math.sqrt(2 / math.pi) * (gate64 + 0.044715 * gate64**3)
    assert_near(run("gelu_mul", gate, up), gate64 / 2 * (1 + torch.tanh(inner)) * up64, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_softmax_is_float32_and_divided_by_the_temperature_first(dtype: str) -> None:
    logits = draw(3, 129, dtype=dtype)
    for temperature in (1.0, 0.3):
        power = (logits.double() / temperature).exp()
        assert_near(run("softmax", logits, temperature=temperature), power / power.sum(-1, keepdim=True), "float32")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("V", [3, 129, 100_003])
def test_argmax_is_the_first_of_equals(V: int, dtype: str) -> None:
    logits = torch.zeros(3, V, dtype=getattr(torch, dtype))
    logits[1, V // 3 :] = 2.0
    logits[2, -1] = 1.0
    assert run("argmax", logits).tolist() == [0, V // 3, V - 1]


THIRDS = [0.1, 0.3, 0.3, 0.3]


@pytest.mark.parametrize(
    ("k", "p", "uniform", "token"),
    [
        (0, 1.0, 0.0, 0),
        (0, 1.0, 0.11, 1),
        (0, 1.0, 0.999, 3),
        (2, 1.0, 0.0, 1),  # of the three equals the first two
        (2, 1.0, 0.999, 2),
        (3, 1.0, 0.999, 3),
        (9, 1.0, 0.0, 0),  # more than there are: all
        (0, 0.0, 0.999, 1),  # at least one is kept
        (0, 0.5, 0.999, 2),
        (0, 0.65, 0.999, 3),
        (2, 0.45, 0.999, 1),  # of 0.6, not of 1
        (2, 0.55, 0.999, 2),
    ],
)
def test_top_k_and_top_p_keep_the_first_of_equals(k: int, p: float, uniform: float, token: int) -> None:
    found = run("top_k_top_p", torch.tensor([THIRDS]), torch.tensor([uniform]), k=k, p=p)
    assert (found.tolist(), found.dtype) == ([token], torch.int64)


def taken(probabilities: list[float], uniform: float, k: int, p: float) -> int:
    """By the contract's words, in exact order."""
    order = sorted(range(len(probabilities)), key=lambda token: (-probabilities[token], token))[: k or None]
    total, reached = sum(probabilities[token] for token in order), 0.0
    kept: set[int] = set()
    for token in order:
        if kept and reached >= p * total:
            break
        kept.add(token)
        reached += probabilities[token]
    running = 0.0
    for token, probability in enumerate(probabilities):
        running += probability if token in kept else 0.0
        if running > uniform * reached:
            return token
    raise AssertionError


@pytest.mark.parametrize(("k", "p"), [(0, 1.0), (7, 1.0), (0, 0.8), (7, 0.8), (1, 0.5)])
def test_top_k_and_top_p_of_many(k: int, p: float) -> None:
    probabilities, uniform = torch.softmax(draw(40, 63), -1), torch.rand(40, generator=torch.Generator().manual_seed(1))
    wanted = [taken(row, u, k, p) for row, u in zip(probabilities.tolist(), uniform.tolist(), strict=True)]
    assert run("top_k_top_p", probabilities, uniform, k=k, p=p).tolist() == wanted


@pytest.mark.parametrize("renormalize", [False, True])
def test_routes_are_the_most_probable_experts_the_largest_first(renormalize: bool) -> None:
    logits = draw(9, 8, dtype="bfloat16")
    logits[0] = torch.tensor([0, 3, 1, 7, 2, 6, 5, 4])  # float32 inside: bfloat16 has no 0.6321
    weights, experts = run("moe_route", logits, k=3, renormalize=renormalize)
    assert experts[0].tolist() == [3, 5, 6]
    probability = torch.softmax(logits.double(), -1)
    largest = probability.sort(-1, descending=True).values[:, :3]
    assert torch.equal(probability.gather(1, experts), largest)
    assert_near(weights, largest / largest.sum(-1, keepdim=True) if renormalize else largest, "float32")


def test_compile_is_told_from_what_would_run_eagerly(monkeypatch: pytest.MonkeyPatch) -> None:
    assert set(compiled.DECODER.operators) == set(CONTRACTS)
    with pytest.raises(UnknownName, match="norm"):
        compiled.DECODER.load("norm")
    monkeypatch.setenv("TORCH_COMPILE_DISABLE", "1")
    assert "TORCH_COMPILE_DISABLE=1" in str(compiled.DECODER.unavailable("cpu"))


@pytest.mark.skipif(CPU_UNCOMPILED is not None, reason=str(CPU_UNCOMPILED))
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what torch.compile imports
def test_compiled_decoding_answers_as_plain_and_compiles_once() -> None:
    """Six steps, each with a key more; then more shapes than allowed, which is an error and not eager code."""
    from torch._dynamo import config
    from torch._dynamo.exc import FailOnRecompileLimitHit
    from torch._dynamo.utils import counters

    attend = compiled.DECODER.load("attention_decode").call
    before = counters["stats"]["unique_graphs"]
    for S in range(33, 39):
        q, k, v = draw(1, 4, 1, 16), draw(1, 2, S, 16), draw(1, 2, S, 16, seed=1)
        found = attend(q, k, v, scale=0.25, window=20)
        assert_near(found, run("attention_decode", q, k, v, scale=0.25, window=20).double(), "float32")
    assert counters["stats"]["unique_graphs"] - before == 1
    with config.patch(cache_size_limit=1), pytest.raises(FailOnRecompileLimitHit):
        attend(draw(3, 4, 1, 24), draw(3, 2, 40, 24), draw(3, 2, 40, 24), scale=0.25)


@pytest.mark.skipif(CPU_UNCOMPILED is not None, reason=str(CPU_UNCOMPILED))
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what torch.compile imports
def test_compiled_operators_answer_as_plain_ones() -> None:
    load: Callable[[str], Any] = lambda name: compiled.DECODER.load(name).call  # noqa: E731
    weight = draw(63)
    for T in (5, 9):  # one kernel
        x = draw(2, T, 63)
        wanted = run("rms_norm", x, weight, eps=1e-6, offset=1.0, late_cast=True)
        assert_near(load("rms_norm")(x, weight, eps=1e-6, offset=1.0, late_cast=True), wanted.double(), "float32")
    tied = torch.tensor([THIRDS, THIRDS[::-1]])
    assert load("argmax")(tied).tolist() == [1, 0]
    uniform = torch.tensor([0.999, 0.999])
    assert load("top_k_top_p")(tied, uniform, k=2, p=0.9).tolist() == [2, 1]
