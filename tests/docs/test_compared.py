"""The page that compares tools: what PyTorch does is run, what HTA answered is kept, and cells on NVIDIA have links."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/guide/compared.md").read_text("utf-8")
HTA = json.loads((ROOT / "benchmarks/results/hta_features-2026-11-27.json").read_text("utf-8"))["features"]
RAN = {  # what `test_what_pytorch_s_cells_say_is_so` asserts, cell by cell
    "Records": "PyTorch programs",
    "Reads": "nvprof's databases",
    "AMD GPUs": "yes",
    "Kernels by time": "yes",
    "Who launched a kernel: op, module, line": "op, module, stack",
    "Findings in words, with evidence": "a few patterns, not public",
    "Bounds of ops by their shapes": "FLOPs of some ops",
    "Hardware counters of a kernel": "CUPTI's, experimental",
    "Time line to look at": "exports",
    "Queries of one's own": "Python",
}


def table() -> dict[str, dict[str, str]]:
    lines = PAGE[PAGE.index("| Feature |") :].partition("\n\n")[0].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return {row[0]: dict(zip(rows[0][1:], row[1:], strict=True)) for row in rows[2:]}


def test_each_cell_on_nsys_and_ncu_links_the_documentation_that_it_is_from() -> None:
    cells = [row[tool] for row in table().values() for tool in ("nsys", "ncu") if row[tool] != "–"]
    assert len(cells) > 20
    assert all(re.search(r" \(\[doc\]\(https://docs\.nvidia\.com/nsight-[\w/.-]+\)\)$", cell) for cell in cells)


def test_what_is_said_of_hta_is_what_it_answered() -> None:
    rows = table()
    tried = {name for name, row in rows.items() if row["HTA"].endswith("(tried)")} - {"AMD GPUs"}
    assert tried == set(HTA)
    failed = {name for name, answer in HTA.items() if "Error" in answer}
    assert failed == {name for name, row in rows.items() if "not with pandas 3" in row["HTA"]} == {"Critical path"}


def test_what_pytorch_s_cells_say_is_so(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="needs the extra torch")
    from torch._C._profiler import _ExperimentalConfig
    from torch.profiler import ProfilerActivity, _pattern_matcher, profile

    assert {name: row["PyTorch profiler"] for name, row in table().items() if row["PyTorch profiler"] != "–"} == RAN
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU())
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True, with_stack=True, with_flops=True) as recorded:
        model(torch.randn(8, 64))
    flops = {event.key: event.flops for event in recorded.key_averages() if event.flops}
    assert flops == {"aten::addmm": 2 * 8 * 64 * 64}, "of some: a ReLU has none"
    assert "Self CPU" in recorded.key_averages().table()
    recorded.export_chrome_trace(str(tmp_path / "trace.json"))
    events: list[dict[str, Any]] = json.loads((tmp_path / "trace.json").read_text("utf-8"))["traceEvents"]
    frames = [event["name"] for event in events if event.get("cat") == "python_function"]
    assert any(name.startswith("nn.Module: Linear") for name in frames)
    assert any(Path(__file__).name in name for name in frames)
    assert callable(torch.autograd.profiler.load_nvprof)
    assert _pattern_matcher.__name__.rpartition(".")[2].startswith("_"), "not public"
    assert callable(_pattern_matcher.report_all_anti_patterns)
    assert "CUPTI profiler metrics" in (_ExperimentalConfig.__init__.__doc__ or "")
