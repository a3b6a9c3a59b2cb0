"""What every test may use: the shared captures, files from text, goldens, and how hard property tests search."""

import gc
import os
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from tests.effort import Passed, exhaustive_of, leave_out, long_of, turn_of
from tests.slow import COLLECTED

import inferometer
from inferometer import Trace

if TYPE_CHECKING:
    from tests.scheduling import ByFileOrCapture
    from tests.warm_python import WarmPython

ROOT = Path(__file__).resolve().parents[1]
SHARED_DATA = ROOT.parent / "shared" / "data"
SHARED_SEEDS = ROOT.parent / "shared" / "seeds"
GOLDEN = Path(__file__).parent / "golden"

os.environ["COLUMNS"] = "120"  # what a pipe gets; the processes of pytest-xdist have 80
os.environ.setdefault("INFEROMETER_PROGRESS", "0")  # what stderr has must not depend on how busy the machine is
os.environ.setdefault("TRITON_INTERPRET", "1")  # read as Triton is imported, whichever test does; 0 on a GPU
_CPU = Path("/proc/cpuinfo")
if _CPU.exists() and " avx512f " in _CPU.read_text():
    # PyTorch 2.13's attention by AVX-512 gives 0 for a query of NaN next to fewer than 16 keys; by AVX2 it gives NaN.
    os.environ.setdefault("ATEN_CPU_CAPABILITY", "avx2")

settings.register_profile("dev", deadline=None, print_blob=True)
settings.register_profile("ci", deadline=None, print_blob=True, derandomize=True, max_examples=30)
settings.register_profile("quick", deadline=None, print_blob=True, derandomize=True, max_examples=15)
settings.register_profile(
    "fuzz", deadline=None, print_blob=True, max_examples=2_000, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="Rewrite the golden files with today's output.")
    parser.addoption("--quick", action="store_true", help="Leave out what tests/effort.py lists, search less.")
    parser.addoption("--exhaustive", action="store_true", help="Run only what CI samples: tests/effort.py lists it.")
    parser.addoption("--note-passed", type=Path, metavar="FILE", help="Note what passed and asks for no extra.")
    parser.addoption("--leave-out", type=Path, metavar="FILE", help="Leave out what another run noted so.")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--quick"):
        settings.load_profile("quick")
    noted = config.getoption("--note-passed")
    if noted is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Passed(noted.absolute()))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    config.stash[COLLECTED] = frozenset(item.nodeid for item in items)
    exhaustive = exhaustive_of((item.nodeid for item in items), turn_of(os.environ))
    if config.getoption("--exhaustive"):
        deselect(config, items, lambda item: item.nodeid not in exhaustive)
    elif os.environ.get("CI"):
        deselect(config, items, lambda item: item.nodeid in exhaustive)
    if config.getoption("--quick"):
        long = long_of(item.nodeid for item in items)
        deselect(config, items, lambda item: item.nodeid in long)
    if (noted := config.getoption("--leave-out")) is not None:
        config.hook.pytest_deselected(items=leave_out(items, noted))
    if hasattr(config, "workerinput"):
        from tests.scheduling import sort_longest_first

        sort_longest_first(items)


def pytest_collection_finish() -> None:
    gc.freeze()  # what was collected stays: half a million objects, through which each full collection would go
    gc.set_threshold(10_000)  # captures are read as rows of plain Python: a sixth of that time was collecting nothing


def deselect(config: pytest.Config, items: list[pytest.Item], is_left_out: Callable[[pytest.Item], bool]) -> None:
    """Take from `items` what is left out, and tell pytest's summary."""
    left_out = [item for item in items if is_left_out(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not is_left_out(item)]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> "ByFileOrCapture":
    from tests.scheduling import ByFileOrCapture

    return ByFileOrCapture(config, log)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real captures next to the repository; a test that needs it skips without it."""
    if not SHARED_DATA.is_dir():
        pytest.skip("needs the captures in shared/data next to the repository")
    return SHARED_DATA


@pytest.fixture(scope="session")
def seeds() -> Path:
    """The folder of files that users sent, next to the repository; a test that needs it skips without it."""
    if not SHARED_SEEDS.is_dir():
        pytest.skip("needs the files in shared/seeds next to the repository")
    return SHARED_SEEDS


@pytest.fixture(scope="session")
def warm_python() -> "Iterator[WarmPython]":
    """A Python that has loaded torch, of which processes are forked."""
    if find_spec("torch") is None:
        pytest.skip("torch isn't installed")
    if sys.platform != "linux":
        pytest.skip("forks are watched as Linux has them")
    from tests.warm_python import WORKERS, WarmPython

    with WarmPython("torch", *WORKERS) as python:
        yield python


@pytest.fixture(scope="module")
def warm(warm_python: "WarmPython") -> Iterator[None]:
    """Processes of candidates are forked of one that has loaded torch, in all tests of the file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("inferometer.bench.isolation.Supervised", warm_python.start)
        yield


@pytest.fixture
def forked(warm_python: "WarmPython", monkeypatch: pytest.MonkeyPatch) -> None:
    """The same in one test, also for processes that build kernels."""
    for module in ("isolation", "builds.processes"):
        monkeypatch.setattr(f"inferometer.bench.{module}.Supervised", warm_python.start)


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., Trace]:
    """Opens a file with this text: `read(text, tables=None, name="trace.json", **options)`."""

    def read(text: str | bytes, tables: object = None, *, name: str = "trace.json", **options: object) -> Trace:
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return inferometer.open(path, tables, **options)  # type: ignore[arg-type]

    return read


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Compares a text with the file of that name in `golden/`: `golden("kernels.md", text)`."""

    def check(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.write_text(text, "utf-8")
        assert text == path.read_text("utf-8"), f"{name} differs; if that is right: pytest --update-golden"

    return check
