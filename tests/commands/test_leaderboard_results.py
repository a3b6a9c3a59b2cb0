"""`inferometer leaderboard RESULTS`, as users meet it."""

import csv
import io
import json
import os
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace
from tests.bench.ranking.ranked_runs import result, run_of
from tests.commands.test_command_line import run, run_apart

from inferometer.bench.exchange.traced_shapes import TracedShape, encode_shapes
from inferometer.bench.results import Run, ShapeResult, encode_run


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write(name: str, run: Run) -> str:
    Path(name).write_bytes(encode_run(run))
    return name


@pytest.fixture
def before() -> str:
    mine = (result("mine", i, 8_000, speedup=1.25) for i in range(3))
    return write("before.json", run_of(*mine, *(result("torch", i, 10_000) for i in range(3))))


@pytest.fixture
def after() -> str:
    mine = [result("mine", i, 9_000, speedup=1.1) for i in range(3)]
    torch = [result("torch", i, 10_000) for i in range(3)]
    return write("after.json", run_of(*mine, *torch, date="2026-11-21T10:00:00Z"))


def test_the_ranking_is_printed_and_no_file_is_made(before: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run("leaderboard", before, capsys=capsys)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    heading = lines.index("Ranking on NVIDIA H200")
    assert [line.split()[:2] for line in lines[heading + 3 : heading + 5]] == [["1", "mine"], ["2", "torch"]]
    assert [path.name for path in Path().iterdir()] == ["before.json"]


def test_two_files_are_told_apart_and_checked(before: str, after: str, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run("leaderboard", before, after, "--check", capsys=capsys)
    assert code == 1
    assert "Of 6 shapes in both runs 3 slower, 3 not compared." in out
    assert "mine, all 3 shapes together: slower" in out
    assert run("leaderboard", before, after, "--check", "--smallest-effect", "20", capsys=capsys)[0] == 0
    assert run("leaderboard", after, before, "--check", capsys=capsys)[0] == 0
    assert run("leaderboard", before, before, "--check", capsys=capsys)[0] == 0


def test_a_shape_that_became_wrong_fails_the_check(before: str, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = write("wrong.json", run_of(result("mine", 0, 8_000), result("mine", 1, wrong="row 9")))
    code, out, _ = run("leaderboard", before, wrong, "--check", capsys=capsys)
    assert code == 1
    assert "1 became wrong" in out


def test_runs_without_anything_in_common_fail_the_check(before: str, capsys: pytest.CaptureFixture[str]) -> None:
    other = write("other.json", run_of(result("x", 0), result("y", 0)))
    assert run("leaderboard", before, other, "--check", capsys=capsys)[0] == 1


def test_json_is_complete_and_csv_has_every_shape(before: str, capsys: pytest.CaptureFixture[str]) -> None:
    data = json.loads(run("leaderboard", before, "--json", capsys=capsys)[1])
    assert [each["contender"] for each in data["devices"][0]["contenders"]] == ["mine", "torch"]
    assert data["devices"][0]["contenders"][0]["score"]["strict"]["median"]["value"] == pytest.approx(0.5)
    assert "page" not in data
    rows = list(csv.DictReader(io.StringIO(run("leaderboard", before, "--csv", capsys=capsys)[1])))
    assert len(rows) == 6
    assert {row["Candidate"] for row in rows} == {"mine", "torch"}
    assert rows[0]["S (%)"] == "50.0"
    assert run("leaderboard", before, "--markdown", capsys=capsys)[1].count("### Ranking on NVIDIA H200") == 1


def test_a_page_is_made_with_the_command_that_makes_it(
    before: str, after: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run("leaderboard", tmp_path / before, after, "-o", "page.html", "--base", "torch", capsys=capsys)
    assert (code, err) == (0, "")
    assert out.startswith("page.html: ")
    html = Path("page.html").read_text("utf-8")
    assert "Made with: inferometer leaderboard -o page.html before.json after.json --base torch --to html" in html
    assert str(tmp_path) not in html
    data = json.loads(run("leaderboard", before, "-o", "page.md", "--json", capsys=capsys)[1])
    assert data["page"]["to"] == "markdown"
    assert Path("page.md").read_text("utf-8").startswith("# Kernels in order")
    assert run("leaderboard", before, "-o", "page.md", capsys=capsys)[0] == 3
    assert run("leaderboard", before, "-o", "page.md", "--force", "--title", "Mine", capsys=capsys)[0] == 0


def test_standard_output_is_the_page(before: str) -> None:
    done = run_apart("leaderboard", before, "-o", "-", "--to", "markdown", "--title", "Mine")
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"# Mine\n")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--check"], 2, "--check needs two RESULTS, base and candidate; found 0"),
        (
            ["before.json", "--smallest-effect", "5"],
            2,
            "--smallest-effect needs two RESULTS, base and candidate; found 1",
        ),
        (["before.json", "before.json", "--smallest-effect", "0"], 2, "0.0 is not in the range 0<x<=100"),
        (["before.json", "before.json", "--smallest-effect", "nan"], 2, "'nan' is not a number"),
        (["before.json", "--check"], 2, "--check needs two RESULTS, base and candidate; found 1"),
        (["before.json", "--hardware", "H100 SXM"], 2, "--hardware can't be used with RESULTS"),
        (["--csv"], 2, "--csv needs RESULTS"),
        (["--base", "torch"], 2, "--base needs RESULTS"),
        (["before.json"] * 201, 2, "at most 200 RESULTS"),
        (["before.json", "--base", "tourch"], 3, 'unknown base "tourch"'),
        (["nowhere.json"], 3, "nowhere.json: No such file"),
        (["."], 3, "Is a directory"),
    ],
)
def test_what_can_t_be_done_is_refused(
    words: list[str], code: int, message: str, before: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found, out, err = run("leaderboard", *words, capsys=capsys)
    assert (found, out) == (code, "")
    assert message in err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "expected results of inferometer bench"),
        (b"{", "expected results of inferometer bench"),
        (b"[1, 2]", "expected results of inferometer bench"),
        (b'{"traceEvents": []}', "expected results of inferometer bench"),
        (b"\x1f\x8b\x08\x00\xff\xff", "expected results of inferometer bench"),
        (b"[" * 100_000, "expected results of inferometer bench"),
        (b'{"date": 1e999}', "expected results of inferometer bench"),
    ],
    ids=["empty", "cut", "list", "trace", "gzip", "deep", "huge number"],
)
def test_other_files_are_refused_by_name(content: bytes, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("bad.json").write_bytes(content)
    code, out, err = run("leaderboard", "bad.json", capsys=capsys)
    assert (code, out) == (3, "")
    assert f"bad.json: {message}" in err
    assert "inferometer bench" in err


def test_a_file_cut_anywhere_is_refused(before: str, capsys: pytest.CaptureFixture[str]) -> None:
    whole = Path(before).read_bytes().rstrip()
    for end in range(1, len(whole), 997):
        Path("cut.json").write_bytes(whole[:end])
        assert run("leaderboard", "cut.json", capsys=capsys)[0] == 3


def test_a_file_larger_than_results_are_isn_t_read(
    before: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from inferometer.commands import leaderboard

    monkeypatch.setattr(leaderboard, "_MOST_BYTES", 100)
    code, _, err = run("leaderboard", before, capsys=capsys)
    assert code == 3
    assert "before.json: expected at most 100 B more of results" in err


def test_names_in_any_script_are_kept_and_none_drives_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    names = ["核\u200f芯", "\x1b[31mred", "a|b<script>alert(1)</script>", "=1+1", "e\ud7ff" * 300]
    write("names.json", run_of(*(result(name, 0, 8_000 + i, operator=name) for i, name in enumerate(names))))
    code, out, _ = run("leaderboard", "names.json", capsys=capsys)
    assert code == 0
    assert r"核\u200f芯" in run("leaderboard", "names.json", "--csv", capsys=capsys)[1]
    assert "\x1b" not in out
    assert run("leaderboard", "names.json", "-o", "page.html", capsys=capsys)[0] == 0
    assert "<script>alert" not in Path("page.html").read_text("utf-8")
    text = run("leaderboard", "names.json", "--markdown", capsys=capsys)[1]
    assert "a\\|b\\<script\\>" in text
    assert "'=1+1" in run("leaderboard", "names.json", "--csv", capsys=capsys)[1]


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are text there")
def test_a_file_name_that_isn_t_text_is_shown(before: str, capsys: pytest.CaptureFixture[str]) -> None:
    odd = os.fsdecode(b"\xff.json")
    Path(before).rename(odd)
    data = json.loads(run("leaderboard", odd, "-o", "page.html", "--json", capsys=capsys)[1])
    assert data["runs"][0]["name"] == "?.json"


def weighed(name: str, *shapes: tuple[str, dict[str, int], float | None]) -> str:
    Path(name).write_bytes(encode_shapes([TracedShape(operator, args, operator, w) for operator, args, w in shapes]))
    return name


def of_shape(who: str, ns: float, operator: str, tokens: int) -> ShapeResult:
    return replace(result(who, ns=ns, operator=operator), index=None, args={"token_count": tokens, "hidden_size": 8})


def test_weights_of_a_fleet_decide_which_candidate_is_first(capsys: pytest.CaptureFixture[str]) -> None:
    """One is quick with one operator, the other with the other."""
    times = {"a": (20_000, 10_000), "b": (10_000, 40_000)}
    names = ("rms_norm", "fused_add_rms_norm")
    results = [of_shape(who, ns, name, 4) for who, each in times.items() for ns, name in zip(each, names, strict=True)]
    file = write("results.json", run_of(*results))
    firsts = {}
    for weight in (0.9, 0.1):
        shapes = weighed(
            "s.jsonl", (names[0], results[0].args, weight / 2), (names[1], results[0].args, (1 - weight) / 2)
        )
        code, out, err = run("leaderboard", file, "--shapes", shapes, "--json", capsys=capsys)
        assert (code, err) == (0, "")
        data = json.loads(out)
        assert data["weighed_by"] == "s.jsonl"
        candidates = data["devices"][0]["contenders"]
        scores = {each["contender"]: each["score"]["strict"]["median"]["value"] for each in candidates}
        for who, (first, second) in times.items():
            assert scores[who] == pytest.approx(weight * 4_000 / first + (1 - weight) * 4_000 / second)
        firsts[weight] = candidates[0]["contender"]
    assert firsts == {0.9: "b", 0.1: "a"}
    code, out, _ = run("leaderboard", file, "--shapes", "s.jsonl", capsys=capsys)
    assert "that of s.jsonl: 2 shapes of 2 operators, no others count" in out


def test_shapes_that_a_fleet_has_not_do_not_count(capsys: pytest.CaptureFixture[str]) -> None:
    results = [of_shape("mine", 8_000, "rms_norm", tokens) for tokens in (4, 5)]
    file = write("results.json", run_of(*results))
    shapes = weighed("s.jsonl", ("rms_norm", results[0].args, 0.5))
    data = json.loads(run("leaderboard", file, "--shapes", shapes, "--json", capsys=capsys)[1])
    (mine,) = data["devices"][0]["contenders"]
    assert [each["args"] for each in mine["shapes"]] == [results[0].args]


def test_shapes_that_say_nothing_are_refused(before: str, capsys: pytest.CaptureFixture[str]) -> None:
    unweighed = weighed("u.jsonl", ("rms_norm", {"token_count": 1, "hidden_size": 8}, None))
    code, _, err = run("leaderboard", before, "--shapes", unweighed, capsys=capsys)
    assert (code, "u.jsonl: shape 1, rms_norm: expected a weight, found none" in err) == (3, True), err
    others = weighed("o.jsonl", ("rms_norm", {"token_count": 77, "hidden_size": 8}, 0.5))
    code, _, err = run("leaderboard", before, "--shapes", others, capsys=capsys)
    assert (code, "before.json: expected results of shapes of o.jsonl, found none" in err) == (3, True), err
    assert run("leaderboard", "--shapes", others, capsys=capsys)[0] == 2
    assert run("leaderboard", before, "--shapes", "none.jsonl", capsys=capsys)[0] == 3
