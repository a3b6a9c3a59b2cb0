"""`inferometer ops`, and `--execution-trace` wherever it is taken."""

import json
from pathlib import Path

import polars as pl
import pytest
from tests.formats.execution_trace.test_join import without_shapes
from tests.formats.execution_trace.test_reader import ET

import inferometer
from inferometer.commands.main import main

PROFILE = ET.with_name("profile.json.gz")


def run(*words: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stopped:
        main([*words])
    printed = capsys.readouterr()
    return int(stopped.value.code or 0), printed.out, printed.err


@pytest.fixture
def bare(tmp_path: Path) -> str:
    without_shapes(tmp_path)
    return str(tmp_path / "bare.json")


def test_a_joined_store_holds_the_shapes_for_every_command(
    bare: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = str(tmp_path / "both.ifm")
    assert run("import", bare, "--execution-trace", str(ET), "-o", store, capsys=capsys)[0] == 0
    stored = inferometer.open(store)
    assert stored.ops.select("input_dims").collect().null_count().item() == 0
    assert "are tied to nodes of" in stored.facts.notes[-1]
    said = [json.loads(run("roofline", path, "--json", *more, capsys=capsys)[1])
            for path, more in ((store, ()), (bare, ("--execution-trace", str(ET))), (bare, ()))]  # fmt: skip
    modelled = [sum(row["flops"] or 0 for row in each["rows"]) for each in said]
    assert modelled[0] == modelled[1] > 0 == modelled[2]


def test_totals_on_screen_are_those_of_the_rows(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(run("ops", str(ET), "--hardware", "H200 SXM", "--top", "9999", "--json", capsys=capsys)[1])
    assert found["flops"] == sum(row["total_flops"] or 0 for row in found["rows"])
    assert found["bytes"] == sum(row["total_bytes"] or 0 for row in found["rows"])
    assert found["bound_ns"] == pytest.approx(sum(row["total_bound_ns"] or 0 for row in found["rows"]))
    shown = " ".join(run("ops", str(ET), "--hardware", "H200 SXM", capsys=capsys)[1].split())
    assert f"{found['flops'] / 1e9:,.3f} GFLOP and move {found['bytes'] / 1e6:.3f} MB" in shown
    assert f"{found['bound_ns']:.0f} ns at least on H200 SXM" in shown
    assert f"Of all {found['calls']:,} calls, {found['counted']:,} count" in shown
    rest = f"{found['without_data']:,} move no data (views, allocations), and {found['unknown']:,} are unknown."
    assert f"{found['inside']:,} are inside those, {rest}" in shown


@pytest.mark.parametrize("command", ["ops", "roofline", "import"])
def test_a_file_that_is_no_execution_trace_is_refused(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = ["-o", str(tmp_path / "new.ifm")] if command == "import" else []
    code, _, err = run(command, str(PROFILE), "--execution-trace", str(PROFILE), *more, capsys=capsys)
    assert (code, "expected ops of an execution trace, found none" in err) == (3, True)
    assert not (tmp_path / "new.ifm").exists()


def test_standard_input_is_one_file_only(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run("ops", "-", "--execution-trace", "-", capsys=capsys)
    assert (code, "FILE or --execution-trace, not both" in err) == (2, True)


def test_a_trace_without_times_has_no_kernels_and_says_where_to_look(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run("kernels", str(ET), capsys=capsys)
    said = " ".join(out.split())
    assert code == 0
    assert "No kernels in the file." in said
    assert "has ops with their arguments, and no times: `inferometer ops` says what they must do" in said


def test_names_that_are_nasty_are_shown_harmless(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "et.json"
    nodes = [{"id": 3, "name": "aten::\x1b[31m|<b>\u202e", "ctrl_deps": 2, "attrs": []}]
    path.write_text(json.dumps({"schema": "1", "start_ts": 1, "nodes": nodes}))
    for form in ((), ("--markdown",), ("--csv",)):
        code, out, _ = run("ops", str(path), *form, capsys=capsys)
        assert code == 0
        assert "\x1b" not in out
    assert inferometer.open(path).op_nodes.select(pl.len()).collect().item() == 1
