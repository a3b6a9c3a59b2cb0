"""Rooflines of real captures against the files: which op owns each launch, and what its calls must do."""

import json
import math
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.conftest import SHARED_DATA
from tests.kineto_files import exact_ns
from tests.truth.raw import KINDS, timed_events

import inferometer
from inferometer.analyses.launched_by.attribution import Attribution, attribute
from inferometer.analyses.roofline.table import Roofline, roofline
from inferometer.findings.engine import find_findings
from inferometer.hardware.known import require_device
from inferometer.operators.framework.collectives import NAME as COLLECTIVES
from inferometer.operators.framework.family import model_of
from inferometer.operators.framework.lengths import Lengths

TRACES = SHARED_DATA / "traces" / "kineto"
SAMPLES = Path(__file__).parents[2] / "samples"
GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "roofline.md"
RULE = "above_the_bound"
CAPTURES = {
    "mi300_sglang_qwen3-8b_decode": "mi300_sglang_qwen3-8b_graph_capture_bs32",
    "mi300_vllm_gpt-oss_decode": "mi300_vllm_gpt-oss_graph_capture",
}
EAGER = ("h100_qwen1.5-0.5b", "h100_vit", "mi250_minitoy", "mi300_qwen1.5-0.5b", "mi300_vit", "mi300_resnet_ddp")
TRAINING = ("rank0_sampled", "rank1_sampled", "a100_idle_64", "v100_graph_branches")
INFERENCE = ("h100_qwen1.5-0.5b", "h100_vit", "mi300_qwen1.5-0.5b", "mi300_vit", *CAPTURES)


def path_of(name: str) -> Path:
    path = TRACES / f"{name}.json.gz"
    if not path.exists():
        pytest.skip("needs ../shared/data")
    return path


@cache
def modelled(name: str, window: int | None = None) -> tuple[Attribution, Roofline]:
    with inferometer.open(path_of(name)) as trace:
        captures = [inferometer.open(path_of(CAPTURES[name]))] if name in CAPTURES else []
        found = attribute(trace, captures=captures, with_op_calls=True)
        return found, roofline(found, trace, lengths=Lengths(window=window))


def owners(name: str) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Each launch with the innermost op around its call, read by loops."""
    timed = timed_events(path_of(name))
    threads: dict[Any, list[tuple[int, int, dict[str, Any]]]] = defaultdict(list)
    calls = {}
    for each in timed:
        start = exact_ns(each["ts"])
        if each["cat"] == "cpu_op":
            threads[each["pid"], each["tid"]].append((start, start + exact_ns(each["dur"]), each))
        elif each["cat"].startswith("cuda_") and "correlation" in each.get("args", {}):
            calls[each["args"]["correlation"]] = (each["pid"], each["tid"], start)
    for each in timed:
        call = calls.get(each.get("args", {}).get("correlation"))
        if each["cat"] in KINDS and call is not None:
            around = [op for op in threads[call[:2]] if op[0] <= call[2] < op[1]]
            if around:
                yield each, max(around, key=lambda op: (op[0], -op[1]))[2]


def _is_innermost(op: str) -> bool:
    """Whether an op with a model stands for its own launches alone, and not for those of what it calls."""
    found = model_of(op)
    return found is not None and found.family != COLLECTIVES


@pytest.mark.parametrize("name", EAGER)
def test_every_launch_is_its_innermost_ops(name: str) -> None:
    _, found = modelled(name)
    expected: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for launch, op in owners(name):
        if _is_innermost(op["name"]):
            counted = expected[op["name"], json.dumps(op["args"].get("Input Dims"))]
            counted[0] += 1
            counted[1] += exact_ns(launch["dur"])

    got: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    rows = found.frame.filter(pl.col("op").is_not_null(), pl.col("inferred_launches") < pl.col("launches"))
    for row in rows.filter(pl.col("op").map_elements(_is_innermost, pl.Boolean)).iter_rows(named=True):
        counted = got[row["op"], json.dumps(json.loads(row["input_dims"]) if row["input_dims"] else None)]
        counted[0] += row["launches"] - row["inferred_launches"]
        counted[1] += row["total_ns"]
    assert {key: counts[0] for key, counts in got.items()} == {key: counts[0] for key, counts in expected.items()}
    if not found.times.inferred_ns:
        assert got == expected


@pytest.mark.parametrize("name", [*EAGER, *CAPTURES, *TRAINING, "triton_example"])
def test_time_is_conserved(name: str) -> None:
    found, result = modelled(name)
    ran = found.launches.filter(~pl.col("is_captured"))

    assert result.total_ns == ran["dur_ns"].sum() == result.frame["total_ns"].sum()
    assert result.frame["launches"].sum() == ran.height
    for frame in result.by.values():
        assert frame["total_ns"].sum() == result.total_ns
        assert frame["bound_ns"].sum() == pytest.approx(result.bound_ns or 0.0)
        assert frame["above_ns"].sum() == pytest.approx(result.above_ns)


@pytest.mark.parametrize("name", INFERENCE)
def test_nearly_all_time_of_ops_with_shapes_is_modelled(name: str) -> None:
    _, found = modelled(name)

    assert found.times.op_modelled_ns >= 0.97 * found.times.op_known_ns
    assert found.modelled_ns >= 0.95 * found.total_ns


def _says_sizes(op: dict[str, Any]) -> bool:
    """Whether the size of any tensor stands among an op's arguments, in a list of tensors too."""
    args = op["args"]
    sizes, types = args.get("Input Dims", []), args.get("Input type", [])
    return any(
        bool(size) if kind == "TensorList" else kind not in ("", "Scalar", "ScalarList", "GenericList")
        for size, kind in zip(sizes, types, strict=True)
    )


def _chains(name: str) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Each kernel with the ops and ranges around its call, outermost first: a sweep over each thread.

    The call of a whole graph is no kernel's own.
    """
    threads: dict[Any, list[tuple[int, int, dict[str, Any]]]] = defaultdict(list)
    calls, kernels = {}, []
    for each in timed_events(path_of(name)):
        start = exact_ns(each["ts"])
        if each["cat"] in ("cpu_op", "user_annotation") and exact_ns(each["dur"]) > 0:
            threads[each["pid"], each["tid"]].append((start, -start - exact_ns(each["dur"]), each))
        elif each["cat"].startswith("cuda_") and "correlation" in each.get("args", {}):
            if "GraphLaunch" not in each["name"]:
                calls[each["args"]["correlation"]] = (each["pid"], each["tid"], start)
        elif each["cat"] == "kernel":
            kernels.append(each)
    called = [(calls[id_], each) for each in kernels if (id_ := each["args"].get("correlation")) in calls]
    for thread, ranges in threads.items():
        asked = sorted(((call[2], each) for call, each in called if call[:2] == thread), key=lambda pair: pair[0])
        ranges.sort(key=lambda each: each[:2])
        open_ones: list[tuple[int, int, dict[str, Any]]] = []
        at = 0
        for time, kernel in asked:
            while at < len(ranges) and ranges[at][0] <= time:
                open_ones.append(ranges[at])
                at += 1
            open_ones = [each for each in open_ones if -each[1] > time]
            yield kernel, [each[2] for each in open_ones]


def _sized_ns(name: str) -> int:
    """Time of kernels whose op says the size of any tensor, or of which a range or a record says what they exchange."""
    total = 0
    for kernel, chain in _chains(name):
        ops = [each for each in chain if each["cat"] == "cpu_op"]
        ranges = [each for each in chain if each["name"].startswith("nccl:")]
        moves = "nccl" in kernel["name"].lower()
        exchanged = moves and ("In msg nelems" in kernel["args"] or any(map(_says_sizes, [*ranges, *ops])))
        if ops and (exchanged or _says_sizes(ops[-1])):
            total += exact_ns(kernel["dur"])
    return total


@pytest.mark.parametrize("name", [*EAGER, *TRAINING])
def test_the_share_that_is_modelled_is_of_all_kernels_whose_op_and_sizes_stand_in_the_file(name: str) -> None:
    _, found = modelled(name)
    assert found.times.sized_ns == _sized_ns(name)

    unmodelled = sum(
        row["total_ns"]
        for row in found.frame.filter(pl.col("reason").is_not_null(), pl.col("op").is_not_null()).to_dicts()
        if _says_sizes({"args": _arguments(row)})
    )
    assert found.times.sized_modelled_ns >= found.times.sized_ns - unmodelled
    assert found.times.sized_modelled_ns >= 0.97 * found.times.sized_ns


def _arguments(row: dict[str, Any]) -> dict[str, Any]:
    names = {"Input Dims": "input_dims", "Input type": "input_dtypes"}
    return {name: json.loads(row[column] or "[]") for name, column in names.items()}


def test_the_guide_says_these_shares() -> None:
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in GUIDE.read_text("utf-8").splitlines()]
    said = {row[0].split("`")[1]: row[1:] for row in rows if len(row) == 3 and row[0].startswith("`")}

    expected = {}
    for name in (*EAGER, *CAPTURES, *TRAINING):
        attributed, found = modelled(name)
        kernels = attributed.launches.filter(~pl.col("is_captured"), pl.col("kind") == "kernel")["dur_ns"].sum()
        shares = (found.times.sized_ns / kernels, found.times.sized_modelled_ns / found.times.sized_ns)
        expected[name] = [f"{100 * share:.1f} %" for share in shares]
    assert said == expected


@pytest.mark.parametrize("name", TRAINING)
def test_kernels_whose_sizes_dont_stand_in_the_file_have_lists_without_sizes_or_no_arguments(name: str) -> None:
    _, found = modelled(name)

    rows = found.frame.filter(~pl.col("sizes_recorded")).to_dicts()
    for row in rows:
        types = json.loads(row["input_dtypes"] or "[]")
        assert not types or "TensorList" in types or set(types) <= {"", "Scalar"}, row["op"]
        assert row["reason"]


def test_gradients_of_tables_read_the_indices_of_their_own_forward_op() -> None:
    """Two steps with gradients of one size: of the one nothing inside says how many indices, its number does."""
    _, found = modelled("rank1_sampled")

    rows = found.frame.filter(pl.col("op").str.contains("SplitLookupFunction_"))
    assert sorted(rows["read_bytes"].to_list()) == [74_347_184 * 8, 74_465_606 * 8]


def test_all_reduces_of_old_files_move_what_the_range_around_them_says() -> None:
    """The first tensor of the range; two ranks at least, so all of it crosses the link once."""
    expected: dict[int, int] = defaultdict(int)
    for kernel, chain in _chains("a100_idle_64"):
        if chain and chain[-1]["name"] == "nccl:all_reduce":
            (dims,) = chain[-1]["args"]["Input Dims"]
            expected[4 * math.prod(dims)] += exact_ns(kernel["dur"])

    rows = modelled("a100_idle_64")[1].frame.filter(pl.col("op") == "c10d::allreduce_", pl.col("link_bytes") > 0)
    got = {row["link_bytes"]: row["total_ns"] for row in rows.to_dicts()}
    assert got == expected
    assert max(got) == 4 * 447_923_396


def product_rows() -> list[tuple[str, dict[str, Any]]]:
    names = ("aten::mm", "aten::addmm", "aten::bmm", "aten::miopen_convolution", "aten::cudnn_convolution")
    return [
        (name, row)
        for name in (*EAGER, *CAPTURES, "rank0_sampled", "rank1_sampled")
        for row in modelled(name)[1].frame.filter(pl.col("op").is_in(names), pl.col("reason").is_null()).to_dicts()
    ]


def test_flops_of_products_and_convolutions_are_those_that_pytorch_counts() -> None:
    torch = pytest.importorskip("torch", reason="needs torch")
    from torch.utils.flop_counter import FlopCounterMode

    checked = 0
    for name, row in product_rows():
        dims = [each for each in json.loads(row["input_dims"]) if each]
        meta = [torch.empty(size, device="meta") for size in dims]
        with FlopCounterMode(display=False) as counter:
            if "convolution" in row["op"]:
                values = json.loads(row["scalars"])
                padding, stride, dilation, groups = (2, 3, 4, 5) if "cudnn" in row["op"] else (3, 4, 5, 6)
                x, weight = meta[:2]
                torch.ops.aten.convolution(
                    *(x, weight, None, json.loads(values[stride]), json.loads(values[padding])),
                    *(json.loads(values[dilation]), False, [0, 0], int(values[groups])),
                )
            else:
                getattr(torch.ops.aten, row["op"].removeprefix("aten::"))(*meta)
        assert row["flops"] == counter.get_total_flops(), (name, row["op"], dims)
        checked += 1
    assert checked > 100


def row_of(found: Roofline, op: str, **more: Any) -> dict[str, Any]:
    rows = found.frame.filter(pl.col("op") == op, *(pl.col(name) == value for name, value in more.items()))
    assert rows.height == 1
    return rows.row(0, named=True)


def test_causal_attention_counts_what_each_query_sees() -> None:
    row = row_of(modelled("h100_qwen1.5-0.5b")[1], "aten::_flash_attention_forward")

    seen = sum(range(1, 560))
    assert row["flops"] == 16 * 16 * seen * 2 * (64 + 64) == 10_257_694_720
    assert row["read_bytes"] == 3 * 16 * 559 * 16 * 64 * 2


def test_decode_attention_reads_the_caches_that_the_steps_name_tells() -> None:
    _, found = modelled("mi300_sglang_qwen3-8b_decode")
    row = row_of(found, "sglang_profiler::attention_paged_attention_ragged_100")

    keys = 32_785  # sk of the step's name
    assert row["flops"] == keys * 32 * 2 * (128 + 128)
    assert row["read_bytes"] == 32 * 32 * 128 * 2 + keys * 8 * (128 + 128) * 2
    assert row["write_bytes"] == 32 * 32 * 128 * 2
    assert (row["calls"], row["launches"]) == (36, 72)


def test_layers_that_may_have_a_window_are_not_guessed() -> None:
    op = "vllm::unified_attention_with_output"
    _, plain = modelled("mi300_vllm_gpt-oss_decode")
    _, windowed = modelled("mi300_vllm_gpt-oss_decode", window=128)

    rows = plain.frame.filter(pl.col("op") == op).sort("kernel").to_dicts()
    assert [row["kernel"] for row in rows] == ["kernel_unified_attention_2d", "kernel_unified_attention_3d"]
    assert "--window" in rows[0]["reason"]
    assert rows[1]["bound_ns"] / 12 == pytest.approx(21_300, rel=0.01)
    quick = row_of(windowed, op, kernel="kernel_unified_attention_2d")
    assert quick["flops"] == 32 * 128 * 64 * 2 * (64 + 64)
    assert quick["assumes"] == ["all sequences are longer than the window, or all shorter"]


def test_experts_are_read_in_four_bits_and_their_scales() -> None:
    row = row_of(modelled("mi300_vllm_gpt-oss_decode")[1], "vllm::moe_forward")

    first, second = 3072 * 5888, 2944 * 3072  # K times N of both products
    used = math.ceil(32 * (1 - (1 - 4 / 32) ** 32))
    assert row["flops"] == 2 * 32 * 4 * (first + second)
    assert row["read_bytes"] == 32 * 3072 * 2 + used * sum(size // 2 + size // 32 for size in (first, second))
    assert row["dtype"] == "bf16"
    assert row["assumes"] == ["tokens choose their experts evenly"]


@pytest.mark.parametrize("name", ["kineto_eager", "kineto_graph"])
def test_recordings_of_an_h200(name: str) -> None:
    with (
        inferometer.open(SAMPLES / "h200" / f"{name}.json.gz") as trace,
        inferometer.open(SAMPLES / "h200" / "kineto_capture.json.gz") as capture,
    ):
        found = attribute(trace, captures=[capture] if name == "kineto_graph" else [], with_op_calls=True)
        result = roofline(found, trace)

    assert result.device is not None
    assert result.device.name == "H200 SXM"
    assert result.frame["total_ns"].sum() == result.total_ns == trace_time(found)
    if name == "kineto_eager":
        assert result.modelled_ns == result.total_ns
        assert result.frame.filter(pl.col("fraction") > 1).is_empty()


def trace_time(found: Attribution) -> int:
    return int(found.launches.filter(~pl.col("is_captured"))["dur_ns"].sum())


def test_the_finding_says_what_the_file_and_the_datasheet_do() -> None:
    name, op, dims = "mi300_vit", "aten::addmm", [[768], [788, 3072], [3072, 768], [], []]
    took = [
        exact_ns(launch["dur"])
        for launch, owner in owners(name)
        if owner["name"] == op and owner["args"]["Input Dims"] == dims
    ]
    (m, k), n = dims[1], dims[2][1]
    flops = 2 * m * k * n
    device = require_device("MI300X")
    padded = 2 * (-(-m // 16) * 16) * k * n
    bound = len(took) * padded / device.matrix["bf16"].value * 1e9
    whole = sum(exact_ns(launch["dur"]) for launch in timed_events(path_of(name)) if launch["cat"] in KINDS)

    with inferometer.open(path_of(name)) as trace:
        (finding,) = (
            each for each in find_findings(trace, rules=["above_the_bound"]).findings if "[788,3072]" in each.title
        )

    total, above = sum(took), sum(took) - bound
    reached, share = f"{100 * bound / total:.1f} %", f"{100 * above / whole:.1f} %"
    read, written = 2 * (n + m * k + k * n), 2 * m * n
    what = f"{len(took)} calls of aten::addmm [768] [788,3072] [3072,768] bf16"
    assert finding.title == f"{what} reach {reached} of what the MI300X allows"
    times = f"Time: {total / 1e3:.3f} μs. Bound, by matrix: {bound / 1e3:.3f} μs."
    assert finding.evidence == (
        f"{times} The {above / 1e3:.3f} μs above it are {share} of the device time.",
        f"By its shapes one call must do {flops:,} FLOPs, read {read:,} bytes and write {written:,}.",
    )
    assert finding.size_ns == total
