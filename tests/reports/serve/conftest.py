"""What tests of the app's server share: some runs, and a server over them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.kineto_files import kernel, write_file
from tests.reports.serve.served import EVIL, Served, serving


@pytest.fixture(scope="module")
def keep(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of uploads."""
    return tmp_path_factory.mktemp("keep")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    (folder / "deep").mkdir()
    for name, ns in (("base.json", "10"), ("slow.json", "30")):
        events = [kernel("gemm", str(100 + 50 * i), ns, correlation=i) for i in range(40)]
        (folder / name).write_bytes(write_file(events))
    (folder / "deep" / EVIL).write_bytes(write_file([kernel("<b>gemm</b>", "1", "2", correlation=1)]))
    (folder / "broken.json").write_text('{"schemaVersion": 1, "traceEvents": [{"ph":')
    (folder / "notes.json").write_text('{"just": "notes"}')
    (folder / "out.json").symlink_to("/etc/passwd")
    return folder


@pytest.fixture(scope="module")
def server(folder: Path, keep: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(folder, "--keep", keep, cache=tmp_path_factory.mktemp("cache")) as server:
        yield server
