"""`inferometer compare` as users meet it."""

import csv
import io
import json
import shutil
from pathlib import Path

import pytest
from tests.commands.test_command_line import run
from tests.kineto_files import event, kernel, write_file

SLOW = Path(__file__).resolve().parents[2] / "samples" / "slow"
RECORDED = SLOW.parent / "recorded"
NORMAL, ABNORMAL = SLOW / "normal", SLOW / "abnormal"


def test_the_verdict_is_the_first_line(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run("compare", NORMAL, ABNORMAL, capsys=capsys)
    assert (code, err) == (0, "")
    assert out.splitlines()[0].startswith("Verdict   cause named. The step is slower")
    assert "Runner-up:" in out
    assert "False alarms:" in out
    assert "Not measured in both runs: cpu_quota, thermal." in out
    assert "What changed, a step" in out


def test_markdown_has_the_verdict_too(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run("compare", NORMAL, ABNORMAL, "--markdown", capsys=capsys)
    brief, _, rest = out.partition("<details>")
    assert brief.startswith("**Cause named. ")
    assert len(brief.splitlines()) <= 7, "short enough for a pull request"
    assert rest.endswith("</details>\n")
    assert "- **Verdict**: cause named. " in rest


def test_kernels_side_by_side_are_folded_in_markdown_alone(capsys: pytest.CaptureFixture[str]) -> None:
    runs = RECORDED / "disk" / "normal.ifm", RECORDED / "disk" / "fault.ifm"
    _, out, _ = run("compare", *runs, "--markdown", capsys=capsys)
    brief, _, details = out.partition("<details>")
    assert "Kernels side by side" not in brief
    assert "### Kernels side by side, a decode step" in details
    _, out, _ = run("compare", *runs, capsys=capsys)
    assert "Kernels side by side" not in out
    _, out, _ = run("compare", *runs, "--json", capsys=capsys)
    rows = json.loads(out)["kernels"]["rows"]
    assert [(one["name"], one["kind"], one["base_calls"]) for one in rows[:1]] == [("aten::linear", "slower", 8.0)]


def test_json_is_one_document(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run("compare", NORMAL, ABNORMAL, "--json", capsys=capsys)
    data = json.loads(out)
    assert (data["verdict"], data["causes"][0]["class"]) == ("cause named", "cpu_clock")


@pytest.mark.parametrize(
    ("pair", "options", "code"),
    [
        ((NORMAL, ABNORMAL), (), 0),
        ((NORMAL, ABNORMAL), ("--check",), 1),
        ((NORMAL, ABNORMAL), ("--check", "--max-regression", "20"), 1),
        ((NORMAL, ABNORMAL), ("--check", "--max-regression", "200"), 0),
        ((NORMAL, NORMAL), ("--check",), 0),
        ((ABNORMAL, NORMAL), ("--check",), 0),
    ],
)
def test_check_fails_on_a_regression_beyond_noise(
    pair: tuple[Path, Path], options: tuple[str, ...], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("compare", *pair, *options, capsys=capsys)[0] == code


@pytest.mark.parametrize(("options", "code"), [((), 0), (("--strict",), 1)])
def test_what_is_not_proven_is_said_and_fails_where_that_is_asked_for(
    options: tuple[str, ...], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [SLOW.parent / "engines" / f"llama_bench_{number}.json" for number in (1, 2)]
    found, out, err = run("compare", *runs, "--check", "--json", *options, capsys=capsys)
    (wide,) = [test for test in json.loads(out)["tests"] if test["interval"][1] > 1.1]
    said = f"not proven: {wide['name']} may take {wide['interval'][1]:.3f} times as long as before (95 %)."
    assert (found, err) == (code, f"{said} More repetitions narrow that.\n")


def test_what_is_proven_passes_a_strict_check(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("compare", NORMAL, NORMAL, "--check", "--strict", capsys=capsys)[::2] == (0, "")


def test_more_normal_runs_come_from_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("one", "two"):
        shutil.copytree(NORMAL, tmp_path / name)
    _, out, _ = run("compare", NORMAL, ABNORMAL, "--base-set", tmp_path, "--json", capsys=capsys)
    assert len(json.loads(out)["calibration"]["halves"]) == 8


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ((NORMAL,), 2, "CANDIDATE"),
        ((NORMAL, "nowhere"), 3, "nowhere"),
        ((NORMAL, ABNORMAL, "--base-set", "nowhere"), 3, "expected a folder of normal runs"),
        ((NORMAL, ABNORMAL, "--hardware", "abacus"), 3, "abacus"),
        ((NORMAL, ABNORMAL, "--max-regression", "3"), 2, "--check"),
        ((NORMAL, ABNORMAL, "--strict"), 2, "--check"),
        ((NORMAL, ABNORMAL, "--check", "--max-regression", "nan"), 2, "not a number"),
        ((NORMAL, ABNORMAL, "--json", "--csv"), 2, "mutually exclusive"),
        ((NORMAL, ABNORMAL, "--pairing", "cross"), 2, "--published"),
        ((NORMAL, ABNORMAL, "--published", "--check"), 2, "--pairing"),
        ((SLOW.parent / "decode.json.gz", ABNORMAL, "--published"), 3, "decode.json.gz"),
        ((SLOW, ABNORMAL), 3, "slow"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    arguments: tuple[object, ...], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found, _, err = run("compare", *arguments, capsys=capsys)
    assert (found, said in err) == (code, True)


def test_an_empty_folder_of_normal_runs_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run("compare", NORMAL, ABNORMAL, "--base-set", tmp_path, capsys=capsys)
    assert (code, "found an empty folder" in err) == (3, True)


def test_the_published_table_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run("compare", NORMAL, ABNORMAL, "--published", capsys=capsys)
    assert (code, out.splitlines()[0].startswith("# Strict Performance Comparison")) == (0, True)
    _, out, _ = run("compare", NORMAL, ABNORMAL, "--published", "--csv", capsys=capsys)
    assert out.splitlines()[0].startswith("Function Name,Metric Name,Device,Suspicion Score")
    _, out, _ = run("compare", NORMAL, ABNORMAL, "--published", "--pairing", "cross", "--json", capsys=capsys)
    assert json.loads(out)


def test_csv_has_every_function_with_exact_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run("compare", NORMAL, ABNORMAL, "--csv", capsys=capsys)
    _, text, _ = run("compare", NORMAL, ABNORMAL, "--json", capsys=capsys)
    rows = list(csv.DictReader(io.StringIO(out)))
    lines = json.loads(text)["contributions"]
    assert [(row["Function"], int(row["Change (ns)"])) for row in rows] == [
        (line["name"], line["delta_ns"]) for line in lines
    ]


def test_losses_of_either_run_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = write_file([kernel("silu", str(10 * i), "3") for i in range(20)])
    bad = write_file([*(kernel("silu", str(10 * i), "3") for i in range(20)), event("kernel", "silu", "900", "-5")])
    paths = [tmp_path / name for name in ("good.json", "bad.json")]
    for path, data in zip(paths, (good, bad), strict=True):
        path.write_bytes(data)
    for pair in (paths, paths[::-1]):
        _, out, err = run("compare", *pair, capsys=capsys)
        assert "negative_duration" in out + err
    _, out, _ = run("compare", *paths, "--json", capsys=capsys)
    losses = json.loads(out)["losses"]
    assert [len(losses[side]["entries"]) for side in ("base", "candidate")] == [0, 1]


def test_stores_are_called_by_their_paths_whatever_they_were_made_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trace = tmp_path / "trace.json"
    trace.write_bytes(write_file([kernel(ts=str(100 * i), dur="10") for i in range(9)]))
    stores = [tmp_path / "before.ifm", tmp_path / "after.ifm"]
    for store in stores:
        assert run("import", trace, "-o", store, capsys=capsys)[0] == 0
    _, out, _ = run("compare", *stores, "--json", capsys=capsys)
    assert [json.loads(out)[side] for side in ("base", "candidate")] == [str(store) for store in stores]
    _, _, err = run("memory", stores[0], capsys=capsys)
    assert err.startswith(f"error: {stores[0]}: expected what an allocator")
    _, out, _ = run("compare", *stores, "--markdown", capsys=capsys)
    assert ("before.ifm" in out, str(tmp_path) in out) == (True, False)
