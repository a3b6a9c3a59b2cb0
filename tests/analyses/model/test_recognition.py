"""Models by the shapes of their products: each known one is found, split or not; what resembles one isn't named."""

import json
from collections.abc import Sequence

import polars as pl
import pytest

from inferometer.analyses.model.recognition import Recognised, find_matrices, recognise
from inferometer.architectures.dimensions import Dimensions, known_dimensions

Product = tuple[str, list[list[int]], int]


def ops(*products: Product) -> pl.DataFrame:
    """Ops with their shapes and times."""
    rows = [{"op": op, "input_dims": json.dumps(dims), "total_ns": time} for op, dims, time in products]
    return pl.DataFrame(rows, schema={"op": pl.String, "input_dims": pl.String, "total_ns": pl.Int64})


def asked(*products: Product) -> list[Recognised]:
    return recognise(find_matrices(ops(*products)))


def mm(inner: int, outer: int, time: int = 100, rows: int = 7) -> Product:
    return "aten::mm", [[rows, inner], [inner, outer]], time


def layer(of: Dimensions, split: int) -> list[Product]:
    """What one of so many devices multiplies in a step, as an engine fuses it; from the papers, not from our code."""
    D, H, K = of.hidden, of.heads // split, max(1, of.kv_heads // split)
    if of.latent is None:
        made = [mm(D, (H + 2 * K) * of.head_dim), mm(H * of.head_dim, D)]
    else:
        queries = H * (of.latent.nope + of.latent.rope)
        first = of.latent.query_rank
        made = [mm(D, of.latent.rank + of.latent.rope), mm(H * of.latent.value, D)]
        made += [mm(D, queries)] if first is None else [mm(D, first), mm(first, queries)]
    if of.intermediate is not None:
        made += [mm(D, 2 * of.intermediate // split), mm(of.intermediate // split, D)]
    if of.experts is not None and of.expert_width is not None:
        width = of.expert_width // split
        made += [
            mm(D, of.experts),
            ("vllm::moe_forward", [[7, D], [of.experts, 2 * width, D], [of.experts, D, width]], 900),
        ]
    return [*made, mm(D, -(-of.vocab // split))]


@pytest.mark.parametrize("split", [1, 2, 8])
def test_each_known_model_is_found_and_whatever_has_the_same_matrices(split: int) -> None:
    for model in known_dimensions():
        widths = [width for width in (model.intermediate, model.expert_width, model.shared_width) if width]
        if model.heads % split or any(width % split for width in widths):
            continue
        found = asked(*layer(model, split))
        assert [model.name, split] in [[*each] for answer in found for each in answer.models], model.name
        for other, over in (each for answer in found for each in answer.models):
            (twin,) = [each for each in known_dimensions() if each.name == other]
            assert {str(each[1]) for each in layer(twin, over)} == {str(each[1]) for each in layer(model, split)}


def test_roles_and_the_split_are_said() -> None:
    (found,) = asked(mm(4096, 3072), mm(2048, 4096), mm(4096, 14336), mm(7168, 4096), mm(4096, 64128, 1))
    assert found.models == (("Llama-3.1-8B", 2),)
    assert found.split == 2
    assert found.agree == ("attention in", "attention out", "feed-forward in", "feed-forward out", "vocabulary")


def test_of_several_that_fit_equally_all_are_named() -> None:
    (found,) = asked(mm(4096, 6144), mm(4096, 4096), mm(4096, 28672), mm(14336, 4096))
    assert found.say_models() == "Llama-3.1-8B or Mistral-7B-v0.1 or Mistral-7B-v0.3"
    assert "vocabulary" not in found.agree


def test_a_weight_that_is_stored_turned_around_is_the_same() -> None:
    turned: Sequence[Product] = [
        ("aten::linear", [[3, 5, 4096], [6144, 4096], [6144]], 9),
        ("aten::addmm", [[4096], [15, 4096], [4096, 4096], [], []], 9),
        ("cutlass_scaled_mm", [[15, 28672], [15, 4096], [28672, 4096]], 9),
        ("aten::mm", [[15, 14336], [14336, 4096]], 9),
        mm(4096, 32000, 1),
    ]
    assert [each.models for each in asked(*turned)] == [(("Mistral-7B-v0.1", 1),)]


@pytest.mark.parametrize(
    "products",
    [
        pytest.param([mm(1024, 1024), mm(1024, 2816), mm(1024, 256), mm(2816, 1024)], id="other key heads"),
        pytest.param([mm(1024, 1024), mm(1024, 2816), mm(2816, 1024), mm(1024, 32000, 1)], id="another vocabulary"),
        pytest.param([mm(4096, 6144), mm(4096, 4096)], id="attention alone"),
        pytest.param([mm(4096, 28672), mm(14336, 4096)], id="feed-forward alone"),
        pytest.param([mm(768, 3072), mm(768, 768), mm(3072, 768)], id="a vision transformer"),
        pytest.param([mm(4096, 64128)], id="half of a vocabulary alone"),
        pytest.param([("aten::copy_", [[4096, 6144], [4096, 6144]], 9)], id="no product"),
        pytest.param([("aten::mm", [[7], [4096, 6144]], 9), ("aten::mm", [], 9)], id="no two matrices"),
        pytest.param([], id="nothing"),
    ],
)
def test_nothing_is_named_where_it_does_not_fit(products: list[Product]) -> None:
    assert asked(*products) == []


def test_the_output_projection_alone_names_all_of_its_width() -> None:
    (found,) = asked(mm(2880, 201088))
    assert found.is_by_vocabulary
    assert [name for name, _ in found.models] == ["gpt-oss-120b", "gpt-oss-20b"]


@pytest.mark.parametrize("text", ["[[7,4096],[4096,61…", "{}", "[[[[[1]]]], 7, null]", "[" * 5_000, "[[1e9,2],[2,3]]"])
def test_arguments_that_are_cut_or_no_shapes_say_nothing(text: str) -> None:
    frame = ops().vstack(pl.DataFrame({"op": ["aten::mm"], "input_dims": [text], "total_ns": [1]}))
    assert find_matrices(frame).products == {}
