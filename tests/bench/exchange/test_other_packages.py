"""An operator of another package, one file and its published JSON, is exchanged as ours are."""

from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

import pytest
from tests.bench.exchange.samples import result, run_of

from inferometer import registry
from inferometer.bench.exchange import left_out, read_workloads, write_exchange
from inferometer.operators import operators

OPERATOR = """
from inferometer.operators.axes import Axes
from inferometer.operators.operator import Operator
from inferometer.operators.work import Cost, Work


def inputs(*, rows: int, width: int, group: int, seed: int, device: str = "cpu", **_: object):
    raise NotImplementedError


def reference(x, *, group: int):
    raise NotImplementedError


OPERATOR = Operator(
    name="guest_norm",
    summary="A norm of groups.",
    dims={"R": "rows", "G": "groups of a row"},
    axes=Axes(
        op_type="guest",
        sizes={"R": "rows", "W": "width", "G": lambda width, group: width // group},
        varying=("R",),
        inputs={"x": "R W"},
        outputs={"out": "R G: fp32"},
    ),
    inputs=inputs,
    reference=reference,
    outputs=("out",),
    cost=lambda **_: Cost(0, 0, 0),
    work=lambda **_: Work(read_bytes=0, written_bytes=0),
    tiny=({"rows": 3, "width": 8, "group": 4},),
    settings=("group",),
    package="guest_package",
)
"""


@pytest.fixture
def guest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An installed distribution whose entry point is the operator; its JSON has the figures of one of ours."""
    package, info = tmp_path / "guest_package", tmp_path / "guest_package-1.0.dist-info"
    package.mkdir()
    info.mkdir()
    (package / "__init__.py").write_text(OPERATOR)
    figures = (files("inferometer.operators.catalogue") / "l2_norm.json").read_bytes()
    (package / "guest_norm.json").write_bytes(figures)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: guest-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[inferometer.operators]\nguest_norm = guest_package:OPERATOR\n")
    monkeypatch.syspath_prepend(tmp_path)
    registry._collect.cache_clear()
    operators.cache_clear()
    yield
    registry._collect.cache_clear()
    operators.cache_clear()


@pytest.mark.usefixtures("guest")
def test_its_shapes_come_back_as_they_were_written(tmp_path: Path) -> None:
    args = {"rows": 3, "width": 8, "group": 4}
    run, folder = run_of(result("guest_norm", args)), tmp_path / "data"
    assert left_out(run) == ()
    names = [path.relative_to(folder).as_posix() for path in write_exchange(run, folder, force=False)]
    assert "workloads/guest/guest_norm_W8_group4.jsonl" in names
    (asked,) = read_workloads(folder / "workloads/guest/guest_norm_W8_group4.jsonl")
    assert (asked.operator.name, asked.shapes) == ("guest_norm", (("0: a norm", args),))
    assert operators()["guest_norm"].catalogue().shapes
