"""`inferometer steps` as users meet it: forms of output, options, wrong calls."""

import csv
import json
from pathlib import Path

import pytest
from tests.kineto_files import call, kernel, write_file
from tests.webgpu_log_files import write_log

from inferometer.commands.main import main
from inferometer.names import decode

SAMPLE = Path(__file__).resolve().parents[2] / "samples" / "decode.json.gz"


@pytest.fixture
def log_file(tmp_path: Path) -> Path:
    path = tmp_path / "engine.log"
    path.write_text(write_log(batches=24, tail=3, disturbed={9: {"*": 1.5}}), "utf-8")
    return path


def run(*words: object, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of one call."""
    with pytest.raises(SystemExit) as stopped:
        main(["steps", *map(str, words)])
    out, err = capsys.readouterr()
    assert "Traceback" not in out + err
    return int(stopped.value.code or 0), out, err


def test_the_tables_are_printed_in_order_with_what_they_say(log_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(log_file, "--top", 3, capsys=capsys)
    assert (code, err) == (0, "")
    titles = ("Steps per phase", "Growth with context, decode", "Disturbed steps", "Steps", "Classes of kernels")
    assert [line for line in out.splitlines() if line in titles] == list(titles)
    for words in ("Model     tiny-chat-1b", "1 of 25 decode steps was disturbed", "3 of 26 steps shown", "(all)"):
        assert words in out


def test_json_has_the_promised_shape(log_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(log_file, "--json", "--top", 1, capsys=capsys)
    data = json.loads(out)
    assert set(data) >= {"source", "steps", "phases", "classes", "growth", "disturbed", "remarks", "losses"}
    assert (len(data["steps"]), data["disturbed"], data["runs"]) == (26, [10], [{"run": 0, "steps": 26}])
    assert [phase["phase"] for phase in data["phases"]] == ["prefill", "decode"]
    assert data["growth"][-1]["class"] == "(all)"
    assert data["steps"][10]["why"]


@pytest.mark.parametrize("form", ["--csv", "--tsv"])
def test_exported_tables_have_all_steps(form: str, log_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(log_file, form, "--top", 1, capsys=capsys)
    rows = list(csv.DictReader(out.splitlines(), delimiter="," if form == "--csv" else "\t"))
    assert len(rows) == 26
    assert [row["Step"] for row in rows if row["Disturbed"] == "yes"] == ["10"]
    assert all(int(row["Wall (ns)"]) - int(row["GPU busy (ns)"]) == int(row["Gap (ns)"]) for row in rows)


def test_markdown_has_the_same_tables(log_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(log_file, "--markdown", capsys=capsys)
    assert "### Steps per phase" in out
    assert "| decode | 25 | 24 |" in out


def test_options_choose_the_phase_and_keep_what_was_disturbed(
    log_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = run(log_file, "--phase", "decode", "--keep-disturbed", "--json", capsys=capsys)
    data = json.loads(out)
    assert [(phase["phase"], phase["used"]) for phase in data["phases"]] == [("decode", 25)]
    assert {row["phase"] for row in data["classes"]} == {"decode"}
    assert data["disturbed"] == [10]


def test_of_several_runs_one_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "two.log"
    path.write_text(write_log(batches=3) + write_log(batches=5), "utf-8")
    counts = []
    for options in ([], ["--run", "1"]):
        _, out, _ = run(path, "--json", *options, capsys=capsys)
        counts.append((json.loads(out)["run"], len(json.loads(out)["steps"])))
    assert counts == [(0, 4), (1, 6)]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["{file}", "--run", "7"], 3, 'unknown run "7"'),
        (["{file}", "--phase", "mixed"], 3, 'unknown phase "mixed"'),
        (["{file}", "--phase", "training"], 2, "training"),
        (["{file}", "--top", "0"], 2, "--top"),
        (["nowhere.log"], 3, "nowhere.log: No such file"),
        ([], 2, "FILE"),
    ],
)
def test_wrong_calls_say_what_was_wrong(
    words: list[str], code: int, said: str, log_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found, out, err = run(*(word.format(file=log_file) for word in words), capsys=capsys)
    assert (found, out) == (code, "")
    assert said in err


def test_a_file_without_steps_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(write_file([call(ts="90", correlation=1), kernel("gemm", "100", "10", correlation=1)]))
    code, out, err = run(path, capsys=capsys)
    assert (code, out) == (3, "")
    assert "trace.json: expected steps of an engine, found none recorded" in err
    assert "profiler.step()" in err


def test_a_log_that_breaks_off_has_the_steps_before(log_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = log_file.read_text("utf-8")
    log_file.write_text(text[: len(text) // 2], "utf-8")
    code, out, _ = run(log_file, "--json", capsys=capsys)
    data = json.loads(out)
    assert code == 0
    assert 5 < len(data["steps"]) < 26
    assert data["losses"]


BENCHMARK = {
    "backend": "vllm",
    "model_id": "llama",
    "num_prompts": 64,
    "max_concurrency": 16,
    "duration": 14.2,
    "completed": 64,
    "total_input_tokens": 8_192,
    "total_output_tokens": 8_192,
    "output_throughput": 576.9,
    "mean_ttft_ms": 41.0,
    "median_ttft_ms": 37.5,
    "p99_ttft_ms": 93.1,
    "mean_tpot_ms": 6.71,
    "median_tpot_ms": 6.69,
    "mean_itl_ms": 6.7,
    "median_itl_ms": 6.6,
    "p99_itl_ms": 9.8,
}


@pytest.fixture
def benchmark_file(tmp_path: Path) -> Path:
    path = tmp_path / "bench.json"
    path.write_text(json.dumps(BENCHMARK), "utf-8")
    return path


def test_what_a_benchmark_measured_stands_beside_the_steps(
    benchmark_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(SAMPLE, "--serving", benchmark_file, capsys=capsys)
    assert code == 0
    assert "What clients wait for" in out
    _, out, _ = run(SAMPLE, "--serving", benchmark_file, "--json", capsys=capsys)
    data = json.loads(out)
    serving = data["serving"]
    assert serving["can_be_same_run"]
    assert set(serving["remarks"]) <= set(data["remarks"])
    token = [row for row in serving["rows"] if row["about"] == "token" and row["source"] != "benchmark"]
    parts = [row["mean_ns"] for row in token if row["mean_share"] is not None]
    assert sum(parts) == pytest.approx(6.7e6)


def test_of_a_benchmark_with_several_runs_one_is_chosen(
    benchmark_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slower = BENCHMARK | {"mean_itl_ms": 9.0, "median_itl_ms": 9.0}
    benchmark_file.write_text("\n".join(map(json.dumps, (BENCHMARK, slower))), "utf-8")
    _, out, _ = run(SAMPLE, "--serving", benchmark_file, "--serving-run", 1, "--json", capsys=capsys)
    assert json.loads(out)["serving"]["serving"]["run"] == 1
    code, _, err = run(SAMPLE, "--serving", benchmark_file, capsys=capsys)
    assert code == 3
    assert "expected one run of several" in err


@pytest.mark.parametrize(
    ("text", "options", "code", "said"),
    [
        ('{"a": 1}', [], 3, "bench.json"),
        ("not JSON", [], 3, "bench.json"),
        (json.dumps(BENCHMARK), ["--phase", "decode"], 2, "--phase and --serving are mutually exclusive"),
        (json.dumps(BENCHMARK), ["--serving-run", "4"], 3, "run 4"),
    ],
)
def test_a_file_that_is_no_benchmark_is_refused(
    text: str,
    options: list[str],
    code: int,
    said: str,
    benchmark_file: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    benchmark_file.write_text(text, "utf-8")
    found, out, err = run(SAMPLE, "--serving", benchmark_file, *options, capsys=capsys)
    assert (found, out) == (code, "")
    assert said in err


def test_a_trace_shows_launches_and_how_much_they_bind(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(SAMPLE, capsys=capsys)
    assert "Launch-bound" in out
    assert "is launch-bound for" in out
    _, out, _ = run(SAMPLE, "--json", capsys=capsys)
    for row in json.loads(out)["steps"]:
        assert row["launches"] > 100
        assert 0.5 < row["launch_bound_share"] == row["launch_bound_ns"] / row["wall_ns"] < 1


def test_a_log_has_no_launches_and_says_what_was_different(log_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(log_file, "--json", capsys=capsys)
    data = json.loads(out)
    assert {row["launches"] for row in data["steps"]} == {None}
    parts = [row["excess_ns"] for row in data["differences"] if row["step"] == 10]
    step = data["steps"][10]
    assert sum(parts) == step["excess_ns"] + step["gap_excess_ns"]
    _, out, _ = run(log_file, capsys=capsys)
    assert "What was different in disturbed steps" in out
    assert "Launch-bound" not in out


def test_classes_are_shown_as_what_their_kernels_names_say(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(SAMPLE, "--json", capsys=capsys)
    classes = [row["class"] for row in json.loads(out)["classes"]]
    known = [decode(name).short_name for name in classes if decode(name).is_known]
    assert len(known) > 15
    _, out, _ = run(SAMPLE, "--top", "100", capsys=capsys)
    shown = out.partition("Classes of kernels")[2]
    assert all(name in shown for name in known)
    assert "flashinfer::" not in shown
    _, out, _ = run(SAMPLE, "--top", "100", "--raw", "--full", capsys=capsys)
    assert all(name in out for name in classes)


def test_only_the_most_disturbed_steps_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    recorded = SAMPLE.parent / "h200" / "normal.ifm"
    _, out, _ = run(recorded, "--json", capsys=capsys)
    disturbed = [row for row in json.loads(out)["steps"] if row["disturbed"]]
    lost = sorted(disturbed, key=lambda row: row["excess_ns"] + row["gap_excess_ns"], reverse=True)[:3]
    _, out, _ = run(recorded, "--top", "3", capsys=capsys)
    table = out.partition("Disturbed steps")[2].partition("\n\n")[0].splitlines()
    assert [int(line.split()[0]) for line in table[3:6]] == sorted(row["step"] for row in lost)
    assert table[6] == f"3 of {len(disturbed)} disturbed steps shown."


@pytest.mark.parametrize("sample", ["decode.json.gz", "h200/kineto_eager.json.gz"])
def test_where_too_few_steps_are_alike_none_is_called_undisturbed(
    sample: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = run(SAMPLE.parent / sample, "--full", capsys=capsys)
    assert "No phase has 8 like steps, so which of them were disturbed can't be known." in out
    _, table, _ = run(SAMPLE.parent / sample, "--json", capsys=capsys)
    assert len(json.loads(table)["steps"]) < 8
    rows = out.partition("\nSteps\n")[2].partition("\n\n")[0].splitlines()
    at = rows[0].index("Disturbed")
    assert {row[at : at + len("Disturbed")].strip() for row in rows[2:]} == {"-"}
