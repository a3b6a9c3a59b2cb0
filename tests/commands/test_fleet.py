import csv
import io
import json
from pathlib import Path

import pytest
from tests.fleet.digests import write_shapes
from tests.fleet.mined import mined, write_trace

from inferometer.commands.main import main


def run(*words: object, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stopped:
        main([str(word) for word in words])
    out, err = capsys.readouterr()
    return int(stopped.value.code or 0), out, err


LABELS = r"(?P<model>\w)/t\.json"


def write_traces(folder: Path) -> Path:
    """Two traces of two models, and a file that is none."""
    for n, model in enumerate("ab"):
        write_trace(folder / model / "t.json", ("gemm", 10.0 + n), ("softmax", 2.0))
    (folder / "notes.txt").write_text("no trace")
    return folder


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Mined once, for tests that don't change it."""
    folder = tmp_path_factory.mktemp("fleet")
    mined(folder / "f.ifm", write_traces(folder / "t"), labels=LABELS)
    return folder / "f.ifm"


def test_mine_and_ask(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fleet = tmp_path / "f.ifm"
    words = ("mine", write_traces(tmp_path / "t"), "-o", fleet, "--workers", 1, "--labels", LABELS)
    code, out, err = run(*words, capsys=capsys)
    assert (code, out) == (0, f"{fleet}: 2 traces, 3 paths, 2 new digests\n")
    assert "notes.txt: expected one of the known formats" in err
    code, out, _ = run("fleet", fleet, "--by", "model", capsys=capsys)
    assert code == 0
    assert "Traces by model" in out
    code, out, _ = run("fleet", fleet, "kernels", "--by", "model", "--json", capsys=capsys)
    rows = json.loads(out)["rows"]
    assert [(row["group"], row["kernel"], row["total_ns"]) for row in rows] == [
        ("b", "gemm", 11_000), ("b", "softmax", 2_000), ("a", "gemm", 10_000), ("a", "softmax", 2_000),
    ]  # fmt: skip
    code, out, _ = run("fleet", fleet, "kernels", "--csv", capsys=capsys)
    assert [row["total_ns"] for row in csv.DictReader(io.StringIO(out))] == ["21000", "4000"]
    code, out, _ = run("fleet", fleet, "kernels", "--only", "model=a", "--json", capsys=capsys)
    assert json.loads(out)["total_ns"] == 12_000
    for question in ("families", "operators", "shapes", "classes", "outliers", "changes", "importance", "savings"):
        for form in ("--json", "--markdown"):
            assert run("fleet", fleet, question, form, capsys=capsys)[0] == 0


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("kernels", "--faster", 10), 2, "--faster is for savings, not for kernels."),
        (("outliers", "--by", "gpu"), 2, "--by is for overview"),
        (("--only", "speed=1"), 2, "expected NAME=VALUE"),
        (("--only", "model=c"), 3, 'unknown model "c"'),
        (("nonsense",), 2, "nonsense"),
    ],
)
def test_what_means_nothing_is_refused(
    words: tuple[object, ...], code: int, said: str, fleet: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found, _, err = run("fleet", fleet, *words, capsys=capsys)
    assert (found, said in err) == (code, True), err


def test_what_isnt_there_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "f.ifm"
    for words, said in (
        (("fleet", place), "expected a fleet, found no folder"),
        (("mine", tmp_path / "none", "-o", place), "no such file or folder"),
        (("mine", f"{tmp_path}/*.none", "-o", place), "matches no file"),
        (("mine", f"@{tmp_path}/list", "-o", place), "list"),
    ):
        code, _, err = run(*words, capsys=capsys)
        assert (code, said in err) == (3, True), err
    code, _, err = run("mine", tmp_path, "-o", place, "--memory", "1MiB", capsys=capsys)
    assert (code, "expected at least 256MiB" in err) == (2, True), err
    assert not place.exists()


def test_a_page_has_all_questions(fleet: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    code, out, _ = run("fleet", fleet, "-o", page, "--only", "model=a", capsys=capsys)
    assert (code, out.startswith(f"{page}: ")) == (0, True)
    assert "<h1>f.ifm, model=a</h1>" in page.read_text("utf-8")
    assert run("fleet", fleet, "-o", page, capsys=capsys)[0] == 3
    code, out, _ = run("fleet", fleet, "-o", page, "--force", "--json", capsys=capsys)
    data = json.loads(out)
    assert (code, data["traces"], data["page"]["bytes"]) == (0, 2, page.stat().st_size)
    code, out, _ = run("fleet", fleet, "-o", tmp_path / "page.md", capsys=capsys)
    assert (code, (tmp_path / "page.md").read_text("utf-8").startswith("# f.ifm")) == (0, True)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-o", "x.pdf"), "expected a name in .html"),
        (("-o", "x.jsonl"), "shapes are written with importance"),
        (("importance", "-o", "x.html"), "a page has all questions"),
        (("kernels", "-o", "x.html"), "--output is for overview, importance, not for kernels"),
        (("-o", "x.html", "--by", "gpu"), "--by can't be used with --output"),
        (("-o", "x.html", "--csv"), "--csv can't be used with --output"),
        (("--representatives", 3), "--representatives is for importance"),
    ],
)
def test_an_output_that_means_nothing_is_refused(
    words: tuple[object, ...], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run("fleet", tmp_path, *words, capsys=capsys)
    assert (code, said in err) == (2, True), err


def test_operators_bounds_the_shapes_of_a_fleet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write_shapes(tmp_path / "shapes.jsonl")
    code, out, _ = run("operators", "--shapes", file, "--hardware", "H100 SXM", "--json", capsys=capsys)
    rows = json.loads(out)["rows"]
    assert code == 0
    assert [(row["operator"], row["weight"], row["binding"]) for row in rows][1] == ("rms_norm", 0.6, "memory")
    assert rows[1]["bytes"] == 2 * (2 * 100_000 * 8192 + 8192)  # bf16: read and written once, and the weights
    assert run("operators", "rms_norm", "--shapes", file, capsys=capsys)[0] == 2
    file.write_text("{}\n")
    code, _, err = run("operators", "--shapes", file, capsys=capsys)
    assert (code, "shapes.jsonl:1" in err) == (3, True)


def test_a_fleet_is_no_trace(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run("kernels", fleet, capsys=capsys)
    assert (code, f"inferometer fleet {fleet}" in err) == (3, True), err


def test_check_fails_where_something_was_set_aside(fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run("mine", fleet.parent / "t", "-o", fleet, "--check", "--json", capsys=capsys)
    data = json.loads(out)
    assert (code, data["made"], data["traces"], [Path(each["path"]).name for each in data["aside"]]) == (
        1, 0, 2, ["notes.txt"],
    )  # fmt: skip
