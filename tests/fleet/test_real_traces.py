"""Real captures as a fleet: all in one go, and what it says is what they say one by one."""

import gzip
import json
from collections import Counter
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import inferometer
from inferometer.commands.main import main
from inferometer.fleet.about import engine_of
from inferometer.fleet.mining import Mined, mine
from inferometer.fleet.opening import Fleet, open_fleet
from inferometer.fleet.questions.importance import fleet_importance
from inferometer.fleet.questions.models import fleet_models, recognised_traces
from inferometer.fleet.questions.outliers import fleet_outliers
from inferometer.fleet.questions.times import fleet_times
from inferometer.fleet.workers import WorkerLimits, Workers
from inferometer.reports.views.fleet.models import VIEW

ROOT = Path(__file__).resolve().parents[2]
ALIKE = ("normal", "pcie_traffic")  # as gpu_contention


@pytest.fixture(scope="module")
def whole(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Mined, Fleet]:
    """All captures that there are, and the samples: Kineto files, ranks, stores, logs, exports, runs of sums.

    Of the three long recordings of one program on an H200 it is one.
    """
    place = tmp_path_factory.mktemp("whole") / "f.ifm"
    samples = [*(ROOT / "samples").iterdir(), *(ROOT / "samples" / "h200").iterdir()]
    left_out = {ROOT / "samples" / "h200", *(ROOT / "samples" / "h200" / f"{name}.ifm" for name in ALIKE)}
    words = [shared_data / "traces", shared_data / "latencyprism", *sorted({*samples} - left_out)]
    return mine(map(str, words), place, readers=Workers(2, WorkerLimits(3 << 30, 600.0))), open_fleet(place)


def printed(*words: str) -> dict[str, object]:
    out = StringIO()
    with redirect_stdout(out), redirect_stderr(StringIO()), pytest.raises(SystemExit) as stopped:
        main([*words, "--json"])
    assert stopped.value.code == 0
    found: dict[str, object] = json.loads(out.getvalue())
    return found


def test_all_that_can_be_read_is_mined_and_the_rest_has_a_reason(whole: tuple[Mined, Fleet]) -> None:
    mined, fleet = whole
    others = {Path(path).suffix for path, _ in mined.aside}
    assert others <= {".md", ".json", ".gz", ".pb", ".hatchet"}
    assert all(reason.startswith("expected one of the known formats") for _, reason in mined.aside)
    formats = set(fleet.traces["format"])
    assert {"kineto", "nsys", "webgpu-log", "latencyprism"} <= formats
    assert fleet.traces.filter(fleet.traces["path"].str.contains("rank._sampled"))["rank"].sort().to_list() == [0, 1]


def test_sums_are_those_of_kernels_of_each_trace(whole: tuple[Mined, Fleet]) -> None:
    _, fleet = whole
    total, count = Counter[str](), Counter[str]()
    for path in fleet.traces["path"]:
        for row in printed("kernels", path)["rows"]:  # type: ignore[attr-defined]
            total[row["kernel"]] += row["total_ns"]
            count[row["kernel"]] += row["count"] or 0
    found = fleet_times(fleet, "kernels")
    assert dict(found.frame.select("kernel", "total_ns").iter_rows()) == total
    assert found.total_ns == sum(total.values())
    told = found.frame.drop_nulls("launches").select("kernel", "launches")
    assert all(count[kernel] == launches for kernel, launches in told.iter_rows())


def test_weights_of_all_captures_add_up_to_one(whole: tuple[Mined, Fleet]) -> None:
    found = fleet_importance(whole[1])
    assert found.frame["time_weight"].sum() == pytest.approx(1)
    assert found.frame["gpu_hours_weight"].sum() == pytest.approx(1)
    assert found.total_ns == whole[1].traces["op_ns"].sum()


@pytest.mark.parametrize(
    ("name", "engine"),
    [
        ("mi300_sglang_qwen3-8b_decode", "SGLang"),  # which marks its steps as vLLM does, too
        ("mi300_vllm_gpt-oss_decode", "vLLM"),
        ("h100_vit", None),
    ],
)
def test_an_engine_is_known_by_its_functions(name: str, engine: str | None, shared_data: Path) -> None:
    with inferometer.open(shared_data / "traces" / "kineto" / f"{name}.json.gz") as trace:
        assert engine_of(trace) == (engine, None)


def test_a_recording_whose_steps_are_named_as_an_engine_does_is_of_none() -> None:
    with inferometer.open(ROOT / "samples" / "recorded" / "disk" / "normal.ifm") as trace:
        assert "step[DECODE bs=1]" in trace.spans.select("span").collect()["span"]
        assert engine_of(trace) == (None, None)


def test_a_model_is_named_where_it_is_that_one_and_nowhere_else(whole: tuple[Mined, Fleet]) -> None:
    """By the names of the files, and what the notes of the samples say that they are of."""
    traces = whole[1].traces.select("trace", "path").join(recognised_traces(whole[1]), on="trace")
    named = {Path(path).name: models for path, models in traces.select("path", "models").drop_nulls().iter_rows()}
    assert named == {
        "h100_qwen1.5-0.5b.json.gz": "Qwen1.5-0.5B",
        "mi300_qwen1.5-0.5b.json.gz": "Qwen1.5-0.5B",
        "mi300_vllm_gpt-oss_decode.json.gz": "gpt-oss-120b or gpt-oss-20b",
        "decode.json.gz": "Llama-3.2-1B",
        "decode_fixed.json.gz": "Llama-3.2-1B",
    }


def test_outliers_of_recordings_are_those_of_one_program(whole: tuple[Mined, Fleet]) -> None:
    found = fleet_outliers(whole[1])
    of_cpu = found.frame.filter(pl.col("gpu").str.contains("CPU|EPYC|Xeon"))["path"].to_list()
    assert all("recorded" in path for path in of_cpu), "on_and_off is another program than the pairs next to it"
    faults = [path for path in of_cpu if "fault.ifm" in path]
    assert faults == of_cpu
    assert faults


def test_a_name_is_that_of_the_traces_that_have_it(whole: tuple[Mined, Fleet]) -> None:
    found = fleet_models(whole[1])
    named = whole[1].traces.filter(pl.col("model").is_not_null())
    assert found.frame["named"].sum() == named.height
    row = found.frame.filter(pl.col("reason") == "no products with shapes").row(0, named=True)
    assert row["named"] < row["traces"]
    (section,) = list(VIEW.sections(found))
    assert f"({row['named']} of {row['traces']})" in str(section.frame["recorded"].to_list())


@pytest.mark.parametrize("spaces", [{"separators": (",", ":")}, {"indent": 2}], ids=["none", "indented"])
def test_a_trace_that_was_written_anew_with_other_spaces_has_the_same_shapes(
    tmp_path: Path, spaces: dict[str, Any]
) -> None:
    path = ROOT / "samples" / "h200" / "kineto_eager.json.gz"
    (tmp_path / "anew.json").write_text(json.dumps(json.loads(gzip.decompress(path.read_bytes())), **spaces))
    both = mine([str(path), str(tmp_path)], tmp_path / "f.ifm", readers=Workers(1, WorkerLimits(1 << 30, 60.0)))
    alone = mine([str(path)], tmp_path / "g.ifm", readers=Workers(1, WorkerLimits(1 << 30, 60.0)))
    assert (both.traces, alone.traces) == (2, 1)
    shapes = [fleet_times(open_fleet(tmp_path / name), "shapes").frame for name in ("f.ifm", "g.ifm")]
    keys = ("op", "input_dims", "input_dtypes", "scalars")
    assert len(shapes[1]) > 10
    assert shapes[0].select(keys).sort(keys).equals(shapes[1].select(keys).sort(keys))
