"""The notebooks run as they are, their charts show what the analyses give, and they are stored without outputs."""

import base64
import json
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import inferometer

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "notebooks"
NAMES = sorted(path.name for path in FOLDER.glob("*.ipynb"))
PLOTLY = "application/vnd.plotly.v1+json"

needs_jupyter = pytest.mark.skipif(
    any(find_spec(name) is None for name in ("nbclient", "ipykernel", "plotly")), reason="needs the extra `docs`"
)


def test_there_are_two_and_each_is_linked() -> None:
    assert len(NAMES) == 2
    for page in (ROOT / "docs/README.md", ROOT / "docs/guide/tutorial.md"):
        assert all(name in page.read_text("utf-8") for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_small_and_has_no_outputs(name: str) -> None:
    assert (FOLDER / name).stat().st_size < 20_000
    cells = json.loads((FOLDER / name).read_text("utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert {(len(cell["outputs"]), cell["execution_count"]) for cell in code} == {(0, None)}


@cache
def outputs_of(name: str) -> list[dict[str, Any]]:
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(FOLDER / name, as_version=4)
    folder = {"metadata": {"path": str(FOLDER)}}
    NotebookClient(notebook, timeout=300, startup_timeout=300, resources=folder).execute()
    return [output for cell in notebook.cells for output in cell.get("outputs", [])]


def figures(name: str) -> Iterator[dict[str, Any]]:
    yield from (output["data"][PLOTLY] for output in outputs_of(name) if PLOTLY in output.get("data", {}))


def charts(name: str) -> dict[str, list[dict[str, Any]]]:
    """The data of each chart, by its title."""
    return {figure["layout"]["title"]["text"]: figure["data"] for figure in figures(name)}


@needs_jupyter
def test_the_first_look_draws_all_idle_time_and_all_device_time() -> None:
    found = charts("first-look.ipynb")
    with inferometer.open(ROOT / "samples/decode.json.gz") as trace:
        idle_ns = inferometer.find_timeline(trace).devices["idle_ns"].item()
        work_ns = trace.launches.collect()["dur_ns"].sum()
    assert list(found) == ["Idle time by cause", "gpu:0", "Device time by family of kernels", "Gap before each launch"]
    (causes,), slices, (families,), (gaps,) = found.values()
    assert sum(numbers(causes["x"])) * 1e6 == pytest.approx(idle_ns)
    assert sum(numbers(slices[2]["y"])) * 1e3 == pytest.approx(idle_ns)
    assert sum(numbers(families["values"])) == work_ns
    assert sum(numbers(gaps["y"])) * 1e3 == pytest.approx(idle_ns)


@needs_jupyter
def test_the_comparison_draws_every_step_and_the_whole_change_and_names_no_cause_of_nothing() -> None:
    name = "compare-two-runs.ipynb"
    printed = "".join(output["text"] for output in outputs_of(name) if output["output_type"] == "stream")
    assert printed.startswith("cause named\n")
    assert printed.endswith("\nno difference\n")
    steps, (parts,), counters = charts(name).values()
    folder = ROOT / "samples/recorded/cpu_quota"
    for run, drawn in zip(("normal", "fault"), steps, strict=True):
        with inferometer.open(folder / f"{run}.ifm") as trace:
            assert len(numbers(drawn["y"])) == trace.steps.collect().height
    changes = numbers(parts["y"])
    with inferometer.open(folder / "normal.ifm") as base, inferometer.open(folder / "fault.ifm") as candidate:
        found = inferometer.compare(base, candidate).as_json()
    assert sum(changes[:-1]) * 1e6 == pytest.approx(found["candidate_step_ns"] - found["unexplained_ns"])
    assert max(numbers(counters[0]["y"])) == 0
    assert max(numbers(counters[1]["y"])) > 0.5


def numbers(column: Any) -> list[float]:
    """A column of a chart, which plotly stores as a list, or packed."""
    if isinstance(column, dict):
        return np.frombuffer(base64.b64decode(column["bdata"]), column["dtype"]).tolist()
    return list(column)
