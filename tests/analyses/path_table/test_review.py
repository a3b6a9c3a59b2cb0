"""What is wrong with a table of call paths: a shift is right or called doubtful, a right table has nothing wrong."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.effort import examples
from tests.traces import trace_of

import inferometer
from inferometer import Trace
from inferometer.analyses.path_table.review import PathTableReview, review_path_table
from inferometer.errors import InputError
from inferometer.reports.views.view import facts_of, remarks_of

Column = Mapping[str, int | None]
SEED = "000_2e06422ffebd552b.txt"


def table(columns: Mapping[str, Column], paths: Sequence[str] | None = None) -> Trace:
    """A trace of these times by run and path; None is a blank. `paths` are the rows in printed order."""
    paths = list(dict.fromkeys(path for column in columns.values() for path in column)) if paths is None else paths
    nodes: dict[str, int] = {}
    tree = []
    for path in paths:
        names = path.split(".")
        for depth in range(len(names)):
            key = ".".join(names[: depth + 1])
            if key not in nodes:
                nodes[key] = len(nodes)
                parent = nodes.get(".".join(names[:depth]))
                tree.append({"path_id": nodes[key], "parent_id": parent, "name": names[depth], "depth": depth})
    cells = [
        {"path_id": nodes[path], "order": order, "host_ns": column[path], "backend": arm}
        for arm, column in columns.items()
        for order, path in enumerate(paths)
        if column.get(path) is not None
    ]
    return trace_of(call_paths=tree, path_totals=cells)


def kinds(review: PathTableReview) -> list[str]:
    return [each.kind for each in review.found]


MODEL: Column = {
    "main": 20_000_000,
    "main.generate": 15_000_000,
    "main.generate.softmax": 33_000,
    "main.generate.forward": 2_800_000,
    "main.generate.forward.norm": 58_000,
    "main.generate.forward.block": 860_000,
    "main.generate.forward.block.softmax": 29_000,
    "main.setup": 350_000,
}


def scaled(column: Column, factor: float) -> dict[str, int | None]:
    return {path: None if ns is None else round(ns * factor) for path, ns in column.items()}


def shifted(column: Column, missing: str, order: Sequence[str]) -> dict[str, int | None]:
    """The column of a run without `missing`, whose times in `order` were given to all paths by position."""
    times = [column[path] for path in order if path != missing]
    return dict(zip(order, [*times, None], strict=True))


COMPLETED = [
    "main.setup",
    "main.generate.forward.norm",
    "main.generate.forward.block.softmax",
    "main.generate.forward.block",
    "main.generate.forward",
    "main.generate.softmax",
    "main.generate",
    "main",
]


def test_a_right_table_has_nothing_wrong() -> None:
    for other in (scaled(MODEL, 1.03), scaled(MODEL, 0.4), {**MODEL, "main.generate.softmax": None}, MODEL):
        review = review_path_table(table({"torch": MODEL, "triton": other}))
        assert (review.found, review.is_corrected) == ([], False)
        assert dict(facts_of(review))["Wrong"] == "nothing was found"


def test_times_that_stand_one_row_off_are_put_back() -> None:
    truth = scaled(MODEL, 1.01) | {"main.generate.softmax": None}
    review = review_path_table(table({"torch": MODEL, "mine": shifted(truth, "main.generate.softmax", COMPLETED)}))
    assert kinds(review) == ["shifted_rows", "missing_key", *["implausible_difference"] * 2]
    first = review.found[0].numbers
    assert (first["arm"], first["sure"], first["missing"]) == ("mine", True, "main.generate.softmax")
    assert [(cell["path"], cell["time_of"], cell["own_ns"]) for cell in first["cells"]] == [
        ("main", None, 20_200_000),
        ("main.generate", "main", 15_150_000),
        ("main.generate.softmax", "main.generate", None),
    ]
    assert {row["path"]: row["arms"]["mine"] for row in review.as_json()["corrected"]} == truth


def test_the_column_may_be_the_first() -> None:
    moved = shifted(scaled(MODEL, 1.01), "main.generate.softmax", COMPLETED)
    review = review_path_table(table({"mine": moved, "torch": MODEL}))
    assert review.found[0].numbers["arm"] == "mine"
    assert review.is_corrected


def test_of_three_runs_the_one_that_is_off_is_found() -> None:
    moved = shifted(scaled(MODEL, 0.98), "main.generate.softmax", COMPLETED)
    columns = {"torch": MODEL, "mine": moved, "compile": scaled(MODEL, 0.5)}
    review = review_path_table(table(columns))
    assert review.found[0].numbers["arm"] == "mine"
    assert set(review.as_json()["corrected"][0]["difference_ns"]) == {"mine", "compile"}


def test_two_paths_that_take_alike_are_not_told_apart() -> None:
    """Either may be the missing one: nothing is moved."""
    model = {**MODEL, "main.generate.argmax": 33_100}
    order = [*COMPLETED[:5], "main.generate.softmax", "main.generate.argmax", *COMPLETED[6:]]
    printed = shifted(scaled(model, 1.01), "main.generate.argmax", order)
    review = review_path_table(table({"torch": model, "mine": printed}))
    assert kinds(review)[0] == "unclear_shift"
    assert set(review.found[0].numbers["alternatives"]) == {"main.generate.softmax", "main.generate.argmax"}
    assert review.times == review.table.times
    assert "isn't known: several explanations fit alike" in review.found[0].words


def test_two_missing_paths_are_not_explained_by_one() -> None:
    order = [path for path in COMPLETED if path not in ("main.generate.softmax", "main.generate.forward.norm")]
    times = [*(scaled(MODEL, 1.01)[path] for path in order), None, None]
    review = review_path_table(table({"torch": MODEL, "mine": dict(zip(COMPLETED, times, strict=True))}))
    assert not review.is_corrected
    assert review.found


@pytest.mark.parametrize(
    ("arms", "told"),
    [
        (("triton", "non_triton"), True),
        (("triton", "torch"), True),
        (("compiled", "eager_baseline"), True),
        (("torch", "triton"), False),
        (("a", "b"), False),
        (("non_triton", "triton"), False),
    ],
)
def test_names_are_likely_swapped_where_the_plain_run_lacks_an_operator(arms: tuple[str, str], told: bool) -> None:
    lacking = scaled(MODEL, 1.01) | {"main.generate.softmax": None}
    review = review_path_table(table({arms[0]: MODEL, arms[1]: lacking}))
    assert kinds(review) == ["likely_swapped_names"] * told
    if told:
        assert review.found[0].numbers["recorded_at"] == "main.generate.forward.block.softmax"
        assert "An inference" in review.found[0].words


def test_a_path_that_is_nowhere_else_says_nothing_about_names() -> None:
    review = review_path_table(table({"triton": MODEL, "torch": scaled(MODEL, 1.01) | {"main.setup": None}}))
    assert review.found == []


def test_a_callee_dearer_than_its_caller_in_one_run_is_found_and_in_all_is_a_remark() -> None:
    once = {**MODEL, "main.generate.forward.load": 9_000_000}  # not in every call
    assert review_path_table(table({"a": once, "b": scaled(once, 1.1)})).found == []
    (remark,) = remarks_of(review_path_table(table({"a": once, "b": scaled(once, 1.1)})))
    assert remark.startswith("A call takes longer than one of its caller at …forward.load, in every run")
    review = review_path_table(table({"a": MODEL, "b": {**MODEL, "main.setup": 40_000_000}}))
    assert kinds(review) == ["dearer_than_caller"]
    assert review.found[0].numbers == {"arm": "b", "host_ns": 40_000_000, "caller_ns": 20_000_000}


def test_a_ratio_far_outside_of_all_others_counts_only_where_the_caller_does_not_follow() -> None:
    slow = {**MODEL, "main.setup": 4_000_000}
    assert kinds(review_path_table(table({"a": MODEL, "b": slow}))) == ["implausible_difference"]
    followed = {**slow, "main": 20_000_000 + 3_650_000}
    assert review_path_table(table({"a": MODEL, "b": followed})).found == []


def test_callees_above_their_caller_in_one_run_only_are_found() -> None:
    fits = {"main": 100_000, "main.a": 40_000, "main.b": 55_000}
    above = {"main": 60_000, "main.a": 38_000, "main.b": 52_000}
    review = review_path_table(table({"a": fits, "b": above}))
    assert kinds(review) == ["callees_above_caller"]
    assert review.found[0].numbers == {"arm": "b", "host_ns": 60_000, "callees_ns": 90_000}
    assert review_path_table(table({"a": above, "b": above})).found == []


def test_one_run_cannot_be_compared() -> None:
    review = review_path_table(table({"only": MODEL}))
    assert review.found == []
    assert remarks_of(review)[0].startswith("The table has one run")
    assert review.as_json()["corrected"][0]["difference_ns"] == {}


def test_a_repeated_path_is_told() -> None:
    paths = [*MODEL, "main.setup"]
    assert kinds(review_path_table(table({"a": MODEL, "b": MODEL}, paths))) == ["repeated_path"]


def test_zeros_are_times() -> None:
    review = review_path_table(table({"a": {"m": 10, "m.z": 0}, "b": {"m": 0, "m.z": 0}}))
    assert review.as_json()["corrected"][1]["difference_share"] == {"b": None}


def test_a_trace_without_such_times_is_refused() -> None:
    with pytest.raises(InputError, match="found no such times"):
        review_path_table(trace_of())
    nodes = [{"path_id": 0, "name": "m", "depth": 0}]
    with pytest.raises(InputError, match="found times without a run's name"):
        review_path_table(trace_of(call_paths=nodes, path_totals=[{"path_id": 0, "order": 0, "host_ns": 1}]))


def test_every_rendering_has_the_table_by_key_and_what_it_cannot_tell() -> None:
    truth = scaled(MODEL, 1.01) | {"main.generate.softmax": None}
    review = review_path_table(table({"torch": MODEL, "mine": shifted(truth, "main.generate.softmax", COMPLETED)}))
    markdown = inferometer.render_markdown(review)
    assert "By key, time of one call" in markdown
    assert "Shifted rows. 3 cells of mine don't hold their own path's time" in markdown
    assert "means per call without counts" in markdown
    json.dumps(review.as_json(), allow_nan=False)
    frame = review.to_polars()
    assert frame["host_ns_1"].to_list()[:3] == [20_200_000, 15_150_000, None]
    assert frame["found"].to_list()[1] == "shifted rows, implausible difference"


@dataclass(frozen=True)
class Shifted:
    """A table made wrong: the run `arm` lacks `missing`, whose loss moved `moved` times to other paths."""

    trace: Trace
    arm: str
    missing: str
    truth: Column
    displaced: int  # times that stand at a path which takes 3 times as long or a third


def random_times(rng: Random, paths: Sequence[str], own: Column, calls: Column, noise: float) -> dict[str, int]:
    """Times per call that add up: each path's own time with noise, and its callees as often as it calls them."""
    times = dict.fromkeys(paths, 0.0)
    for path in reversed(paths):
        times[path] += (own[path] or 0) * 2.718 ** rng.gauss(0, noise)
        parent = path.rpartition(".")[0]
        if parent:
            times[parent] += (calls[path] or 0) * times[path]
    return {path: round(ns) for path, ns in times.items()}


def random_tree(rng: Random, size: int) -> list[str]:
    """Paths, callers before callees."""
    paths = ["root"]
    for i in range(size - 1):
        paths.append(f"{rng.choice(paths)}.{rng.choice('abcdefgh')}{i}")
    return paths


def ordered(rng: Random, paths: Sequence[str], by: str) -> list[str]:
    """As the paths are first completed or called, siblings in any order."""

    def below(path: str) -> list[str]:
        children = [each for each in paths if each.rpartition(".")[0] == path]
        rng.shuffle(children)
        inner = [each for child in children for each in below(child)]
        return [*inner, path] if by == "completed" else [path, *inner]

    return below("root")


def random_shift(seed: int) -> Shifted:
    rng = Random(seed)
    paths = random_tree(rng, rng.randint(3, 20))
    own = {path: round(10 ** rng.uniform(3, 6)) for path in paths}
    calls = {path: rng.choice((1, 1, 2, 32)) for path in paths}
    noise, order = rng.choice((0.002, 0.01, 0.05)), ordered(rng, paths, rng.choice(("completed", "called")))
    whole = random_times(rng, paths, own, calls, noise)
    factor = rng.choice((1, 1, 1.5, 0.4))
    other: dict[str, int | None] = {
        path: round(ns * factor) for path, ns in random_times(rng, paths, own, calls, noise).items()
    }
    missing = rng.choice([path for path in paths if not any(each.startswith(f"{path}.") for each in paths)])
    printed = shifted(other, missing, order)
    truth = other | {missing: None}
    far = [path for path in paths if (a := printed[path]) and (b := truth[path]) and not 1 / 3 < a / b < 3]
    columns: dict[str, Column] = {"whole": whole, "other": printed}
    if rng.random() < 0.5:
        columns = dict(reversed(columns.items()))
    trace = table(columns, sorted(paths) if rng.random() < 0.7 else order)
    return Shifted(trace, "other", missing, truth, len(far))


@given(st.integers(0, 10**9))
@examples(60)
def test_a_missing_row_is_told_rightly_or_as_unclear(seed: int) -> None:
    case = random_shift(seed)
    review = review_path_table(case.trace)
    if not review.is_corrected:
        assert review.times == review.table.times
        return
    assert review.explained is not None
    told = review.found[0].numbers
    assert (told["arm"], told["missing"]) == (case.arm, case.missing)
    arm = review.table.arms.index(case.arm)
    for row, path in enumerate(review.table.paths):
        if row not in review.explained.doubtful:
            assert review.times[arm][row] == case.truth[path]


def test_most_missing_rows_are_told_where_times_are_far_apart() -> None:
    cases = [random_shift(seed) for seed in range(40)]
    visible = [review_path_table(case.trace) for case in cases if case.displaced > 1]
    assert len(visible) > 15
    assert sum(bool(review.found) for review in visible) >= 0.95 * len(visible)
    assert sum(review.is_corrected for review in visible) >= 0.6 * len(visible)


@given(st.integers(0, 10**9))
@examples(40)
def test_no_right_table_is_found_wrong(seed: int) -> None:
    rng = Random(seed)
    paths = random_tree(rng, rng.randint(1, 25))
    own = {path: round(10 ** rng.uniform(3, 6)) for path in paths}
    calls = {path: rng.choice((1, 1, 2, 32)) for path in paths}
    noise = rng.choice((0.0, 0.01, 0.05))
    columns: dict[str, Column] = {arm: random_times(rng, paths, own, calls, noise) for arm in ("torch", "triton")}
    leaves = [path for path in paths if not any(each.startswith(f"{path}.") for each in paths)]
    if rng.random() < 0.5 and len(paths) > 1:
        columns["triton"] = {**columns["triton"], rng.choice(leaves): None}
    assert review_path_table(table(columns, sorted(paths))).found == []


@pytest.fixture
def seed_review(seeds: Path) -> PathTableReview:
    return review_path_table(inferometer.open(seeds / SEED))


TOP = "chat_completion"
INNER = f"{TOP}.chat_completion.generate"
FORWARD = f"{INNER}.transformer_forward"
BLOCK = f"{FORWARD}.transform_block_forward"
ATTENTION = f"{BLOCK}.attention_forward"
BY_KEY = {  # seconds per call of the run without and with Triton, to the digits that the specification has
    TOP: (23.529099, 23.885353),
    f"{TOP}.precompute_freqs_cis": (0.000349834, 0.000358654),
    f"{TOP}.chat_completion": (15.229127, 15.719126),
    INNER: (15.228002, 15.717983),
    f"{INNER}.softmax": (0.0000331044, None),
    FORWARD: (0.028188293, 0.028127437),
    f"{FORWARD}.RMSNorm": (0.0000580953, 0.0000583299),
    BLOCK: (0.000865078, 0.000863152),
    f"{BLOCK}.RMSNorm": (0.0000589535, 0.0000592053),
    ATTENTION: (0.000502046, 0.000500457),
    f"{ATTENTION}.apply_rotary_emb": (0.0000890307, 0.0000890612),
    f"{ATTENTION}.attention": (0.000176525, 0.000176322),
    f"{ATTENTION}.attention.matmul": (0.0000447088, 0.0000446473),
    f"{ATTENTION}.attention.softmax": (0.0000294320, 0.0000294441),
    f"{BLOCK}.feed_forward_forward": (0.000131094, 0.000130542),
}


def test_the_seed_is_explained_by_the_missing_softmax(seed_review: PathTableReview) -> None:
    first, second, *_ = seed_review.found
    assert (first.kind, first.numbers["arm"], first.numbers["sure"]) == ("shifted_rows", "non_triton", True)
    assert [cell["path"] for cell in first.numbers["cells"]] == [
        TOP,
        f"{TOP}.chat_completion",
        INNER,
        f"{INNER}.softmax",
    ]
    assert first.numbers["doubtful"] == []
    assert (second.kind, second.path) == ("missing_key", f"{INNER}.softmax")
    assert first.numbers["next_best_worse_by"] > 2


def test_the_seed_by_key_is_as_specified(seed_review: PathTableReview) -> None:
    rows = {row["path"]: row["arms"] for row in seed_review.as_json()["corrected"]}
    assert set(rows) == set(BY_KEY)
    for path, (first, second) in BY_KEY.items():
        assert rows[path]["triton"] == pytest.approx(first * 1e9, rel=1e-6, abs=1)
        assert rows[path]["non_triton"] == (None if second is None else pytest.approx(second * 1e9, rel=1e-6, abs=1))


def test_the_names_of_the_seed_are_likely_swapped(seed_review: PathTableReview) -> None:
    assert kinds(seed_review) == [
        "shifted_rows",
        "missing_key",
        *["implausible_difference"] * 3,
        "likely_swapped_names",
    ]
    assert seed_review.found[-1].numbers["lacks"] == "non_triton"
    printed = [each.numbers["printed_ns"] for each in seed_review.found if each.kind == "implausible_difference"]
    assert printed == [-8_656_225_666, -491_123_849, -15_717_949_626]


def test_two_times_that_may_be_exchanged_are_possible_and_stay_as_printed() -> None:
    norm, head = "main.generate.forward.norm", "main.generate.forward.block.softmax"
    near = {**MODEL, norm: 40_000}  # by a third longer than the other
    other = scaled(near, 1.004)
    exchanged = other | {norm: other[head], head: other[norm]}
    review = review_path_table(table({"torch": near, "triton": exchanged}))
    assert kinds(review) == ["possible_swap"]
    assert review.found[0].numbers["paths"] == [norm, head]
    assert "Possible, not sure" in review.found[0].words
    assert dict(facts_of(review))["Wrong"] == "1 possible swap"
    assert {row["path"]: row["arms"]["triton"] for row in review.as_json()["corrected"]} == exchanged
    one_slower = other | {norm: (other[norm] or 0) * 14 // 10}
    assert kinds(review_path_table(table({"torch": near, "triton": one_slower}))) == []


def test_rows_that_contradict_themselves_are_wrong_though_nothing_else_is() -> None:
    trace = table({"torch": MODEL, "triton": scaled(MODEL, 1.03)})
    trace.losses.count("contradicting_rows", 14, example="line 4")
    review = review_path_table(trace)
    assert review.found == []
    assert dict(facts_of(review))["Wrong"] == "14 rows that contradict themselves or others"
    assert review.as_json()["contradicting_rows"] == 14
