"""Our Triton kernels of attention, interpreted: against float64 one query at a time, with memory full of NaN.

And compiled for a GPU, without one. B sequences, T queries, S keys, Hq query heads, Hk key heads, D head size.
"""

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.backends.attention_by_definition import attended

torch = pytest.importorskip("torch", reason="torch isn't installed")
pytest.importorskip("triton", reason="triton isn't installed")

from inferometer.backends.triton import BACKEND  # noqa: E402  torch comes first
from inferometer.backends.triton.loading import load_kernels  # noqa: E402
from inferometer.bench.builds.building import build_candidate  # noqa: E402
from inferometer.bench.comparison import compare_outputs  # noqa: E402
from inferometer.operators import operators, require_operator  # noqa: E402

ERROR = {"float32": 2e-6, "float16": 6e-4, "bfloat16": 5e-3}  # of the norm: weights and answer are rounded
CATALOGUES = ("attention_forward", "paged_attention_decode", "unified_attention")
BUILT = """
import torch
from inferometer.backends.triton.kernels.attention import attention_decode, attention_prefill

def unified_attention(q, *others):
    q, k = (torch.ones(1, heads, 300, 128, dtype=q.dtype) for heads in (32, 8))
    attention_prefill(q, k, k, scale=1.0)
    attention_decode(q[:, :, :1], k, k, scale=1.0)
"""


@pytest.fixture(autouse=True)
def poisoned(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """New memory is full of NaN."""

    def filled(make: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args, **kwargs: make(*args, **kwargs).fill_(math.nan)

    for name in ("empty", "empty_like"):
        monkeypatch.setattr(torch, name, filled(getattr(torch, name)))
    with torch.no_grad():
        yield


def draw(
    T: int, S: int, Hq: int, Hk: int, D: int, dtype: str = "float32", B: int = 1, strength: float = 2.0
) -> tuple[Any, ...]:
    """q with heads swapped with tokens, k with gaps between its elements, v in a longer cache that holds NaN."""
    generator = torch.Generator().manual_seed(T + S)
    q, k, v = (torch.randn(shape, generator=generator) for shape in ((B, T, Hq, D), (B, Hk, S, D, 2), (B, Hk, S, D)))
    cache = torch.full((B, Hk, S + 9, D), math.nan)
    cache[:, :, :S] = v
    kind = getattr(torch, dtype)
    return (strength * q).to(kind).transpose(1, 2), k.to(kind)[..., 0], cache.to(kind)[:, :, :S]


def check(tensors: tuple[Any, ...], *, window: int | None = None, softcap: float | None = None, **chosen: Any) -> None:
    scale = tensors[0].shape[3] ** -0.5
    attend = load_kernels("attention", "cpu").attend
    found = attend(*tensors, scale=scale, window=window, softcap=softcap, **chosen)
    q, k, v = tensors
    wanted = attended(q, k, v, scale, window, softcap)
    assert (found.shape, found.dtype) == (wanted.shape, tensors[0].dtype)
    error = (found.double() - wanted).norm() / wanted.norm()
    assert error <= ERROR[str(found.dtype).removeprefix("torch.")]


@pytest.mark.parametrize("dtype", ERROR)
@pytest.mark.parametrize(
    ("T", "S", "heads", "D", "window", "softcap"),
    [
        (1, 1, (4, 4), 64, None, None),
        (63, 63, (4, 1), 64, None, None),
        (129, 129, (1, 1), 16, 5, None),
        (7, 129, (8, 1), 72, 64, 30.0),
        (1, 129, (8, 2), 128, 40, None),
        (33, 63, (2, 2), 80, None, 5.0),
        (9, 20, (3, 1), 256, 500, None),
        (5, 130, (2, 1), 8, 1, None),
        (1, 300, (4, 1), 64, 300, 20.0),
    ],
)
def test_a_query_sees_what_it_should(
    T: int, S: int, heads: tuple[int, int], D: int, window: int | None, softcap: float | None, dtype: str
) -> None:
    check(draw(T, S, *heads, D, dtype), window=window, softcap=softcap)


@pytest.mark.parametrize("window", [None, 40, 129])
@pytest.mark.parametrize(("T", "splits"), [(1, 2), (1, 5), (7, 3), (1, 9)])
def test_keys_split_among_programs_give_the_same(T: int, splits: int, window: int | None) -> None:
    """Also more programs than there are tiles of keys: some see nothing."""
    tile = load_kernels("attention", "cpu").Tile(16, 32, warps=4, stages=1)
    check(draw(T, 129, 4, 2, 64, B=2), window=window, tile=tile, splits=splits)


@pytest.mark.parametrize(("rows", "keys"), [(16, 16), (32, 64), (128, 32)])
def test_any_tile_gives_the_same(rows: int, keys: int) -> None:
    tile = load_kernels("attention", "cpu").Tile(rows, keys, warps=4, stages=1)
    check(draw(30, 77, 6, 2, 32, B=2), window=33, tile=tile)


@pytest.mark.parametrize("strength", [1e-3, 0.3, 300.0])
def test_a_cap_is_exact_for_small_and_large_scores(strength: float) -> None:
    check(draw(3, 63, 2, 1, 16, strength=strength), softcap=3.0)


def test_a_score_that_is_very_large_is_no_nan() -> None:
    check(draw(5, 63, 2, 1, 16, strength=1e4))


def test_what_the_kernels_do_not_take_is_refused_in_words() -> None:
    kernels = load_kernels("attention", "cpu")
    q, k, v = draw(2, 5, 4, 2, 16)

    def prefill(*tensors: Any) -> str | None:
        why: str | None = kernels.refuses_prefill(*tensors, scale=1.0, window=3, softcap=None)
        return why

    assert prefill(q, k, v) is None
    assert prefill(q.double(), k.double(), v.double()) == "dtypes float64, float64, float64"
    assert prefill(q, k.half(), v) == "dtypes float32, float16, float32"
    assert prefill(*draw(2, 5, 1, 1, 257)) == "head size 257, above 256"
    assert prefill(q[:, :3], k, v) == "3 query heads for 2 of keys"
    assert prefill(q, k[:, :, :1], v[:, :, :1]) == "2 queries of 1 keys"
    assert prefill(q, k, v[..., :8]) == "shapes (1, 4, 2, 16), (1, 2, 5, 16), (1, 2, 5, 8)"
    assert kernels.refuses_decode(q, k, v, scale=1.0) == "2 queries, not 1"
    assert kernels.refuses_decode(q[:, :, :1], k, v, scale=1.0) is None
    with torch.enable_grad():
        assert prefill(q.clone().requires_grad_(), k, v) == "a gradient is wanted"


@pytest.mark.parametrize(("name", "place"), [(name, i) for name in CATALOGUES for i in range(3)])
def test_the_catalogues_attention_keeps_its_contract(name: str, place: int) -> None:
    operator = operators()[name]
    args = dict(operator.tiny[place])
    tensors = operator.inputs(**args, seed=3)
    found = BACKEND.load(name)(*tensors.values(), **operator.settings_of(args))
    assert [check.reason for check in compare_outputs(operator, found, operator.answer(tensors, args))] == [None]


@pytest.mark.parametrize(
    ("keys", "queries"),
    [([40, 1, 30, 20], [1, 1, 0, 2]), ([70], [5]), ([150, 33], [1, 33])],
    ids=["without queries", "piece of a prompt", "mixed"],
)
def test_queries_of_any_batch_see_the_keys_before_them(keys: list[int], queries: list[int]) -> None:
    operator = operators()["unified_attention"]
    heads = {"num_query_heads": 4, "num_kv_heads": 2, "head_size": 32, "block_size": 16}
    args = {**heads, "seq_lens": keys, "query_lens": queries}
    tensors = operator.inputs(**args, seed=1)
    found = BACKEND.load("unified_attention")(*tensors.values())
    assert [check.reason for check in compare_outputs(operator, found, operator.answer(tensors, args))] == [None]


def test_kernels_compile_to_matrix_instructions_without_spills(tmp_path: Path) -> None:
    candidate = tmp_path / "built.py"
    candidate.write_text(BUILT, "utf-8")
    operator = require_operator("unified_attention")
    found = build_candidate(candidate, operator, [operator.tiny[1]], ("sm_90",))
    (architecture,) = found.architectures
    assert (architecture.failed, architecture.error) == ((), None)
    attending = [build for build in architecture.kernels if build.kernel == "attend_rows"]
    assert [set(build.matrix) for build in attending] == [{"HGMMA"}, {"HMMA"}]  # 128 rows; 16
    assert not any(build.spills for build in architecture.kernels)
