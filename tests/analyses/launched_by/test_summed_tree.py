"""The call tree of sums by call path: each node's time is that of all kernels below it in the file."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.commands.test_command_line import run

SAMPLES = Path(__file__).resolve().parents[3] / "samples" / "h200"
OPTIONS = ("tree", "--json", "--min-share", "0", "--frames", "all")


def total_ns(node: dict[str, Any]) -> int:
    own: int = node["metrics"].get("time (ns)", 0)
    return own + sum(map(total_ns, node["children"]))


def every(node: dict[str, Any]) -> list[tuple[str, int]]:
    """Name and time of all nodes that have any time, without the root."""
    below = [each for child in node["children"] for each in every(child)]
    own = [(node["frame"]["name"], total_ns(node))] if total_ns(node) and node["frame"]["name"] != "ROOT" else []
    return [*own, *below]


def as_shown(name: str) -> str:
    """`file:line@function` as frames are written elsewhere."""
    return name.replace("@", " ", 1) if ".py:" in name else name


@pytest.mark.parametrize("name", ["proton_tree", "proton_python"])
def test_times_of_nodes_are_those_of_the_file(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = SAMPLES / f"{name}.hatchet"
    _, out, _ = run(*OPTIONS, path, capsys=capsys)
    found = json.loads(out)
    shown = sorted((node["name"], node["total_ns"]) for node in found["nodes"] if node["kind"] != "unknown")
    root = json.loads(path.read_text("utf-8"))[0]
    assert shown == sorted((as_shown(node), ns) for node, ns in every(root))
    assert found["total_ns"] == total_ns(root)
    lone = [child for child in root["children"] if not child["children"]]
    assert found["unattributed_ns"] == sum(map(total_ns, lone))


def test_frames_of_others_may_be_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    shown = {}
    for frames in ("none", "user", "all"):
        _, out, _ = run("tree", "--json", "--frames", frames, SAMPLES / "proton_python.hatchet", capsys=capsys)
        nodes = json.loads(out)["nodes"]
        shown[frames] = [node["name"] for node in nodes if node["kind"] == "frame"]
        assert sum(node["self_ns"] for node in nodes) == json.loads(out)["total_ns"]
    assert shown["none"] == []
    assert shown["user"]
    assert all("site-packages" not in frame for frame in shown["user"])
    assert len(shown["all"]) > len(shown["user"])


def test_who_launched_it_is_not_called_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run("launches", SAMPLES / "proton_tree.hatchet", capsys=capsys)
    assert "can't be known" not in out
    assert "inferometer tree" in out


@pytest.mark.parametrize("command", ["kernels", "summary"])
def test_times_of_kernels_that_ran_alone_are_called_so(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(command, SAMPLES / "ncu_raw.csv.gz", capsys=capsys)
    assert "ran alone" in out
    assert "no single launches" not in out
