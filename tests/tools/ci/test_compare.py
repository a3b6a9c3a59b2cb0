"""The script of CI: what it asks of the command, what it writes, and how it ends; and the action that runs it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from tests.tools.ci.service import TOKEN, github, gitlab, serving

ROOT = Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "tools" / "ci" / "compare.sh"
ACTION = (ROOT / "action.yml").read_text("utf-8")
RECORDED = ROOT / "samples" / "recorded"
FOUND = {"comparable": {"step_ratio": 1.25}, "outcome": "slower", "verdict": "host time"}
CAREFUL = 'a b\'; echo $HOME "`id`" *'
STAND_IN = """#!/usr/bin/env python3
import json, os, pathlib, sys
with open("asked.jsonl", "a") as file:
    print(json.dumps([sys.argv[1:], os.environ.get("GITHUB_TOKEN")]), file=file)
if sys.argv[1] == "compare":
    print(os.environ["FOUND"])
    sys.exit(int(os.environ["ENDS"]))
if sys.argv[1] == "report":
    pathlib.Path(sys.argv[4]).write_text("# A report\\n")
    sys.exit(0)
sys.exit(int(os.environ["RECORD_ENDS"]))
"""

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the script is for bash on Linux and macOS")


def program(folder: Path, text: str) -> None:
    folder.mkdir()
    (folder / "inferometer").write_text(text, "utf-8")
    (folder / "inferometer").chmod(0o755)


def run(folder: Path, script: str = f"exec bash '{SCRIPT}'", **asked: str) -> subprocess.CompletedProcess[str]:
    """The script in `folder`, whose `bin` comes first on PATH, with this environment and no other word of a service."""
    path = os.pathsep.join([str(folder / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    other = {"HOME": str(folder), "PYTHONPATH": str(ROOT / "src"), "no_proxy": "127.0.0.1", "INFEROMETER_PROGRESS": "0"}
    stands_in = {"FOUND": json.dumps(FOUND), "ENDS": "0", "RECORD_ENDS": "0"}
    return subprocess.run(
        ["bash", "-c", script], cwd=folder, env={"PATH": path, **other, **stands_in, **asked}, capture_output=True,
        text=True, check=False, timeout=300,
    )  # fmt: skip


def asked_of(folder: Path) -> list[list[str]]:
    return [json.loads(line)[0] for line in (folder / "asked.jsonl").read_text("utf-8").splitlines()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """With a program that stands in for the command, and notes what it is asked."""
    program(tmp_path / "bin", STAND_IN)
    return tmp_path


@pytest.fixture
def real(tmp_path: Path) -> Path:
    program(tmp_path / "bin", f'#!/bin/sh\nexec "{sys.executable}" -m inferometer "$@"\n')
    return tmp_path


def test_two_runs_are_compared_and_reported(folder: Path) -> None:
    done = run(folder, INFEROMETER_BASE="a.ifm", INFEROMETER_CANDIDATE="-b.ifm", INFEROMETER_MAX_REGRESSION="2.5")
    assert (done.returncode, done.stderr) == (0, "")
    assert asked_of(folder) == [
        ["compare", "--json", "--check", "--max-regression", "2.5", "--", "a.ifm", "-b.ifm"],
        ["report", "--force", "-o", "inferometer-report/report.md", "--", "a.ifm", "-b.ifm"],
    ]
    out = folder / "inferometer-report"
    said = "**Check passed**: `inferometer compare --check --max-regression 2.5`\n\n# A report\n"
    assert (out / "comment.md").read_text("utf-8") == said
    assert json.loads((out / "comparison.json").read_text("utf-8")) == FOUND
    outputs = ["outcome=slower", "verdict=host time", "ratio=1.2500"]
    outputs += [f"{name}=inferometer-report/{name}.md" for name in ("report", "comment")]
    assert (out / "outputs").read_text("utf-8").splitlines() == outputs
    assert done.stdout.splitlines()[:6] == ["check passed", *outputs]


@pytest.mark.parametrize(("ends", "code", "reports"), [("1", 1, True), ("3", 3, False), ("70", 70, False)])
def test_it_ends_as_the_check_does_and_reports_before(ends: str, code: int, reports: bool, folder: Path) -> None:
    done = run(folder, INFEROMETER_BASE="a", INFEROMETER_CANDIDATE="b", ENDS=ends)
    assert done.returncode == code
    assert (folder / "inferometer-report" / "comment.md").exists() == reports
    assert not reports or "check failed" in done.stdout


def test_commands_are_recorded_as_they_are_and_see_no_token(folder: Path) -> None:
    done = run(
        folder, INFEROMETER_BASE_COMMAND="python a.py", INFEROMETER_CANDIDATE_COMMAND=CAREFUL, GITHUB_TOKEN=TOKEN,
        INFEROMETER_OUT="an out",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    record = ["record", "--force", "-o"]
    assert asked_of(folder)[:2] == [
        [*record, "an out/base.ifm", "--", "bash", "-c", "python a.py"],
        [*record, "an out/candidate.ifm", "--", "bash", "-c", CAREFUL],
    ]
    assert asked_of(folder)[2][-2:] == ["an out/base.ifm", "an out/candidate.ifm"]
    tokens = [json.loads(line)[1] for line in (folder / "asked.jsonl").read_text("utf-8").splitlines()]
    assert tokens[:2] == [None, None]
    assert TOKEN not in done.stdout + done.stderr


def test_a_command_that_fails_ends_it(folder: Path) -> None:
    done = run(folder, INFEROMETER_BASE="a", INFEROMETER_CANDIDATE_COMMAND="false", RECORD_ENDS="7")
    assert (done.returncode, done.stderr) == (5, "compare.sh: the command of the candidate ended with 7\n")
    assert len(asked_of(folder)) == 1


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({}, "expected INFEROMETER_BASE or INFEROMETER_BASE_COMMAND, found neither"),
        ({"INFEROMETER_BASE": "a"}, "expected INFEROMETER_CANDIDATE or INFEROMETER_CANDIDATE_COMMAND, found neither"),
        (
            {"INFEROMETER_BASE": "a", "INFEROMETER_BASE_COMMAND": "b"},
            "INFEROMETER_BASE and INFEROMETER_BASE_COMMAND are mutually exclusive",
        ),
        ({"INFEROMETER_MAX_REGRESSION": "-3"}, 'expected a percentage as in 2.5, found "-3"'),
        ({"INFEROMETER_MAX_REGRESSION": "3`id`"}, "expected a percentage"),
        ({"INFEROMETER_COMMENT": "yes"}, 'INFEROMETER_COMMENT: expected true or false, found "yes"'),
        ({"INFEROMETER_STRICT": "1"}, 'INFEROMETER_STRICT: expected true or false, found "1"'),
        ({"INFEROMETER_OUT": "a\nverdict=no difference"}, "expected names of one line"),
    ],
)
def test_a_wrong_request_is_refused_before_anything_runs(asked: dict[str, str], said: str, folder: Path) -> None:
    sides = {} if "INFEROMETER_BASE" in asked or not asked else {"INFEROMETER_BASE": "a", "INFEROMETER_CANDIDATE": "b"}
    done = run(folder, **sides, **asked)
    assert (done.returncode, said in done.stderr) == (2, True)
    assert not (folder / "asked.jsonl").exists()


def test_where_the_command_is_not_installed_it_says_so(tmp_path: Path) -> None:
    done = run(tmp_path, PATH="/usr/bin:/bin", INFEROMETER_BASE="a", INFEROMETER_CANDIDATE="b")
    assert (done.returncode, done.stderr) == (4, "compare.sh: inferometer is not on PATH\n")


def test_github_gets_outputs_a_summary_and_the_comment(folder: Path) -> None:
    (folder / "event.json").write_text(
        '{"pull_request": {"number": 7, "head": {"repo": {"full_name": "o/r"}}}}', "utf-8"
    )
    files = {"GITHUB_OUTPUT": str(folder / "output"), "GITHUB_STEP_SUMMARY": str(folder / "summary")}
    with serving(None) as service:
        environment = github(service, str(folder / "event.json"), **files)
        for _ in range(2):
            done = run(folder, INFEROMETER_BASE="a", INFEROMETER_CANDIDATE="b", ENDS="1", **environment)
            assert (done.returncode, done.stderr) == (1, "")
    (comment,) = service.comments
    text = (folder / "inferometer-report" / "comment.md").read_text("utf-8")
    assert comment["body"] == f"<!-- inferometer: default -->\n{text}"
    assert (folder / "summary").read_text("utf-8") == text * 2
    assert "ratio=1.2500\n" in (folder / "output").read_text("utf-8")


def test_a_comment_that_can_t_be_made_changes_nothing_of_the_check(folder: Path) -> None:
    with serving({"id": 1}) as service:
        service.fail["POST"] = 403
        done = run(folder, INFEROMETER_BASE="a", INFEROMETER_CANDIDATE="b", **gitlab(service))
    assert done.returncode == 0
    assert "HTTP 403" in done.stderr
    assert "no comment was made; the check counts" in done.stderr


def test_no_comment_is_made_where_none_is_asked_for(folder: Path) -> None:
    with serving({"id": 1}) as service:
        run(folder, INFEROMETER_BASE="a", INFEROMETER_CANDIDATE="b", INFEROMETER_COMMENT="false", **gitlab(service))
    assert service.asked == []


@pytest.mark.parametrize(
    ("name", "accepted", "code", "outcome"),
    [("disk", "3", 1, "slower"), ("none", "", 0, "no difference")],
)
def test_recorded_samples_pass_and_fail_as_they_should(
    name: str, accepted: str, code: int, outcome: str, real: Path
) -> None:
    sides = {"INFEROMETER_BASE": "normal.ifm", "INFEROMETER_CANDIDATE": "fault.ifm"}
    runs = {side: str(RECORDED / name / file) for side, file in sides.items()}
    done = run(real, **runs, INFEROMETER_MAX_REGRESSION=accepted)
    assert (done.returncode, done.stderr) == (code, "")
    assert f"outcome={outcome}\n" in done.stdout
    lines = (real / "inferometer-report" / "comment.md").read_text("utf-8").splitlines()
    assert lines[0].startswith(f"**Check {'failed' if code else 'passed'}**")
    assert lines[4].startswith(f"**{outcome.capitalize()}: ")


@pytest.mark.parametrize(("strict", "code", "said"), [("false", 0, "passed"), ("true", 1, "failed")])
def test_results_of_a_benchmark_are_compared_and_what_is_not_proven_is_said(
    strict: str, code: int, said: str, real: Path
) -> None:
    base, candidate = (str(ROOT / "samples" / "engines" / f"llama_bench_{number}.json") for number in (1, 2))
    done = run(real, INFEROMETER_BASE=base, INFEROMETER_CANDIDATE=candidate, INFEROMETER_STRICT=strict)
    assert done.returncode == code
    assert done.stderr.startswith("not proven: ")
    assert done.stdout.startswith(f"check {said}\noutcome=unclear\nverdict=unclear\nratio=\n")
    comment = (real / "inferometer-report" / "comment.md").read_text("utf-8")
    assert comment.startswith(f"**Check {said}**")
    assert "\nNot proven: a regression is neither shown nor excluded.\n" in comment
    assert "### Tests side by side" in comment


def test_a_program_is_recorded_on_both_sides(real: Path) -> None:
    """It isn't Python and has no steps: its counters are compared, nothing is claimed, and the check doesn't pass."""
    done = run(real, INFEROMETER_BASE_COMMAND="sleep 0.5", INFEROMETER_CANDIDATE_COMMAND="sleep 0.5; true")
    assert done.returncode == 1, done.stderr
    assert "outcome=can't tell\n" in done.stdout
    assert {path.name for path in (real / "inferometer-report").iterdir()} >= {"base.ifm", "candidate.ifm", "report.md"}


def test_the_action_and_gitlab_ask_the_script_what_it_knows() -> None:
    known = set(re.findall(r"\$\{(INFEROMETER_\w+):-", SCRIPT.read_text("utf-8")))
    assert set(re.findall(r"^ +(INFEROMETER_\w+): ", ACTION, re.MULTILINE)) == known | {"INFEROMETER_COMMENT_NAME"}
    example = (ROOT / "tools/ci/gitlab.yml").read_text("utf-8")
    assert set(re.findall(r"^ +(INFEROMETER_\w+): ", example, re.MULTILINE)) <= known
    assert "tools/ci/compare.sh" in example


def test_the_guide_shows_the_job_for_gitlab_as_it_is() -> None:
    page = (ROOT / "docs/guide/in-ci.md").read_text("utf-8")
    assert f"```yaml\n{(ROOT / 'tools/ci/gitlab.yml').read_text('utf-8')}```\n" in page
