"""Alignment of replays: against a generated model whose pairs are known, and against a table filled cell by cell."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples

import inferometer
from inferometer.analyses.launched_by.replays import alignment_windows
from inferometer.analyses.launched_by.replays.alignment import LONGEST, Alignment, Symbol, align
from inferometer.names import canonical_name, decode

ADDED = -1


@dataclass(frozen=True)
class Row:
    """A kernel of a sequence; `origin` is its place in the model's step, `ADDED` for one that was added to it."""

    symbol: Symbol
    origin: int = ADDED
    step: int = 0


def kernel(short: str, *shape: int, tile: str = "") -> Symbol:
    return Symbol(f"void {short}<{tile}>()" if tile else short, shape, short)


def layer(batch: int) -> list[Symbol]:
    """15 kernels, some in shapes and some in tiles that depend on the batch, two of them twice."""
    tile = "64x64" if batch <= 16 else "128x128"
    return [
        kernel("add_rms_norm", batch, 1),
        kernel("gemm", 48, 1, tile=tile),
        kernel("split_k_reduce", 48, batch),
        kernel("qk_norm", batch, 32),
        kernel("rope", batch, 40),
        kernel("store_kv_cache", batch, 8),
        kernel("paged_attention", batch, 8, 16),
        kernel("paged_attention_reduce", batch, 32),
        kernel("gemm", 32, 1, tile=tile),
        kernel("split_k_reduce", 32, batch),
        kernel("all_reduce", 80),
        kernel("add_rms_norm", batch, 1),
        kernel("gemm", 192, 1, tile=f"{tile}x2"),
        kernel("silu_and_mul", batch, 12),
        kernel("gemm", 32, 2, tile=f"{tile}x4"),
    ]


def step(batch: int, layers: int = 32) -> list[Row]:
    """A decode step of the model, whole and in order."""
    prologue = [kernel("copy", batch), kernel("fill", 1), kernel("embedding", batch, 4), kernel("rms_norm", batch)]
    epilogue = [
        kernel("add_rms_norm", batch, 1),
        kernel("gather", batch),
        kernel("gemm", 1187, 1, tile="256x128"),
        kernel("softmax", batch),
        kernel("arg_max", batch),
        kernel("copy", batch),
    ]
    return [Row(symbol, i) for i, symbol in enumerate([*prologue, *layer(batch) * layers, *epilogue])]


COPY = Row(kernel("copy_to_host", 1))


def edited(rows: list[Row], rng: np.random.Generator, rate: float) -> list[Row]:
    """With `rate` edits a row, of four kinds: taken out, one of the model added before it, another tile, or shape."""
    found: list[Row] = []
    for row in rows:
        edit = rng.integers(4) if rng.random() < rate else None
        if edit == 0:
            continue
        if edit == 1:
            found.append(replace(rows[rng.integers(len(rows))], origin=ADDED))
        if edit == 2:
            row = replace(row, symbol=msgspec.structs.replace(row.symbol, kernel=f"{row.symbol.kernel}!"))
        if edit == 3:
            row = replace(row, symbol=msgspec.structs.replace(row.symbol, shape=(7, 7)))
        found.append(row)
    return found


def joined(*steps: list[Row], between: int = 0) -> list[Row]:
    """Steps of a reference one after the other, with copies between them."""
    return [replace(row, step=i) for i, rows in enumerate(steps) for row in [*rows, *[COPY] * between]]


def numbers(*sequences: Iterable[Row]) -> tuple[list[list[int]], list[Symbol]]:
    seen: dict[Symbol, int] = {}
    coded = [[seen.setdefault(row.symbol, len(seen)) for row in rows] for rows in sequences]
    return coded, list(seen)


def align_rows(replay: list[Row], reference: list[Row], breaks: Sequence[int] | None = None) -> Alignment | None:
    (left, right), symbols = numbers(replay, reference)
    return align(left, right, symbols, None if breaks is None else np.array(breaks, dtype=np.int64))


def shares(found: Alignment, replay: list[Row], reference: list[Row]) -> tuple[float, float]:
    """Of the pairs those that are right, and of the kernels with a partner in that step those that got it.

    The right partner has the same origin in the step that most pairs are in.
    """
    steps = [reference[row].step for row in found.place.tolist() if row >= 0]
    within = max(set(steps), key=steps.count)
    partner = {row.origin: i for i, row in enumerate(reference) if row.origin != ADDED and row.step == within}
    wanted = [partner.get(row.origin, -1) for row in replay]
    right = sum(place == want >= 0 for place, want in zip(found.place.tolist(), wanted, strict=True))
    return right / max(found.matched, 1), right / max(sum(want >= 0 for want in wanted), 1)


def test_equal_sequences_are_paired_one_by_one() -> None:
    found = align_rows(step(32), step(32))
    assert found is not None
    assert found.place.tolist() == list(range(490))
    assert (found.score, found.matched, found.begin, found.end) == (1.0, 490, 0, 490)


@pytest.mark.parametrize("rate", [0.01, 0.03, 0.05])
def test_edits_on_both_sides_leave_nearly_all_pairs_right(rate: float) -> None:
    rng = np.random.default_rng(3)
    found: list[tuple[float, float]] = []
    for _ in range(8):
        reference = joined(*[edited(step(batch), rng, rate) for batch in (8, 32, 64)], between=5)
        replay = edited(step(32), rng, rate)
        alignment = align_rows(replay, reference)
        assert alignment is not None
        assert {reference[row].step for row in alignment.place.tolist() if row >= 0} == {1}
        found.append(shares(alignment, replay, reference))
    right, paired = np.mean(found, axis=0).tolist()
    print(f"rate {rate}: right {right:.4f}, paired {paired:.4f}")
    assert right >= 0.99
    assert paired >= 0.97


def test_a_missing_kernel_shifts_no_layer() -> None:
    replay = step(32)
    del replay[4]
    found = align_rows(replay, step(32))
    assert found is not None
    assert found.place.tolist() == [row.origin for row in replay]


@pytest.mark.parametrize(("first", "last"), [(200, 490), (0, 333), (4, 490)])
def test_a_cut_replay_lies_at_the_end_that_it_has(first: int, last: int) -> None:
    found = align_rows(step(32)[first:last], [*step(8), *step(32)])
    assert found is not None
    assert found.place.tolist() == list(range(490 + first, 490 + last))


def test_a_replay_cut_on_both_sides_lies_at_the_first_place_with_its_layers() -> None:
    found = align_rows(step(32)[4 + 15 * 10 : 4 + 15 * 20], step(32))
    assert found is not None
    assert found.place.tolist() == list(range(4, 4 + 150))


def test_of_equal_steps_the_first_is_taken() -> None:
    reference = [*step(8), *step(32), *[COPY] * 3, *step(32), *step(32)]
    found = align_rows(step(32), reference)
    assert found is not None
    assert (found.begin, found.end) == (490, 980)


def test_the_batch_with_the_same_grids_is_taken_though_others_are_longer_or_earlier() -> None:
    batches = [1, 2, 4, 8, 16, 24, 32, 40, 48, 64]
    reference = [row for batch in batches for row in step(batch)]
    breaks = [i for i in range(len(batches)) for _ in range(490)]
    for i, batch in enumerate(batches):
        found = align_rows(step(batch), reference, breaks)
        assert found is not None
        assert (found.begin, found.end, found.score) == (490 * i, 490 * (i + 1), 1.0)


def test_a_batch_that_the_reference_has_not_is_aligned_with_a_lower_score() -> None:
    found = align_rows(step(24), step(32))
    assert found is not None
    assert found.place.tolist() == list(range(490))
    assert 0.5 < found.score < 0.9


def test_the_same_kernels_of_other_tiles_alone_are_too_little() -> None:
    varied = [
        replace(row, symbol=msgspec.structs.replace(row.symbol, kernel=f"{row.symbol.kernel}!")) for row in step(32)
    ]
    assert align_rows(varied, step(32)) is None


def test_edited_and_cut_replays_lie_in_the_batch_with_their_grids() -> None:
    rng = np.random.default_rng(11)
    batches = [1, 2, 4, 8, 16, 24, 32, 40, 48, 64]
    for batch in [2, 8, 24, 40]:
        reference = joined(*[edited(step(each), rng, 0.03) for each in batches])
        for cut in [slice(0, 490), slice(150, 490), slice(0, 300)]:
            replay = edited(step(batch)[cut], rng, 0.03)
            found = align_rows(replay, reference, [row.step for row in reference])
            assert found is not None
            assert reference[found.begin].step == batches.index(batch)
            right, paired = shares(found, replay, reference)
            assert right >= 0.98
            assert paired >= 0.97


def test_copies_between_the_kernels_of_an_eager_run_do_not_matter() -> None:
    rng = np.random.default_rng(5)
    reference = [each for row in step(32) for each in ([COPY, row] if rng.random() < 0.2 else [row])]
    found = align_rows(step(32), reference)
    assert found is not None
    assert [reference[place].origin for place in found.place.tolist()] == list(range(490))


def test_no_alignment_goes_beyond_a_segment() -> None:
    reference = [*step(32)[:240], *step(32)[240:]]
    found = align_rows(step(32), reference, [5] * 240 + [3] * 250)
    assert found is not None
    assert (found.begin, found.end, found.matched) == (240, 490, 250)


def test_segments_may_be_interleaved() -> None:
    own, other = step(32), step(8)
    reference = [row for pair in zip(other, own, strict=True) for row in pair]
    found = align_rows(own, reference, [7, 2] * 490)
    assert found is not None
    assert found.place.tolist() == list(range(1, 980, 2))
    assert (found.begin, found.end, found.score) == (1, 980, 1.0)


def with_branches(first: int, second: int) -> list[Row]:
    """24 layers, in each twelve kernels and then two branches of so many, captured one after the other."""
    begin = [kernel("gemm" if i % 3 else f"step{i}", i) for i in range(12)]
    branches = [kernel(f"a{i % 7}", i) for i in range(first)] + [kernel(f"b{i % 4}", i) for i in range(second)]
    symbols = [kernel("embedding", 1), *[*begin, *branches] * 24, kernel("head", 1)]
    return [Row(symbol, i) for i, symbol in enumerate(symbols)]


def merged(first: list[Row], second: list[Row], rng: np.random.Generator) -> list[Row]:
    """Both in their own order, mixed at random."""
    of_first = iter(rng.permutation([True] * len(first) + [False] * len(second)).tolist())
    one, other = iter(first), iter(second)
    return [next(one) if each else next(other) for each in of_first]


@pytest.mark.parametrize("swapped", [True, False])
@pytest.mark.parametrize(("first", "second"), [(4, 1), (6, 3), (10, 6)])
def test_branches_that_ran_in_another_order_are_paired(first: int, second: int, *, swapped: bool) -> None:
    rng = np.random.default_rng(4)
    captured = with_branches(first, second)
    replay = captured[:1]
    for at in range(1, len(captured) - 1, 12 + first + second):
        begin, middle, end = at + 12, at + 12 + first, at + 12 + first + second
        branches = captured[begin:middle], captured[middle:end]
        replay += captured[at:begin] + ([*branches[1], *branches[0]] if swapped else merged(*branches, rng))
    replay += captured[-1:]
    assert len(replay) == len(captured)
    found = align_rows(replay, captured)
    assert found is not None
    right, paired = shares(found, replay, captured)
    print(f"{first} + {second}, swapped {swapped}: right {right:.4f}, paired {paired:.4f}, score {found.score:.2f}")
    assert right >= 0.99
    assert paired >= 0.95


def test_another_model_is_refused() -> None:
    """It shares gemm, norms, rope and copies with ours, in another order and in other shapes."""
    shared = [kernel("rms_norm", 4), kernel("gemm", 64, 1, tile="32x32"), kernel("rope", 4), kernel("flash", 3)]
    others = [kernel("gemm", 16, 1, tile="32x64"), kernel("add", 1), kernel("gelu", 3), kernel("gemm", 96, 1)]
    model = [Row(symbol) for symbol in [*shared, *others] * 40]
    assert align_rows(step(32), [*model, *model]) is None
    assert align_rows(model, [*step(32), *step(8)]) is None


def test_short_names_alone_in_random_order_are_refused() -> None:
    rng = np.random.default_rng(1)
    rows = step(32)
    assert align_rows([rows[i] for i in rng.permutation(490)], [*rows, *step(8), *rows]) is None


@pytest.mark.parametrize(("replay", "reference"), [([], [0]), ([0], []), ([], [])])
def test_nothing_aligns_with_nothing(replay: list[int], reference: list[int]) -> None:
    assert align(replay, reference, [kernel("gemm", 1)]) is None
    assert align(replay, reference, [] if not replay + reference else [kernel("gemm", 1)]) is None


def test_a_real_replay_is_its_graphs_capture_kernel_by_kernel(shared_data: Path) -> None:
    """SGLang on an MI300: the replay has no grids, the capture has them; two fills run before the graph begins."""
    folder = shared_data / "traces" / "kineto"
    trace = inferometer.open(folder / "mi300_sglang_qwen3-8b_decode.json.gz", {"launches"})
    launches = trace.launches.sort("start_ns").collect()
    replay = launches.filter(pl.len().over("correlation_id") > 1)
    capture = inferometer.open(folder / "mi300_sglang_qwen3-8b_graph_capture_bs32.json.gz", {"calls"})
    calls = capture.calls.filter(pl.col("kernel").is_not_null()).sort("start_ns").collect()
    rows = [
        [Row(Symbol(canonical_name(name), grid and tuple(grid), decode(name).short_name)) for name, grid in pairs]
        for pairs in (table.select("kernel", "grid").iter_rows() for table in (replay, calls))
    ]
    assert (len(rows[0]), len(rows[1])) == (544, 546)
    for first, last in [(0, 544), (0, 200), (300, 544)]:
        found = align_rows(rows[0][first:last], rows[1])
        assert found is not None
        assert found.place.tolist() == list(range(first + 2, last + 2))
        assert found.score == 1


def test_a_single_kernel_is_found() -> None:
    symbols = [kernel("gemm", 1), kernel("gemm", 2), kernel("gemm", 3), kernel("rope", 1)]
    found = align([1], [0, 3, 1, 1], symbols)
    assert found is not None
    assert (found.place.tolist(), found.score, found.begin, found.end) == ([2], 1.0, 2, 3)
    assert align([3], [0, 1, 2], symbols) is None


def test_an_unknown_shape_is_like_any() -> None:
    symbols = [Symbol("gemm", None, "gemm"), Symbol("gemm", (1,), "gemm"), Symbol("gemm", (2,), "gemm")]
    for replay, reference, place in [([0], [2], [0]), ([1], [0], [0]), ([1, 0], [2, 1, 0], [1, 2]), ([1], [2, 1], [1])]:
        found = align(replay, reference, symbols)
        assert found is not None
        assert (found.place.tolist(), found.score) == (place, 1.0)


def test_a_replay_of_too_many_kernels_is_not_aligned() -> None:
    assert align([0] * (LONGEST + 1), [0] * (LONGEST + 1), [kernel("gemm", 1)]) is None


def test_breaks_must_be_as_many_as_rows() -> None:
    with pytest.raises(ValueError, match="1 breaks for 2 reference rows"):
        align([0], [0, 0], [kernel("gemm", 1)], np.zeros(1, dtype=np.int64))


def test_a_long_reference_is_narrowed_to_the_right_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    batches = [1, 2, 4, 8, 64, 48, 24, 16, 12, 32, 32, 40, 3]
    reference = joined(*[edited(step(batch), rng, 0.02) for batch in batches], between=4)
    replay = edited(step(32), rng, 0.02)
    whole = align_rows(replay, reference)
    monkeypatch.setattr(alignment_windows, "CELLS", 4 * len(replay) ** 2)
    narrowed = align_rows(replay, reference)
    assert whole is not None
    assert narrowed is not None
    assert (narrowed.begin, narrowed.end) == (whole.begin, whole.end)
    assert narrowed.place.tolist() == whole.place.tolist()


KINDS = [
    *(kernel("a", 1), kernel("a", 2), kernel("a", 1, tile="x")),
    *(kernel("b", 1), kernel("b", 2), Symbol("b", None, "b")),
]
SEQUENCES = st.lists(st.integers(0, len(KINDS) - 1), max_size=12)


@given(SEQUENCES, SEQUENCES, st.lists(st.integers(0, 2), min_size=12, max_size=12))
@examples(300)
def test_what_holds_of_every_alignment(replay: list[int], reference: list[int], breaks: list[int]) -> None:
    breaks = breaks[: len(reference)]
    found = align(replay, reference, KINDS, np.array(breaks, dtype=np.int64))
    if found is None:
        return
    rows = [(code, row) for code, row in zip(replay, found.place.tolist(), strict=True) if row >= 0]
    taken = [row for _, row in rows]
    assert found.matched == len(taken) == len(set(taken)) >= len(replay) / 2
    assert all(KINDS[code].short == KINDS[reference[row]].short for code, row in rows)
    assert len({breaks[row] for row in taken}) == 1
    assert (found.begin, found.end) == (min(taken), max(taken) + 1)
    assert 0 < found.score <= 1
    again = align(replay, reference, KINDS, np.array(breaks, dtype=np.int64))
    assert again is not None
    assert again.place.tolist() == found.place.tolist()


@given(SEQUENCES.filter(bool), SEQUENCES, SEQUENCES)
@examples(200)
def test_a_sequence_is_found_whole_where_it_stands(middle: list[int], before: list[int], after: list[int]) -> None:
    found = align(middle, [*before, *middle, *after], KINDS)
    assert found is not None
    assert found.score == 1
    whole = [*before, *middle, *after]
    pairs = [(KINDS[code], KINDS[whole[row]]) for code, row in zip(middle, found.place.tolist(), strict=True)]
    assert all(one.kernel == other.kernel for one, other in pairs)
    assert all(one.shape == other.shape or None in (one.shape, other.shape) for one, other in pairs)
    assert found.begin <= len(before)


@given(SEQUENCES, SEQUENCES, st.permutations(range(len(KINDS))))
@examples(100)
def test_the_numbers_of_symbols_do_not_matter(replay: list[int], reference: list[int], numbering: list[int]) -> None:
    found = align(replay, reference, KINDS)
    renamed = [KINDS[numbering.index(i)] for i in range(len(KINDS))]
    again = align([numbering[i] for i in replay], [numbering[i] for i in reference], renamed)
    assert (found.place.tolist() if found else None) == (again.place.tolist() if again else None)
