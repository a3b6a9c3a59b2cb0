"""The action, run step by step as GitHub runs it, against an API on loopback; and what stands in it."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.tools.ci.runner import Ran, path_with, run_action
from tests.tools.ci.service import TOKEN, Service, github, serving
from tests.tools.ci.test_compare import ACTION, FOUND, RECORDED, ROOT, SCRIPT, STAND_IN, asked_of, program

PYTHON = """#!/bin/bash
if [ "$1 $2" = "-m pip" ]; then printf '%s\\n' "$@" >>pip; exit 0; fi
exec "{python}" "$@"
"""
REAL = """#!/bin/sh
printf '%s\\n' "${GITHUB_TOKEN:-none}" >>commands
exec "{python}" -m inferometer "$@"
"""
PULL = {"pull_request": {"number": 7, "head": {"repo": {"full_name": "o/r"}}}}

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the action's steps are for bash")


@pytest.fixture
def action() -> Any:
    yaml = pytest.importorskip("yaml", reason="needs PyYAML, which the extra `docs` brings")
    return yaml.safe_load(ACTION)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The job's: pip is only noted, and the command a stand-in that finds no difference."""
    program(tmp_path / "bin", STAND_IN)
    put(tmp_path / "bin" / "python3", PYTHON)
    return tmp_path


def put(place: Path, script: str) -> None:
    place.write_text(script.replace("{python}", sys.executable), "utf-8")
    place.chmod(0o755)


def job(action: Any, folder: Path, service: Service, event: Any = None, **inputs: str) -> Ran:
    (folder / "event.json").write_text(json.dumps(PULL if event is None else event), "utf-8")
    environment = github(service, str(folder / "event.json"), GITHUB_STEP_SUMMARY=str(folder / "summary"))
    del environment["GITHUB_TOKEN"]  # a job's steps have it only where they ask for it
    environment |= {"PATH": path_with(folder / "bin"), "PYTHONPATH": str(ROOT / "src"), "HOME": str(folder)}
    environment |= {"no_proxy": "127.0.0.1", "INFEROMETER_PROGRESS": "0", "A_TOKEN": TOKEN}
    environment |= {"FOUND": json.dumps(FOUND), "ENDS": "0"}
    asked = {name.replace("_", "-"): value for name, value in inputs.items()}
    return run_action(action, asked, environment, home=ROOT, folder=folder)


ANY = {"base": "a.ifm", "candidate": "b.ifm"}


def pair(name: str) -> dict[str, str]:
    return {"base": str(RECORDED / name / "normal.ifm"), "candidate": str(RECORDED / name / "fault.ifm")}


def test_a_slower_run_fails_the_job_and_a_later_one_updates_its_comment(action: Any, folder: Path) -> None:
    put(folder / "bin" / "inferometer", REAL)
    with serving(None) as service:
        slow = job(action, folder, service, **pair("disk"), max_regression="3")
        assert slow.failed
        assert slow.steps["Compare"].returncode == 1
        assert slow.steps["Comment"].stdout == "comment: made the comment\n"
        ratio = json.loads((folder / "inferometer-report" / "comparison.json").read_text("utf-8"))
        assert slow.outputs == {
            "outcome": "slower",
            "verdict": "cause named",
            "ratio": f"{ratio['comparable']['step_ratio']:.4f}",
            "report": "inferometer-report/report.md",
        }
        assert service.comments[0]["body"].startswith("<!-- inferometer: default -->\n**Check failed**")
        same = job(action, folder, service, **pair("none"))
        assert not same.failed
        assert same.steps["Comment"].stdout == "comment: updated the comment\n"
        assert same.outputs["outcome"] == "no difference"
    (comment,) = service.comments
    assert comment["body"].startswith("<!-- inferometer: default -->\n**Check passed**")
    summary = (folder / "summary").read_text("utf-8")
    assert summary.count("**Check ") == 2
    assert summary.endswith((folder / "inferometer-report" / "comment.md").read_text("utf-8"))
    assert TOKEN not in "".join(step.stdout + step.stderr for ran in (slow, same) for step in ran.steps.values())
    assert set((folder / "commands").read_text("utf-8").split()) == {"none"}, "no command sees the token"


@pytest.mark.parametrize(
    ("inputs", "installed", "used"),
    [
        ({}, str(ROOT), ["actions/setup-python"]),
        ({"inferometer": "./wheels/a b'; exit 9 #.whl", "python_version": ""}, "./wheels/a b'; exit 9 #.whl", []),
    ],
)
def test_what_is_asked_for_is_installed(
    inputs: dict[str, str], installed: str, used: list[str], action: Any, folder: Path
) -> None:
    with serving(None) as service:
        ran = job(action, folder, service, **ANY, comment="false", **inputs)
    assert not ran.failed
    assert (folder / "pip").read_text("utf-8").splitlines() == ["-m", "pip", "install", "--quiet", "--", installed]
    assert [each.partition("@")[0] for each in ran.used] == used
    assert "Comment" not in ran.steps
    assert service.asked == []


def test_what_inputs_say_is_never_run(action: Any, folder: Path) -> None:
    odd = "a'; touch broken #"
    with serving(None) as service:
        ran = job(action, folder, service, base=odd, candidate=odd, max_regression="$(touch broken)")
        assert ran.steps["Compare"].returncode == 2
        assert "Comment" not in ran.steps, "there is nothing to say"
        ran = job(action, folder, service, base=odd, candidate=odd, comment_name="decode")
    assert asked_of(folder)[0][-2:] == [odd, odd]
    assert service.comments[0]["body"].startswith("<!-- inferometer: decode -->\n**Check passed**")
    assert not (folder / "broken").exists()


def test_a_comment_that_is_refused_is_a_warning(action: Any, folder: Path) -> None:
    with serving(None) as service:
        service.fail["POST"] = 403
        ran = job(action, folder, service, **ANY)
    assert not ran.failed
    assert ran.steps["Comment"].stdout == "::warning::Inferometer made no comment; the check counts.\n"


@pytest.mark.parametrize(
    "event", [{"ref": "refs/heads/main"}, {"pull_request": {"number": 7, "head": {"repo": {"full_name": "other/r"}}}}]
)
def test_pushes_and_forks_get_a_summary_and_no_comment(event: Any, action: Any, folder: Path) -> None:
    with serving(None) as service:
        ran = job(action, folder, service, event, **ANY)
    assert not ran.failed
    assert ran.steps["Comment"].stdout.startswith("comment: skipped: ")
    assert (folder / "summary").read_text("utf-8").startswith("**Check passed**")
    assert service.asked == []


def test_no_input_of_the_action_is_part_of_a_script() -> None:
    scripts = re.findall(r"^ +run: (.*)$", ACTION, re.MULTILINE)
    assert len(scripts) == 3
    assert all("${{" not in script for script in scripts)
    assert "run: |" not in ACTION


def test_foreign_actions_are_pinned_to_a_commit() -> None:
    used = re.findall(r"uses: (.*)$", ACTION + (ROOT / "docs/guide/in-ci.md").read_text("utf-8"), re.MULTILINE)
    foreign = [each for each in used if not each.startswith("OWNER/inferometer@")]
    assert len(foreign) >= 3
    assert all(re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # v[\d.]+", each) for each in foreign)


def test_the_guide_names_every_input_and_output_of_the_action() -> None:
    page = (ROOT / "docs/guide/in-ci.md").read_text("utf-8")
    inputs, _, rest = ACTION.partition("\noutputs:")
    outputs, _, _ = rest.partition("\nruns:")
    names = re.findall(r"^  ([a-z-]+):$", inputs + outputs, re.MULTILINE)
    assert len(names) == 16
    assert [name for name in names if f"| `{name}` |" not in page] == []
    for variable in re.findall(r"\$\{(INFEROMETER_\w+):-", SCRIPT.read_text("utf-8")):
        assert f"`{variable}`" in page
