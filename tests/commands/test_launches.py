"""`inferometer launches` and `inferometer tree` as users meet them."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from tests.commands.test_command_line import run
from tools.kineto_maker import Options, write_trace
from tools.kineto_maker.options import Mode


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """An eager run, replays, and the capture of their graph."""
    folder = tmp_path_factory.mktemp("traces")
    made = {}
    modes: dict[str, Mode] = {"eager": "eager", "graph": "graph", "capture": "capture"}
    for name, mode in modes.items():
        made[name] = folder / f"{name}.json"
        with made[name].open("wb") as out:
            write_trace(Options(steps=2, layers=2, prefill_every=2, mode=mode), out)
    return made


def data_of(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    code, out, err = run(*map(str, arguments), "--json", capsys=capsys)
    assert (code, err) == (0, "")
    return json.loads(out)


@pytest.mark.parametrize("by", ["op", "module", "frame", "user-frame", "span", "region"])
def test_json_has_all_rows_and_conserves_time(
    by: str, files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    data = data_of(capsys, "launches", files["eager"], "--by", by)
    assert data["attributed_ns"] + data["unattributed_ns"] == data["total_ns"] > 0
    assert sum(data["by_how"].values()) == data["total_ns"]
    assert sum(row["total_ns"] for row in data["rows"]) == data["attributed_ns"]
    for row in data["rows"]:
        assert set(row) == {"key", "count", "total_ns", "share", "mean_ns", "kernels"}
    assert (data["attributed_ns"] > 0) is (by != "region")


def test_modules_are_pooled_over_layers_when_asked(files: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    apart = {row["key"] for row in data_of(capsys, "launches", files["eager"], "--by", "module")["rows"]}
    pooled = {
        row["key"]
        for row in data_of(capsys, "launches", files["eager"], "--by", "module", "--layers", "pooled")["rows"]
    }
    assert {"model.layers.0.self_attn.qkv_proj", "model.layers.1.mlp.gate_up_proj"} <= apart
    assert {"model.layers.*.self_attn.qkv_proj", "model.layers.*.mlp.gate_up_proj"} <= pooled
    assert len(pooled) < len(apart)


def test_a_capture_gives_replays_their_ops(files: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    without = data_of(capsys, "launches", files["graph"])
    with_capture = data_of(capsys, "launches", files["graph"], "--capture", files["capture"])
    assert without["by_how"]["graph_replay"] == with_capture["by_how"]["graph_alignment"] > 0
    assert any("--capture FILE" in remark for remark in without["remarks"])
    assert any("capture_32_DECODE" in remark for remark in with_capture["remarks"])


def test_my_code_is_what_users_say_it_is(files: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    data = data_of(capsys, "launches", files["eager"], "--by", "user-frame", "--my", "sglang/srt/models")
    assert data["rows"]
    assert all("sglang/srt/models/" in row["key"] for row in data["rows"])
    rest = data_of(capsys, "launches", files["eager"], "--by", "user-frame", "--framework", "sglang/srt/layers")
    assert not any("sglang/srt/layers" in row["key"] for row in rest["rows"])


def test_the_table_says_what_and_how(files: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run("launches", str(files["graph"]), "--top", "2", capsys=capsys)
    assert code == 0
    for words in ("Ops, outermost first", "How they were attributed", "graph_replay", "of the device time is attrib"):
        assert words in out


def test_each_launch_has_a_row(files: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    data = data_of(capsys, "launches", files["eager"], "--each")
    assert data["launches"] == len(data["rows"])
    assert {"how", "op_chain", "module", "module_recorded", "frame", "user_frame", "span"} <= set(data["rows"][0])
    (first,) = [data["chains"][str(row["chain"])] for row in data["rows"][:1]]
    assert [name for kind, name in first if kind == "op"] == data["rows"][0]["op_chain"].split(" > ")
    assert data["rows"][0]["frame"] == [name for kind, name in first if kind == "frame"][-1]
    starts = [row["start_ns"] for row in data["rows"]]
    assert starts == sorted(starts)
    _, out, _ = run("launches", str(files["eager"]), "--each", "--csv", "--top", "3", capsys=capsys)
    assert len(list(csv.DictReader(io.StringIO(out)))) == 3


def test_the_tree_conserves_time_in_every_form(files: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    data = data_of(capsys, "tree", files["eager"])
    assert sum(node["total_ns"] for node in data["nodes"] if node["parent"] is None) == data["total_ns"]
    _, folded, _ = run("tree", str(files["eager"]), "--folded", capsys=capsys)
    assert sum(int(line.rpartition(" ")[2]) for line in folded.splitlines()) == data["total_ns"]
    _, text, _ = run("tree", str(files["eager"]), "--speedscope", capsys=capsys)
    profile = json.loads(text)["profiles"][0]
    assert sum(profile["weights"]) == data["total_ns"]


def test_the_tree_is_indented_and_hides_what_is_small(
    files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    _, out, _ = run("tree", str(files["eager"]), capsys=capsys)
    assert "layers.*" in out
    assert "nodes shown: --min-share 0 shows all" in out
    _, every, _ = run("tree", str(files["eager"]), "--min-share", "0", "--layers", "apart", capsys=capsys)
    assert "layers.1" in every
    assert "nodes shown" not in every


@pytest.mark.parametrize("options", [["--folded", "--speedscope"], ["--folded", "--json"], ["--speedscope", "--csv"]])
def test_one_form_at_a_time(options: list[str], files: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run("tree", str(files["eager"]), *options, capsys=capsys)
    assert code == 2
    assert "mutually exclusive" in err


def test_a_tree_with_a_base_has_the_difference_in_every_form(
    files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    data = data_of(capsys, "tree", files["eager"], "--base", files["eager"])
    assert {node["delta_ns"] for node in data["nodes"]} == {0}
    code, out, _ = run("tree", files["eager"], "--base", files["eager"], "--min-share", "0", capsys=capsys)
    assert (code, "Call trees, " in out) == (0, True)
    _, folded, _ = run("tree", files["eager"], "--base", files["eager"], "--folded", capsys=capsys)
    pairs = [line.rsplit(" ", 2)[1:] for line in folded.splitlines()]
    assert sum(int(base) for base, _ in pairs) == data["base_ns"]
    assert sum(int(candidate) for _, candidate in pairs) == data["candidate_ns"]
    code, _, err = run("tree", files["eager"], "--base", files["eager"], "--speedscope", capsys=capsys)
    assert (code, "--speedscope has one value per stack" in err) == (2, True)


@pytest.mark.parametrize(
    ("base", "message"),
    [("absent.json", "No such file"), ("folder", "folder"), ("empty.json", "expected launches, found none")],
)
def test_a_base_that_is_none_is_refused(
    base: str, message: str, files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "empty.json").write_text('{"traceEvents": []}')
    code, out, err = run("tree", files["eager"], "--base", tmp_path / base, capsys=capsys)
    assert (code, out) == (3, "")
    assert message in err
    assert "Traceback" not in err


@pytest.mark.parametrize("command", ["launches", "tree"])
@pytest.mark.parametrize("text", [b"", b"{", b"PK\x03\x04", "日本語".encode()])
def test_a_capture_that_cannot_be_read_is_named(
    command: str, text: bytes, files: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad = tmp_path / "bad.json"
    bad.write_bytes(text)
    code, out, err = run(command, str(files["graph"]), "--capture", str(bad), capsys=capsys)
    assert (code, out) == (3, "")
    assert "bad.json" in err


def test_a_selection_takes_part_of_the_launches(files: dict[str, Path], capsys: pytest.CaptureFixture[str]) -> None:
    every = data_of(capsys, "launches", files["eager"])
    some = data_of(capsys, "launches", files["eager"], "--between", "0ms", "5ms")
    assert 0 < some["launches"] < every["launches"]
    code, _, err = run("launches", str(files["eager"]), "--stream", "99", capsys=capsys)
    assert code == 3
    assert "99" in err


def test_without_ops_ranges_are_shown_unasked(capsys: pytest.CaptureFixture[str]) -> None:
    sample = Path(__file__).parents[2] / "samples" / "nsys.sqlite.gz"
    data = data_of(capsys, "launches", sample)
    assert (data["by"], data["unattributed_ns"]) == ("span", 0)
    pooled = data_of(capsys, "launches", sample, "--layers", "pooled")
    assert {row["key"] for row in pooled["rows"]} == {"layer_N", "execute_context_N(N)_generation_N(N) step N"}


def test_sums_by_kernel_tell_of_no_launches(capsys: pytest.CaptureFixture[str]) -> None:
    sample = Path(__file__).parents[2] / "samples" / "webgpu.log.gz"
    for command in ("launches", "tree"):
        assert "Only sums by kernel are in the file" in data_of(capsys, command, sample)["remarks"][0]


def test_a_capture_for_a_trace_without_replays_is_said_to_be_useless(
    files: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    data = data_of(capsys, "launches", files["eager"], "--capture", files["capture"])
    assert any("nothing to explain" in remark for remark in data["remarks"])


def test_standard_input_is_read_once(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run("launches", "-", "--capture", "-", capsys=capsys)
    assert code == 2
    assert "not both" in err
