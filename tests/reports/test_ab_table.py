"""An A/B in the layout of the published table of a Llama port: its columns, rulers and padding, the right values."""

from pathlib import Path

import polars as pl
import pytest
from tests.analyses.ab.runs import Call, measured, op

from inferometer.analyses.ab.comparison import compare_paths
from inferometer.analyses.ab.measurement import PathMeasurement
from inferometer.errors import InputError, UnknownName
from inferometer.formats.opening import open_trace
from inferometer.reports.ab_table import render_ab_table


def llama() -> PathMeasurement:
    """The Triton arm has no `softmax`, which the published table had lost its place over."""

    def run(softmax: bool, norm_ns: int) -> Call:
        layers = [Call(f"layers.{i}", 300_000, [op("norm", norm_ns), op("norm", norm_ns)]) for i in range(2)]
        sample = [op("softmax", 33_104)] if softmax else []
        return Call("completion", 1_498_764_184, [Call("generate", 0, [Call("forward", 400_000, layers), *sample])])

    arms = {"torch": [run(True, 58_953)] * 3, "triton": [run(False, 58_954)] * 3, "compile": [run(True, 58_955)] * 3}
    return measured(arms)


def test_the_layout_is_that_of_the_published_table() -> None:
    assert (
        render_ab_table(compare_paths(llama()))
        == """\
|------------|-------------------------------------------|-------------|-------------|-------------------------|
| kernel     | kernel_path                               | torch       | triton      | torch-triton            |
|------------|-------------------------------------------|-------------|-------------|-------------------------|
| completion | completion                                |   1.5000331 |         1.5 | 3.310000000000812e-05   |
|------------|-------------------------------------------|-------------|-------------|-------------------------|
| generate   | completion.generate                       | 0.001268916 | 0.001235816 | 3.309999999999988e-05   |
|------------|-------------------------------------------|-------------|-------------|-------------------------|
| forward    | completion.generate.forward               | 0.001235812 | 0.001235816 | -4.000000000062981e-09  |
|------------|-------------------------------------------|-------------|-------------|-------------------------|
| layers.*   | completion.generate.forward.layers.*      | 0.000417906 | 0.000417908 | -1.9999999999772804e-09 |
|------------|-------------------------------------------|-------------|-------------|-------------------------|
| norm       | completion.generate.forward.layers.*.norm | 5.8953e-05  | 5.8954e-05  | -9.999999999954164e-10  |
|------------|-------------------------------------------|-------------|-------------|-------------------------|
| softmax    | completion.generate.softmax               | 3.3104e-05  |             |                         |
|------------|-------------------------------------------|-------------|-------------|-------------------------|
"""
    )


def test_every_value_is_of_its_own_path_and_arm() -> None:
    made = llama()
    found = compare_paths(made)
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in render_ab_table(found).splitlines()[3::2]]
    assert [line[1] for line in lines] == [row.path for row in found.rows]
    for name, path, base, candidate, difference in lines:
        assert name == path.rpartition(".")[2] or path.endswith(name)
        for arm, cell in (("torch", base), ("triton", candidate)):
            calls = made.calls.filter(
                pl.col("arm") == arm, pl.col("path").str.replace(r"layers\.\d", "layers.*") == path
            )
            assert (cell == "") is calls.is_empty()
            if cell:
                assert float(cell) == pytest.approx(calls["dur_ns"].mean() / 1e9, rel=1e-12)  # type: ignore[operator]
        if base and candidate:
            assert float(difference) == float(base) - float(candidate)
        else:
            assert difference == ""
    assert ["softmax", "completion.generate.softmax", "3.3104e-05", "", ""] in lines


def test_rows_are_as_wide_as_their_rulers_and_any_two_arms_may_stand_side_by_side() -> None:
    found = compare_paths(llama(), pool_layers=False)
    text = render_ab_table(found, "compile")
    assert len({len(line) for line in text.splitlines()}) == 1
    assert text.splitlines()[1].split("|")[3:6][0].strip() == "torch"
    assert "torch-compile" in text
    assert "layers.1.norm" in text
    with pytest.raises(UnknownName, match="comp1le"):
        render_ab_table(found, "comp1le")
    with pytest.raises(InputError, match="expected two arms for a table of two, found torch"):
        render_ab_table(compare_paths(measured({"torch": [op("a", 1)]})))


def test_a_name_breaks_no_table() -> None:
    arms = {"a|b": [Call("root", 5, [Call("x|y\n", 1)])] * 2, "c": [Call("root", 5)] * 2}
    lines = render_ab_table(compare_paths(measured(arms))).splitlines()
    assert {line.count("|") for line in lines} == {6}
    assert lines[1].split("|")[3].strip() == "a/b"


def test_our_own_reader_reads_it_back(tmp_path: Path) -> None:
    found = compare_paths(llama())
    place = tmp_path / "table.txt"
    place.write_text(render_ab_table(found))
    with open_trace(place) as trace:
        paths = trace.call_paths.collect()
        totals = trace.path_totals.collect().join(paths, "path_id")
    assert totals.filter(pl.col("backend") == "torch").height == len(found.rows)
    assert totals.filter(pl.col("backend") == "triton").height == len(found.rows) - 1
    assert not trace.losses.total("unreadable_row")
