"""The log that a user sent, 65 reports of one run: every number against an independent, slow reading of its text."""

import math
import re
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.traces import counted, rows

import inferometer
from inferometer import Trace, kernel_table
from inferometer.formats.base import find_format
from inferometer.formats.source import Source
from inferometer.reports.views.view import remarks_of

SEED = "004_b259a8c8aedd2a44.txt"
_ROW = re.compile(r"(\S+) +(\d+\.\d\d) +\d+\.\d")
_LABEL = re.compile(r"(\w+)(?::(?:L(?P<l1>\d+)\.(?P<r1>\w+)|(?P<r2>\w+?)(?::L(?P<l2>\d+))?))?")


@pytest.fixture(scope="module")
def text(seeds: Path) -> str:
    return (seeds / SEED).read_text("utf-8")


@pytest.fixture(scope="module")
def trace(seeds: Path) -> Trace:
    return inferometer.open(seeds / SEED)


@pytest.fixture(scope="module")
def reports(text: str) -> list[list[tuple[str, int]]]:
    """Rows of each report, the total last, in ns."""
    found: list[list[tuple[str, int]]] = []
    for line in text.splitlines():
        if "GPU Profile Report" in line:
            found.append([])
        elif match := _ROW.fullmatch(line):
            found[-1].append((match[1], int(Decimal(match[2]) * 1_000_000)))
    return found


def test_its_content_finds_the_format(seeds: Path) -> None:
    assert find_format(Source(seeds / SEED)).name == "webgpu-log"


def test_every_row_of_every_report(trace: Trace, reports: list[list[tuple[str, int]]]) -> None:
    expected = [(0, step, *row) for step, report in enumerate(reports) for row in report[:-1]]
    assert rows(trace, "totals", "section", "step", "kernel", "total_ns") == expected
    assert [len(report) - 1 for report in reports] == [189] + 64 * [140]
    assert {report[-1][0] for report in reports} == {"TOTAL"}
    assert set(rows(trace, "totals", "device", "resolution_ns", "count")) == {("webgpu:0", 5_000.0, None)}


def test_layers_and_roles_in_both_syntaxes(trace: Trace) -> None:
    for label, layer, role in set(rows(trace, "totals", "kernel", "layer", "role")):
        match = _LABEL.fullmatch(label)
        assert match
        assert (layer, role) == (match["l1"] or match["l2"], match["r1"] or match["r2"]), label
    fused = trace.totals.filter(pl.col("kernel") == "matmul_rmsnorm_fused:L9.ffn_down").collect()
    assert set(fused["layer"]) == {"9"}
    assert set(fused["role"]) == {"ffn_down"}


def test_totals_are_the_printed_ones_and_the_rows_make_them_up(
    trace: Trace, reports: list[list[tuple[str, int]]]
) -> None:
    busy = rows(trace, "steps", "gpu_busy_ns")
    assert busy == [report[-1][1] for report in reports]
    assert (sum(busy), sum(busy[1:])) == (37_206_470_000, 37_092_200_000)
    sums = trace.totals.group_by("step").agg(pl.col("total_ns").sum()).sort("step").collect()["total_ns"].to_list()
    assert max(abs(a - b) for a, b in zip(sums, busy, strict=True)) <= 190_000


def test_rounding_explains_that_rows_and_totals_differ_if_alike_rows_are_rounded_alike(
    trace: Trace, reports: list[list[tuple[str, int]]]
) -> None:
    printed = trace.facts.printed_totals
    assert printed is not None
    assert (printed.rows_ns, printed.totals_ns) == (37_201_590_000, 37_206_470_000)
    values = [value for report in reports for value in report]
    assert (printed.reports, printed.rows) == (65, len(values) - 65)
    assert printed.most_ns == len(values) * 5_000  # half of 0.01 ms each
    assert printed.alone_ns == pytest.approx(math.sqrt(len(values) / 12) * 10_000)
    off = [report[-1][1] - sum(ns for _, ns in report[:-1]) for report in reports]
    assert sum(off) == 4_880_000
    assert printed.alone_ns * 17 < sum(off) < printed.most_ns / 9
    assert sum(each > 0 for each in off) == 60  # nearly always to the same side, so not each by itself
    assert all(abs(each) <= len(report) * 5_000 for each, report in zip(off, reports, strict=True))
    said = [line for line in remarks_of(kernel_table(trace)) if "rounded" in line]
    words = (
        "The rows add up to 37,201.59 ms and the totals that the source printed to 37,206.47 ms: each of 9,149 rows "
        "and 65 totals is rounded, which may come to 46.07 ms; were they rounded independently, 277.098 μs would be "
        "usual, but much the same rows come in every report and are rounded alike."
    )
    assert said == [words]


def test_attention_grows_as_printed(trace: Trace) -> None:
    attention = trace.totals.filter((pl.col("kernel") == "attention") & (pl.col("step") > 0)).collect()["total_ns"]
    assert (attention[0], attention.max()) == (20_770_000, 453_600_000)


def test_steps_have_phase_tokens_context_and_wall_time(trace: Trace, text: str) -> None:
    steps = rows(trace, "steps", "step", "phase", "decode_tokens", "context_len")
    contexts = [9 + 4 * i for i in range(64)]
    assert steps == [(0, "prefill", None, 0)] + [
        (i + 1, "decode", 4 if i < 63 else 3, context) for i, context in enumerate(contexts)
    ]
    titles = re.findall(r"\[([\d.]+)ms\]\[Profile\] (?:Batch|Prefill).*:$", text, re.MULTILINE)
    ends = [int(Decimal(each) * 1_000_000) for each in titles]
    spans = rows(trace, "steps", "start_ns", "dur_ns")
    assert spans[0] == (44_316_400_000 - 40_471_500_000 - 308_100_000, 191_800_000)
    assert spans[1] == (3_844_900_000, ends[1] - 3_844_900_000)
    assert spans[2:] == [(a, b - a) for a, b in pairwise(ends[1:])]
    assert set(rows(trace, "steps", "batch", "process", "anchor", "source")) == {
        (1, None, "profile report", "recorded")
    }


def test_the_metrics_are_exact(trace: Trace) -> None:
    metrics = trace.facts.engine_metrics
    assert {key: metrics[key] for key in metrics if key.endswith(("_ns", "_per_s", "tokens")) or key == "prompt"} == {
        "prompt": "Summarize this input in one sentence.",
        "load_ns": 3_343_500_000,
        "ttft_ns": 308_100_000,
        "prefill_ns": 191_800_000,
        "decode_ns": 40_471_500_000,
        "total_ns": 40_780_100_000,
        "duration_ns": 44_124_100_000,
        "prefill_tokens": 9,
        "decode_tokens": 256,
        "max_tokens": 256,
        "total_tokens_per_s": 6.28,
        "prefill_tokens_per_s": 46.92,
        "decode_tokens_per_s": 6.33,
    }
    assert metrics["perf"] == {
        "ttft_ns": 308_000_000,
        "prefill_ns": 192_000_000,
        "decode_ns": 40_472_000_000,
        "decode_tokens": 255,
        "decode_tokens_per_s": 6.3,
    }
    assert [metrics[key] for key in ("command", "passed", "failed")] == ["debug", 1, 0]
    assert "runs" not in metrics


def test_what_the_lines_say_of_model_device_and_load(trace: Trace) -> None:
    facts, metrics = trace.facts, trace.facts.engine_metrics
    assert (facts.framework, facts.model, facts.devices[0].name) == ("WebGPU", "gemma-3-1b-it", "apple metal-3")
    expected: dict[str, Any] = {
        "features": ["f16", "subgroups"],
        "adapter_limit_bytes": 4 << 30,
        "layers": 26,
        "hidden": 1152,
        "heads": 4,
        "head_dim": 256,
        "kernel_path": {"name": "gemma3-f16-f16a", "decode_steps": 15, "kernels": 10, "source": "config"},
        "tokenizer_vocab": 262_145,
        "model_vocab": 262_144,
        "embeddings": {"name": "model.embed_tokens.weight", "shape": [262_144, 1152]},
        "query_set_limit": {"value": 4096, "is_fallback": True},
    }
    assert {key: metrics[key] for key in expected} == expected
    assert [load["what"] for load in metrics["loads"]] == ["embeddings", "layers", "complete"]
    complete = {"what": "complete", "bytes": 0, "dur_ns": 1_220_000_000, "bytes_per_s": 0, "time_ns": 3_373_100_000}
    assert metrics["loads"][2] == complete
    start, end = metrics["memory"]
    assert (start["when"], end["when"], end["gpu_active"], end["buffers"]) == ("start", "complete", 340, 340)
    assert end["gpu_bytes"] == end["gpu_peak_bytes"] == round(2.04 * 2**30)


def test_selections(trace: Trace) -> None:
    assert rows(trace, "selections", "op", "variant", "reason", "time_ns") == [
        ("matmul", "f16", "path_override_adaptive_fallback", 3_567_200_000),
        ("attention", "prefill_streaming_f16", "path_override:streaming", 3_572_800_000),
        ("matmul", "gemv_subgroup_vec4_f16a", "path_override", 3_848_300_000),
        ("attention", "decode_chunked_f16", "path_override:tiled_large", 3_852_300_000),
        ("matmul", "gemv_subgroup_multicol_f16a", "path_override", 3_866_700_000),
    ]


def test_every_line_is_typed_and_none_is_lost(trace: Trace, text: str) -> None:
    lines = text.splitlines()
    kept = dict(rows(trace, "log", "line", "text"))
    assert all(lines[number - 1] == line for number, line in kept.items())
    gone = [line for number, line in enumerate(lines, 1) if number not in kept and line.strip()]
    assert len(gone) == len(rows(trace, "totals", "kernel"))
    assert all(_ROW.fullmatch(line) and not line.startswith("TOTAL") for line in gone)
    assert set(rows(trace, "log", "kind")) == {
        *("progress", "error", "cache", "gpu", "config", "kernel_path", "model", "tokenizer", "heap", "loader"),
        *("memory", "selection", "profile", "perf", "result", "metrics", "recorder", "pipeline"),
    }
    assert counted(trace) == {}


def test_levels_modules_and_times(trace: Trace) -> None:
    assert rows(trace, "log", "time_ns", "level", "source", "kind", "fields")[:5] == [
        (None, None, "progress", "progress", None),
        (None, None, "progress", "progress", '{"modelUrl":"/models/local/gemma-3-1b-it"}'),
        (None, "error", None, "error", '{"status":404}'),
        (190_300_000, "log", "OPFSCache", "cache", '{"state":"cache hit","name":"gemma-3-1b-it"}'),
        (None, "log", "GPU", "gpu", rows(trace, "log", "fields")[4]),
    ]
    warnings = trace.log.filter(pl.col("level") == "warning").collect()
    assert warnings.height == 132
    assert (warnings["kind"] == "profile").sum() == 130
