"""Graph replays with what is given to explain them: on traces of a few rows, made by hand."""

from typing import Any

from tests.traces import trace_of

from inferometer import Trace
from inferometer.analyses.launched_by.attribution import Attribution, attribute
from inferometer.analyses.launched_by.site_times import launch_sites
from inferometer.reports.views.view import remarks_of

THREAD = {"process": 1, "thread": 2}
LAYER = ["norm", "gemm", "rope", "attend", "gemm", "norm", "gemm_up", "silu", "gemm"]
MODEL = ["embed", *LAYER * 3, "lm_head"]
Row = dict[str, Any]


def replay(*graphs: list[str], nodes: bool = False, batch: int = 1) -> Trace:
    """One graph launch each."""
    launches: list[Row] = []
    calls = []
    for number, kernels in enumerate(graphs):
        start = 1000 * number
        calls.append({"api": "cudaGraphLaunch", **THREAD, "start_ns": start, "dur_ns": 5, "correlation_id": number})
        for place, kernel in enumerate(kernels):
            node = {"graph_id": 1, "graph_node_id": place + 1} if nodes else {}
            where = {"process": 1, "correlation_id": number, "start_ns": start + 100 + 10 * place, "dur_ns": 10}
            launches.append({"kernel": kernel, **where, **node, "grid": [batch, 1, 1], "block": [128, 1, 1]})
    frames = [{"frame": "runner.py(3): replay", **THREAD, "start_ns": 0, "dur_ns": 1000 * len(graphs)}]
    return trace_of(launches, calls=calls, frames=frames)


def capture(*batches: tuple[int, list[str]], named: bool = True, source: str = "capture") -> Trace:
    """Calls between the beginning and the end of a capture; each is in an op with its place in the graph."""
    calls: list[Row] = []
    ops: list[Row] = []
    spans = []
    time = 0
    for batch, kernels in batches:
        begin = time
        calls.append({"api": "hipStreamBeginCapture", **THREAD, "start_ns": time, "dur_ns": 1})
        for place, kernel in enumerate(kernels):
            time += 10
            shape = {"kernel": kernel, "grid": [batch, 1, 1], "block": [128, 1, 1]} if named else {}
            row = {"api": "hipLaunchKernel", **THREAD, "start_ns": time + 2, "dur_ns": 1, "correlation_id": time}
            calls.append(row | shape)
            ops.append({"op": f"op{place} of {batch}", **THREAD, "start_ns": time, "dur_ns": 8})
        time += 10
        calls.append({"api": "hipStreamEndCapture", **THREAD, "start_ns": time, "dur_ns": 1})
        spans.append({"span": f"capture {batch}", "domain": "x", **THREAD, "start_ns": begin, "dur_ns": time - begin})
        time += 10
    return trace_of(calls=calls, ops=ops, spans=spans, facts={"source": source})


def ops(found: Attribution) -> list[str | None]:
    return found.each()["op"].to_list()


def said(found: Attribution) -> str:
    return "\n".join(remarks_of(launch_sites(found)))


def test_a_replay_takes_the_ops_of_its_capture_below_its_own_chain() -> None:
    found = attribute(replay(MODEL), captures=[capture((1, MODEL))])
    assert ops(found) == [f"op{place} of 1" for place in range(len(MODEL))]
    labels = [found.tree.label_of(node).name for node in found.tree.chain(found.each()["node"][0])]
    assert labels == ["runner.py(3): replay", "graph replay", "op0 of 1"]
    assert f"{len(MODEL)} of {len(MODEL)} replayed launches (1 replay) are found in capture (capture 1)" in said(found)


def test_a_kernel_that_is_missing_moves_none_of_the_others() -> None:
    found = attribute(replay(MODEL[:5] + MODEL[6:]), captures=[capture((1, MODEL))])
    assert ops(found) == [f"op{place} of 1" for place in range(len(MODEL)) if place != 5]


def test_a_kernel_that_is_added_stays_unknown() -> None:
    found = attribute(replay([*MODEL[:5], "other", *MODEL[5:]]), captures=[capture((1, MODEL))])
    expected: list[str | None] = [f"op{place} of 1" for place in range(len(MODEL))]
    assert ops(found) == [*expected[:5], None, *expected[5:]]


def test_the_capture_with_the_same_grids_is_meant() -> None:
    batches = [(4, MODEL), (2, MODEL), (1, MODEL)]
    found = attribute(replay(MODEL, batch=2), captures=[capture(*batches)])
    assert set(ops(found)) == {f"op{place} of 2" for place in range(len(MODEL))}


def test_a_capture_in_the_trace_itself_is_used_unasked() -> None:
    graph, taken = replay(MODEL), capture((1, MODEL))
    both: Any = {name: graph.tables[name].collect().to_dicts() + taken.tables[name].collect().to_dicts()
            for name in ("calls", "ops", "frames")}  # fmt: skip
    for call in both["calls"]:
        if call["api"].startswith("hip"):
            call["start_ns"] += 10**6
            call["correlation_id"] = (call["correlation_id"] or 0) + 10**6
    for op in both["ops"]:
        op["start_ns"] += 10**6
    found = attribute(trace_of(graph.launches.collect().to_dicts(), **both))
    replayed = found.each().filter("is_replay")
    assert replayed["op"].to_list() == [f"op{place} of 1" for place in range(len(MODEL))]


def test_node_ids_tell_a_replay_that_was_cut_and_runs_in_another_order() -> None:
    cut = MODEL[20:]
    trace = replay(MODEL, cut, nodes=True)
    rows = trace.launches.collect().to_dicts()
    second = [row for row in rows if row["correlation_id"] == 1]
    for place, row in enumerate(reversed(second)):
        row["graph_node_id"] = 20 + len(cut) - place
        row["kernel"] = MODEL[row["graph_node_id"] - 1]
    moved = trace_of(rows, calls=trace.calls.collect().to_dicts())
    found = attribute(moved, captures=[capture((1, MODEL))]).each().filter(correlation_id=1)
    assert found["how"].unique().to_list() == ["graph_node"]
    assert found["op"].to_list() == [f"op{node - 1} of 1" for node in found["graph_node_id"]]


def test_a_capture_of_another_model_fits_nothing_and_is_said() -> None:
    found = attribute(replay(MODEL), captures=[capture((1, ["a", "b", "c"] * 9), source="other.json")])
    assert ops(found) == [None] * len(MODEL)
    assert set(found.launches["how"]) == {"graph_launch"}
    assert "No replay fits other.json" in said(found)


def test_a_capture_whose_calls_name_no_kernels_says_what_to_give_instead() -> None:
    found = attribute(replay(MODEL), captures=[capture((1, MODEL), named=False, source="cuda.json")])
    assert f"cuda.json has {len(MODEL)} captured launches that don't name their kernels" in said(found)
    assert "eager run of the same batch" in said(found)


def test_without_a_capture_it_is_said_what_would_tell() -> None:
    found = attribute(replay(MODEL))
    assert "--capture FILE" in said(found)


def test_a_capture_without_launches_and_a_trace_without_replays_are_fine() -> None:
    assert attribute(replay(MODEL), captures=[trace_of()]).unfitted == 1
    assert attribute(trace_of([{"kernel": "k"}]), captures=[capture((1, MODEL))]).unfitted == 0


def test_kernels_of_a_capture_are_shown_with_their_ops_and_no_time() -> None:
    found = attribute(capture((1, MODEL)))
    table = launch_sites(found)
    assert (table.launches, table.total_ns, table.frame.height) == (len(MODEL), 0, len(MODEL))
    assert "captured into a graph" in said(found)
