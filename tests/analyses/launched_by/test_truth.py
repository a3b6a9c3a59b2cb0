"""Attribution against generated traces whose every chain is known: the generator's own nesting."""

import re
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tools.kineto_maker import LaunchTruth, Options, Truth, write_trace
from tools.make_nsys import Options as ExportOptions
from tools.make_nsys import write_export

import inferometer
from inferometer.analyses.launched_by.attribution import Attribution, attribute
from inferometer.analyses.launched_by.launched import NEEDED

SMALL = Options(steps=4, layers=3, prefill_every=4)
MIXED = replace(SMALL, steps=14, prefill_every=10, layers=6, batches=(1, 2, 4, 8, 16, 32))
EAGER = {
    "stacks and shapes": SMALL,
    "no stacks": replace(SMALL, stack=False),
    "two threads": replace(SMALL, threads=2, fault="host-late"),
    "a rank of two": replace(SMALL, rank=1, world=2, threads=2),
    "compiled": replace(SMALL, compiled=True),
    "vLLM's marks": replace(SMALL, marks="vllm"),
}
REPLAYS = {
    "capture": (replace(SMALL, mode="graph"), replace(SMALL, mode="capture")),
    "eager run": (replace(SMALL, mode="graph"), SMALL),
    "node ids": (replace(SMALL, mode="graph", graph_node_ids=True), replace(SMALL, mode="capture")),
    "several batch sizes": (replace(MIXED, mode="graph"), replace(MIXED, mode="capture")),
    "several batch sizes, eager run": (replace(MIXED, mode="graph"), MIXED),
    "kernels missing": (replace(MIXED, mode="graph", drop_kernels=0.03), replace(MIXED, mode="capture")),
    "kernels added": (replace(MIXED, mode="graph", add_kernels=0.03), replace(MIXED, mode="capture")),
    "both, with node ids": (
        replace(MIXED, mode="graph", drop_kernels=0.03, add_kernels=0.03, graph_node_ids=True),
        replace(MIXED, mode="capture"),
    ),
}


@dataclass(frozen=True)
class Score:
    """Launches whose ops, modules and frames are `right`, differ in any, or are not known at all."""

    right: int
    wrong: int
    unknown: int


def made(options: Options, path: Path) -> Truth:
    with path.open("wb") as out:
        return write_trace(options, out, launches=True)


def links(text: str | None) -> tuple[str, ...]:
    return tuple(text.split(" > ")) if text else ()


def score(found: Attribution, truth: Truth, *, replayed: bool) -> Score:
    assert truth.by_launch is not None
    rows = {
        (row["correlation_id"], row["start_ns"], row["kernel"]): row
        for row in found.each().iter_rows(named=True)
        if not row["is_captured"]
    }
    counts: Counter[str] = Counter()
    for launch in truth.by_launch.launches:
        chain = launch.captured if launch.graph_id is not None else launch.chain
        if (launch.graph_id is not None) is replayed and chain is not None:
            counts[judge(found, rows[launch.correlation, launch.start_ns, launch.kernel], launch)] += 1
    return Score(*(counts[word] for word in ("right", "wrong", "unknown")))


def judge(found: Attribution, row: dict[str, object], launch: LaunchTruth) -> str:
    chain = launch.captured if launch.graph_id is not None else launch.chain
    assert chain is not None
    if row["how"] not in ("call", "graph_alignment", "graph_node"):
        return "unknown"
    labels = [found.tree.label_of(node) for node in found.tree.chain(int(str(row["node"])))]
    frames = [label.name for label in labels if label.kind in ("frame", "module")]
    wanted = [re.sub(r" at 0x[0-9a-f]+(?=>)", "", name.removeprefix("nn.Module: ")) for name in chain.frames]
    is_right = (
        links(row["op_chain"]) == chain.ops  # type: ignore[arg-type]
        and links(row["module_recorded"]) == chain.modules  # type: ignore[arg-type]
        and frames[len(frames) - len(wanted) :] == wanted
    )
    return "right" if is_right else "wrong"


@pytest.mark.parametrize("name", EAGER)
def test_every_eager_launch_has_its_chain(name: str, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    truth = made(EAGER[name], path)
    found = attribute(inferometer.open(path, NEEDED))
    assert truth.by_launch is not None
    assert score(found, truth, replayed=False) == Score(len(truth.by_launch.launches), 0, 0)


@pytest.mark.parametrize("name", REPLAYS)
def test_every_replayed_kernel_has_the_chain_of_its_capture(name: str, tmp_path: Path) -> None:
    options, reference = REPLAYS[name]
    truth = made(options, tmp_path / "replays.json")
    made(reference, tmp_path / "reference.json")
    found = attribute(
        inferometer.open(tmp_path / "replays.json", NEEDED),
        captures=[inferometer.open(tmp_path / "reference.json", NEEDED)],
    )
    of_replays = score(found, truth, replayed=True)
    assert of_replays.right >= 0.95 * sum((of_replays.right, of_replays.wrong, of_replays.unknown)) > 0
    assert of_replays.wrong == 0
    assert score(found, truth, replayed=False).wrong == 0
    if options.add_kernels:
        assert truth.by_launch is not None
        added = [launch for launch in truth.by_launch.launches if launch.graph_id is not None and not launch.captured]
        assert found.launches.filter(how="graph_launch").height == len(added) > 0


def test_each_replay_takes_the_capture_of_its_own_batch(tmp_path: Path) -> None:
    made(replace(MIXED, mode="graph"), tmp_path / "replays.json")
    made(replace(MIXED, mode="capture"), tmp_path / "capture.json")
    replays, capture = (inferometer.open(tmp_path / name, NEEDED) for name in ("replays.json", "capture.json"))
    (fit,) = attribute(replays, captures=[capture]).fits
    assert set(fit.places) == {f"capture_{batch}_DECODE" for batch in (1, 2, 4, 8, 16, 32)}


def test_captures_in_several_files_may_be_given_in_any_order(tmp_path: Path) -> None:
    made(replace(MIXED, mode="graph"), tmp_path / "replays.json")
    captures = []
    for batch in (32, 4, 1, 16, 8, 2):
        made(replace(MIXED, mode="capture", batches=(batch,)), tmp_path / f"{batch}.json")
        captures.append(inferometer.open(tmp_path / f"{batch}.json", NEEDED))
    found = attribute(inferometer.open(tmp_path / "replays.json", NEEDED), captures=captures)
    assert [fit.places for fit in found.fits] == [(f"capture_{batch}_DECODE",) for batch in (32, 4, 1, 16, 8, 2)]
    assert found.unfitted == 0


def test_nodes_whose_making_is_recorded_need_no_capture(tmp_path: Path) -> None:
    path = tmp_path / "captured.sqlite"
    truth = write_export(ExportOptions(kernels=1_000, graph=True, capture=True, devices=2), path)
    rows = attribute(inferometer.open(path, NEEDED)).each().filter("is_replay")
    assert rows["how"].unique().to_list() == ["node_creation"]
    modules = {
        (int(process), int(node)): module.removeprefix("LlamaForCausalLM.")
        for process, nodes in truth["nodes"].items()
        for node, (*_, module) in nodes.items()
    }
    wanted = [modules[process, node] for process, node in rows.select("process", "graph_node_id").rows()]
    assert rows["module"].to_list() == wanted
    assert len(set(wanted)) > 100


def test_real_replays_have_op_and_module_by_their_capture(shared_data: Path) -> None:
    folder = shared_data / "traces" / "kineto"
    replay, capture = (
        inferometer.open(folder / f"mi300_sglang_qwen3-8b_{name}.json.gz", NEEDED)
        for name in ("decode", "graph_capture_bs32")
    )
    rows = attribute(replay, captures=[capture]).each().filter("is_replay")
    known = rows.drop_nulls(["op", "module"])
    assert known.height >= 0.95 * rows.height > 500
    assert "model.layers.17.self_attn.qkv_proj" in set(known["module"])


def test_every_call_in_a_real_eager_trace_is_in_a_module_and_a_frame_of_user_code(shared_data: Path) -> None:
    path = shared_data / "traces" / "kineto" / "h100_qwen1.5-0.5b.json.gz"
    rows = attribute(inferometer.open(path, NEEDED)).each().filter(how="call")
    assert rows.height == 1198
    assert rows.select("op_chain", "module", "user_frame").null_count().row(0) == (0, 0, 0)
