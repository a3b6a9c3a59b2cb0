"""The action, the workflow and the jobs that the guide shows are what the services accept, by their JSON Schemas."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.tools.ci.test_compare import ACTION, ROOT

ACTIONS, WORKFLOWS = ("vendor.github-actions",), ("vendor.github-workflows",)
GITLAB = ("vendor.gitlab-ci", "--data-transform", "gitlab-ci")

pytestmark = pytest.mark.skipif(find_spec("check_jsonschema") is None, reason="needs check-jsonschema")


def refusal(schema: tuple[str, ...], *files: Path) -> str:
    """Why these files are refused; empty where they are not."""
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", *schema, *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout if done.returncode else ""


def test_the_action_is_one() -> None:
    assert refusal(ACTIONS, ROOT / "action.yml") == ""


def test_workflows_are_workflows_and_so_is_the_one_of_the_guide(tmp_path: Path) -> None:
    (example,) = re.findall(r"```yaml\n(on: .*?)```", (ROOT / "docs/guide/in-ci.md").read_text("utf-8"), re.DOTALL)
    (tmp_path / "example.yml").write_text(example, "utf-8")
    assert refusal(WORKFLOWS, *(ROOT / ".github/workflows").glob("*.yml"), tmp_path / "example.yml") == ""


def test_the_job_for_gitlab_is_one() -> None:
    assert refusal(GITLAB, ROOT / "tools/ci/gitlab.yml") == ""


def test_a_step_without_a_shell_would_be_refused(tmp_path: Path) -> None:
    (tmp_path / "action.yml").write_text(ACTION.replace("      shell: bash\n", "", 1), "utf-8")
    assert "shell" in refusal(ACTIONS, tmp_path / "action.yml")
