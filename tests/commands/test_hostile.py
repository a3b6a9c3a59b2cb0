"""Hostile names, files and places from end to end: the command line prints nothing that acts, and reads nothing else.

What single rooms promise is tested next to them: names in reports (`tests/reports`), stores (`tests/trace`), new files
(`tests/reports/test_new_files.py`), folders of ranks (`tests/formats/ranks`), compression (`tests/formats`).
"""

import gzip
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from tests.conformance.samples import NAMES, SAMPLES
from tests.kineto_files import call, event, kernel, write_file

import inferometer
from inferometer.commands.main import main
from inferometer.errors import InputError

Run = Callable[..., tuple[int, str, str]]
DRIVES = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
ODD_NAMES = (
    *(
        "\x1b[2J\x1b[31m.json",
        "\x1b]8;;http:\x07link\x1b]8;;\x07.json",
        "\u202enosj.exe",
        "two\nlines.json",
        "tab\t.json",
    ),
    *("<script>alert(1)<.json", "=1+1.json", "-x.json", "--json", "a b.json", "$(id).json", "%s%n.json", "[bold].json"),
    *("*.json", "[a-z].json", "a'b\"c.json", "{{7*7}}.json", "\u2066x\u2069.json", "e\u0301.json", "\U0001f600.json"),
)
EVENTS = [call(), kernel("gemm", "100", "10"), event("cpu_op", "aten::mm", "80", "50")]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """The exit code and what was printed; nothing of it drives a terminal."""

    def run(*words: str | Path) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as end:
            main([str(word) for word in words])
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        assert not DRIVES.search(err), err
        return int(str(end.value.code)), out, err

    return run


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_file_may_have_any_name(name: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_bytes(write_file(EVENTS))
    for words in (["summary"], ["kernels"], ["kernels", "--markdown"], ["timeline"], ["calls"]):
        code, out, _ = run(*words, "--", name)
        assert code == 0
        assert not DRIVES.search(out)
    assert json.loads(run("summary", "--json", "--", name)[1])["source"] == name
    code, out, _ = run("import", "-o", f"{name}.ifm", "--", name)
    assert (code, bool(DRIVES.search(out))) == (0, False)
    code, out, _ = run("export", "--to", "perfetto", "-o", f"{name}.pftrace", "--", f"{name}.ifm")
    assert (code, bool(DRIVES.search(out))) == (0, False)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([name, f"{name}.ifm", f"{name}.pftrace"])


@pytest.mark.parametrize("name", ODD_NAMES)
def test_an_error_names_any_file_harmlessly(name: str, run: Run, tmp_path: Path) -> None:
    path = tmp_path / name
    assert run("summary", path)[0] == 3
    for content in (b"", name.encode(), b'{"' + name.encode() + b'": 1}', b"SQLite format 3\0" + name.encode() * 30):
        path.write_bytes(content)
        assert run("summary", path)[:2] == (3, "")
    assert run("summary", path, "--format", name)[0] == 3
    assert run("hardware", "--hardware-file", path)[0] == 3
    assert run("import", tmp_path, "-o", tmp_path / "no" / name)[0] == 3


def test_names_of_tables_in_a_database_drive_no_terminal(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "export.sqlite"
    path.write_bytes(SAMPLES["nsys"]().replace(b"CREATE TABLE", b"CREATE \x1b[2J\n\r"))
    assert run("kernels", path)[:2] == (3, "")


def test_a_panic_of_a_library_is_one_clear_message(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import polars as pl

    path = tmp_path / "a.json"
    path.write_bytes(write_file(EVENTS))

    def panic(*_: object, **__: object) -> None:
        raise pl.exceptions.PanicException("index \x1b out of bounds")

    monkeypatch.setattr("inferometer.formats.opening.open_trace", panic)
    code, out, err = run("summary", path)
    assert (code, out) == (70, "")
    assert err.startswith("error: a bug in inferometer: PanicException: index \\x1b out of bounds\n")


def test_a_damaged_store_whose_checksums_were_made_to_fit_is_bad_input(run: Run, tmp_path: Path) -> None:
    import zlib

    path = tmp_path / "a.json"
    path.write_bytes(write_file([kernel(f"k{i}", str(100 + 3 * i)) for i in range(500)]))
    store = tmp_path / "a.ifm"
    inferometer.import_trace(path, store)
    file = store / "launches-00000.parquet"
    data = bytearray(file.read_bytes())
    begin = data.index(b"\x28\xb5\x2f\xfd")  # what Zstandard begins with: behind a page's header, which stays whole
    data[begin + 4 : begin + 12] = bytes(8)
    file.write_bytes(data)
    manifest = json.loads((store / "facts.json").read_text())
    manifest["tables"]["launches"]["crc32"] = [zlib.crc32(data)]
    (store / "facts.json").write_text(json.dumps(manifest))
    code, out, err = run("kernels", store)
    assert (code, out) == (3, "")
    assert "a file of the store can't be read" in err


# Files that are no plain files


def test_a_socket_and_a_device_are_refused(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket is short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        assert run("summary", "socket")[:2] == (3, "")
    for device in ("/dev/null", "/dev/zero", "/dev/urandom"):
        assert run("summary", device)[:2] == (3, "")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_refused(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(write_file(EVENTS))
    path.chmod(0)
    assert "Permission denied" in run("summary", path)[2]


@pytest.mark.parametrize("name", SAMPLES)
def test_a_file_that_shrinks_while_it_is_read_is_an_answer_or_an_input_error(name: str, tmp_path: Path) -> None:
    path = tmp_path / NAMES.get(name, name)
    whole = SAMPLES[name]()
    for keep in (0, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole)
        told: list[object] = []

        def shrink(*progress: object, keep: int = keep, told: list[object] = told) -> None:
            told.append(progress)
            os.truncate(path, keep)

        with suppress(InputError):
            inferometer.open(path, progress=shrink).count_rows()
        assert told


# Bombs


@pytest.mark.parametrize("bomb", ["nested", "many members", "zeros behind a trace", "empty members"])
def test_a_bomb_takes_little(bomb: str, run: Run, tmp_path: Path) -> None:
    zeros = gzip.compress(bytes(1 << 20), 9)
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(
        {
            "nested": gzip.compress(gzip.compress(zeros * 100)),
            "many members": zeros * 700,
            "zeros behind a trace": gzip.compress(write_file(EVENTS)) + zeros * 700,
            "empty members": gzip.compress(b"") * 50_000,
        }[bomb]
    )
    code, _, _ = run("kernels", path)
    assert code == (0 if bomb == "zeros behind a trace" else 3)


SPARSE = [
    "nothing",
    *(name for name in SAMPLES if name not in ("kernel-table", "webgpu-log")),
]  # those take half a minute


@pytest.mark.skipif(sys.platform != "linux", reason="the measure is one of Linux")
@pytest.mark.parametrize("name", SPARSE)
def test_a_file_of_gigabytes_of_nothing_takes_little_memory(name: str, tmp_path: Path) -> None:
    path = tmp_path / NAMES.get(name, "file")
    with path.open("wb") as file:
        file.write(SAMPLES[name]() if name in SAMPLES else b"")
        file.truncate(5 << 30)
    code = (
        "import re, sys\n"
        "from pathlib import Path\n"
        "from inferometer import open, Limits\n"
        "from inferometer.errors import InputError\n"
        "try:\n"
        "    open(sys.argv[1], limits=Limits(held_bytes=64 << 20))\n"
        "except InputError:\n"
        "    pass\n"
        "print(int(re.search(r'VmHWM:\\s+(\\d+) kB', Path('/proc/self/status').read_text())[1]) >> 10)"
    )  # the kernel's ru_maxrss would count the process that started this one
    done = subprocess.run([sys.executable, "-c", code, path], capture_output=True, check=False, timeout=100)
    assert done.returncode == 0, done.stderr.decode()
    assert int(done.stdout) < 600


# Places


def test_an_output_may_be_the_input_where_that_is_asked_for(run: Run, tmp_path: Path) -> None:
    path, store = tmp_path / "a.json", tmp_path / "a.ifm"
    path.write_bytes(write_file(EVENTS))
    assert run("export", path, "--to", "chrome", "-o", path)[0] == 3
    assert path.read_bytes() == write_file(EVENTS)
    assert run("export", path, "--to", "chrome", "-o", path, "--force")[0] == 0
    assert inferometer.open(path).count_rows()["launches"] == 1
    assert run("import", path, "-o", store)[0] == 0
    assert run("import", store, "-o", store)[0] == 3
    assert run("import", store, "-o", store, "--force")[0] == 0
    assert inferometer.open(store).count_rows()["launches"] == 1


def test_no_output_replaces_what_is_something_else(run: Run, tmp_path: Path) -> None:
    path, store, link = tmp_path / "a.json", tmp_path / "a.ifm", tmp_path / "link"
    path.write_bytes(write_file(EVENTS))
    run("import", path, "-o", store)
    link.symlink_to(path)
    for words in (
        ["export", path, "--to", "parquet", "-o", store],
        ["export", path, "--to", "chrome", "-o", store],
        ["export", path, "--to", "chrome", "-o", link],
        ["import", path, "-o", path],
        ["import", path, "-o", tmp_path],
        ["import", path, "-o", link],
    ):
        assert run(*words, "--force")[0] == 3
    assert path.read_bytes() == write_file(EVENTS)
    assert inferometer.open(store).count_rows()["launches"] == 1


def test_a_name_in_a_trace_makes_no_file(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path / "out")
    (tmp_path / "in" / "rank0.json").write_bytes(
        write_file([kernel("../../evil", device="../../evil", stream="/evil")])
    )
    (tmp_path / "in" / "rank1.json").write_bytes(write_file([kernel("/evil")]))
    assert run("import", tmp_path / "in", "-o", "a.ifm")[0] == 0
    for form in ("chrome", "perfetto", "parquet", "csv"):
        assert run("export", "a.ifm", "--to", form, "-o", form)[0] == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "a.ifm",
        "chrome",
        "csv",
        "parquet",
        "perfetto",
    ]
