"""Content tells formats apart: every sample against every format, and against every format's reader.

`FORMS` has further forms of a format (other layouts, other files); a new one adds its own.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from tests.conformance.samples import SAMPLES
from tests.formats.llama_bench.test_reader import FORMS as LLAMA_BENCH
from tests.rocprof_files import REAL, SMALL, needs_real, small_runs, write_small
from tools.make_perfetto import Options, write_perfetto
from tools.rocprof_maker.csv_folder import write_csv
from tools.rocprof_maker.program import HOST

import inferometer
from inferometer.errors import InputError
from inferometer.formats.base import find_format, known_formats
from inferometer.formats.source import Source


@cache
def _rocprof_csv() -> Mapping[str, bytes]:
    with TemporaryDirectory() as folder:
        write_csv(small_runs(), SMALL, Path(folder) / "out")
        return {path.name: path.read_bytes() for path in (Path(folder) / "out" / HOST).iterdir()}


def _old_json() -> bytes:
    with TemporaryDirectory() as folder:
        return write_small(Path(folder) / "a.json", "6.3").read_bytes()


FORMS: dict[str, tuple[str, Callable[[], bytes]]] = {
    "rocprof of ROCm 6.3": ("rocprof", _old_json),
    "rocprof kernels as CSV": ("rocprof", lambda: _rocprof_csv()["900_kernel_trace.csv"]),
    "rocprof copies as CSV": ("rocprof", lambda: _rocprof_csv()["900_memory_copy_trace.csv"]),
    "rocprof calls as CSV": ("rocprof", lambda: _rocprof_csv()["900_hip_api_trace.csv"]),
    "rocprof counters as CSV": ("rocprof", lambda: _rocprof_csv()["900_counter_collection.csv"]),
    "perfetto of packed packets": ("perfetto", lambda: write_perfetto(Options(packed=True))[0]),
    **{f"llama-bench as {form}": ("llama-bench", text.encode) for form, text in LLAMA_BENCH.items()},
    **{name: (name, make) for name, make in SAMPLES.items()},
}


@pytest.mark.parametrize("form", FORMS)
def test_one_format_takes_it_and_the_other_readers_answer_or_refuse(form: str, tmp_path: Path) -> None:
    name, make = FORMS[form]
    path = tmp_path / "sample"
    path.write_bytes(make())
    assert [fmt.name for fmt in known_formats().values() if fmt.sniff(Source(path).head)] == [name]
    assert find_format(Source(path)).name == name
    for other in set(known_formats()) - {name}:
        with suppress(InputError):
            inferometer.open(path, {"launches", "totals"}, format=other)


@needs_real
def test_the_real_file_is_rocprofs() -> None:
    assert [fmt.name for fmt in known_formats().values() if fmt.sniff(Source(REAL).head)] == ["rocprof"]
