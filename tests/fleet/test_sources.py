import os
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import copytree
from threading import Thread

import pytest
from tests.fleet.mined import mined, write_trace

from inferometer.errors import InputError, Unavailable
from inferometer.fleet.contents import hash_of
from inferometer.fleet.sources import find_places, labels_of


def names(*words: object) -> list[str]:
    return [place.name for place in find_places(map(str, words))]


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of files, some hidden, a store, two runs of LatencyPrism, a fleet, and a link to a folder."""
    for name in ("a.json", "sub/b.json", ".hidden/c.json", "sub/.d.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")
    (tmp_path / "s.ifm").mkdir()
    (tmp_path / "s.ifm" / "facts.json").write_text("{}")
    copytree(Path(__file__).resolve().parents[2] / "samples" / "slow", tmp_path / "runs")
    (tmp_path / "f.ifm").mkdir()
    (tmp_path / "f.ifm" / "fleet.json").write_text("{}")
    (tmp_path / "link").symlink_to(tmp_path / "sub")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_folder_is_gone_through_to_its_end(tree: Path) -> None:
    assert names(".") == ["a.json", "runs/abnormal", "runs/normal", "s.ifm", "sub/b.json"]


def test_globs_lists_and_files_name_each_once(tree: Path) -> None:
    (tree / "list.txt").write_text("# mine\n\na.json\nsub/*.json\n")
    assert names("@list.txt", "sub", "*.json") == ["a.json", "sub/b.json"]
    (tree / "list.txt").write_text("@list.txt\n")
    with pytest.raises(InputError, match=r"list.txt:1: expected a path, found another list"):
        names("@list.txt")


def test_a_name_may_be_any_bytes(tmp_path: Path) -> None:
    trace = write_trace(tmp_path / "t" / os.fsdecode(b"\xff[1].json"), ("gemm", 1.0))
    assert names(trace) == [str(trace)]
    assert mined(tmp_path / "f.ifm", tmp_path / "t").traces == 1


def test_a_pipe_in_a_folder_is_set_aside(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    os.mkfifo(tmp_path / "t" / "pipe")
    found = mined(tmp_path / "f.ifm", tmp_path / "t")
    assert [reason for _, reason in found.aside] == ["expected a file, found a pipe"]


def test_a_folder_is_another_content_when_a_file_in_it_is(tree: Path) -> None:
    before = hash_of(tree / "runs" / "normal")
    next((tree / "runs" / "normal").iterdir()).write_text("y\n")
    assert hash_of(tree / "runs" / "normal") != before


def test_urls_are_read_through_fsspec(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec", reason="fsspec isn't installed")
    memory = fsspec.filesystem("memory")
    data = write_trace(tmp_path / "t.json", ("gemm", 1.0)).read_bytes()
    for name in ("/fleet/x/t1.json", "/fleet/x/t2.json"):
        memory.pipe(name, data)
    memory.pipe("/fleet/no.txt", b"no trace")
    assert names("memory://fleet") == [
        "memory:///fleet/no.txt",
        "memory:///fleet/x/t1.json",
        "memory:///fleet/x/t2.json",
    ]
    found = mined(tmp_path / "f.ifm", "memory://fleet", f"file://{tmp_path}/t.json")
    assert (found.traces, found.paths, [path for path, _ in found.aside]) == (1, 4, ["memory:///fleet/no.txt"])
    assert mined(tmp_path / "f.ifm", "memory://fleet/x/*.json").made == 0
    with pytest.raises(InputError, match="no such file"):
        names("memory://nowhere/t.json")
    with pytest.raises(InputError, match="nonsense"):
        names("nonsense://x")


def test_without_fsspec_or_its_reader_a_url_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(Unavailable, match="fsspec is not installed") as raised:
        names("s3://bucket/traces")
    assert raised.value.hint == "pip install 'inferometer[cloud]'"


def test_labels_are_groups_that_matched() -> None:
    import re

    pattern = re.compile(r"(?P<model>[^/]+)/(?:v(?P<version>\d+))?")
    assert labels_of("x/llama/v3/t.json", pattern) == {"model": "x"}
    assert labels_of("llama/v3/t.json", pattern) == {"model": "llama", "version": "3"}
    assert labels_of("t.json", pattern) == {}


class _Silent(SimpleHTTPRequestHandler):
    """Files of a folder, without a word of each on stderr."""

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


def test_files_of_a_web_server_are_read(tmp_path: Path) -> None:
    pytest.importorskip("fsspec", reason="fsspec isn't installed")
    pytest.importorskip("aiohttp", reason="aiohttp, the reader of http://, isn't installed")
    (folder := tmp_path / "web").mkdir()
    write_trace(folder / "t1.json", ("gemm", 1.0))
    write_trace(folder / "t2.json.gz", ("gemm", 2.0))
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Silent, directory=str(folder))) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        base = f"http://127.0.0.1:{server.server_port}"
        found = mined(tmp_path / "f.ifm", f"{base}/t1.json", f"{base}/t2.json.gz")
        assert (found.traces, found.aside) == (2, ())
        assert mined(tmp_path / "f.ifm", f"{base}/t1.json").made == 0
        with pytest.raises(InputError, match="no such file"):
            names(f"{base}/none.json")
        server.shutdown()
    mined(tmp_path / "local.ifm", folder)
    ours, local = (
        sorted(file.name for file in (tmp_path / name).rglob("digests/*/*")) for name in ("f.ifm", "local.ifm")
    )
    assert ours == local
