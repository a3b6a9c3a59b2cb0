"""Runs a composite action as GitHub's runner does: as much of it as ours needs, and an error for all else.

Expressions are those of `action.yml`: a place (`inputs.base`, `steps.compare.outputs.ratio`, `github.token`), and
conditions of places and texts joined by `&&`. A step that uses another action is noted, and not run.
"""

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")
_PLACE = re.compile(r"[\w-]+(\.[\w-]+)+")
_COMPARED = re.compile(r"([\w.-]+) (==|!=) '([^']*)'")


@dataclass
class Ran:
    """What became of an action: its `outputs`, the `steps` that ran, by name, and the other actions that it `used`."""

    outputs: dict[str, str] = field(default_factory=dict)
    steps: dict[str, subprocess.CompletedProcess[str]] = field(default_factory=dict)
    used: list[str] = field(default_factory=list)
    failed: bool = False


def run_action(
    action: Mapping[str, Any], inputs: Mapping[str, str], environment: Mapping[str, str], *, home: Path, folder: Path
) -> Ran:
    """All steps in order, in `folder`; the action's files lie in `home`. `environment`: of the job."""
    assert action["runs"]["using"] == "composite"
    unknown = set(inputs) - set(action["inputs"])
    assert not unknown, f"a runner warns of inputs that an action doesn't have: {unknown}"
    places = {"github.token": environment["A_TOKEN"]}
    for name, about in action["inputs"].items():
        places[f"inputs.{name}"] = inputs.get(name, _filled(str(about["default"]), places))
    ran = Ran()
    for number, step in enumerate(action["runs"]["steps"]):
        if not _holds(step.get("if"), places, failed=ran.failed):
            continue
        if "uses" in step:
            ran.used.append(step["uses"])
            continue
        output, script = folder / f"output-{number}", folder / f"step-{number}.sh"
        output.touch()
        script.write_text(step["run"] + "\n", "utf-8")
        assert step["shell"] == "bash", "a step of a composite action names its shell"
        asked = {name: _filled(str(value), places) for name, value in step.get("env", {}).items()}
        runner = {"GITHUB_ACTION_PATH": str(home), "GITHUB_OUTPUT": str(output)}
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)], cwd=folder, capture_output=True,
            text=True, check=False, timeout=300,
            env={name: value for name, value in environment.items() if name != "A_TOKEN"} | runner | asked,
        )  # fmt: skip
        ran.steps[step["name"]] = done
        ran.failed |= done.returncode != 0
        if "id" in step:
            written = (line.partition("=") for line in output.read_text("utf-8").splitlines())
            places |= {f"steps.{step['id']}.outputs.{name}": value for name, _, value in written}
        output.unlink()
    ran.outputs = {name: _filled(about["value"], places) for name, about in action["outputs"].items()}
    return ran


def _filled(text: str, places: Mapping[str, str]) -> str:
    """`text` with what its expressions stand for; a place that has nothing is empty, as a runner has it."""

    def found(match: re.Match[str]) -> str:
        assert _PLACE.fullmatch(match[1]), f"an expression that this runner doesn't know: {match[1]}"
        return places.get(match[1], "")

    return _EXPRESSION.sub(found, text)


def _holds(condition: str | None, places: Mapping[str, str], *, failed: bool) -> bool:
    """Whether a step runs: after a failure only one that asks for that."""
    if condition is None:
        return not failed
    clauses = _EXPRESSION.sub(r"\1", condition).split(" && ")
    asks = [clause for clause in clauses if clause != "!cancelled()"]
    return (len(asks) < len(clauses) or not failed) and all(_is_so(clause, places) for clause in asks)


def _is_so(clause: str, places: Mapping[str, str]) -> bool:
    match = _COMPARED.fullmatch(clause)
    assert match, f"a condition that this runner doesn't know: {clause}"
    return (places.get(match[1], "") == match[3]) == (match[2] == "==")


def path_with(*folders: Path) -> str:
    """PATH, with these first."""
    return os.pathsep.join([*map(str, folders), os.environ["PATH"]])
