"""Traces in buckets: fsspec's readers ask servers on loopback that speak as S3, Google's storage and Hugging Face do.

That of Hugging Face is made up here, since nothing that is published pretends to be it. To run these:
`pip install '.[cloud]' 'moto[server,s3]' gcp-storage-emulator`. No environment of ours has them all: readers of buckets
want versions of their own.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha1
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import quote, unquote, urlsplit
from urllib.request import Request, urlopen

import pytest
from tests.fleet.mined import mined, write_trace

NAMES = ("runs/t1.json", "runs/deep/größe 2.json.gz", "elsewhere.json")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What the buckets hold."""
    for number, name in enumerate(NAMES):
        write_trace(tmp_path / "bucket" / name, ("gemm", 1.0 + number))
    return tmp_path / "bucket"


@pytest.fixture
def s3(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A bucket of S3."""
    pytest.importorskip("s3fs", reason="s3fs isn't installed")
    moto = pytest.importorskip("moto.server", reason="moto isn't installed (moto[server,s3])")
    boto3 = pytest.importorskip("boto3")

    keys = {"AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none", "AWS_DEFAULT_REGION": "us-east-1"}
    server = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in (keys | {"AWS_ENDPOINT_URL": f"http://{host}:{port}"}).items():
        monkeypatch.setenv(name, value)
    client = boto3.client("s3")
    client.create_bucket(Bucket="traces")
    for name in NAMES:
        client.put_object(Bucket="traces", Key=name, Body=(folder / name).read_bytes())
    yield "s3://traces"
    server.stop()


@pytest.fixture
def gs(folder: Path, monkeypatch: pytest.MonkeyPatch, unused_port: int) -> Iterator[str]:
    """A bucket of Google's."""
    pytest.importorskip("gcsfs", reason="gcsfs isn't installed")
    emulator = pytest.importorskip("gcp_storage_emulator.server", reason="gcp-storage-emulator isn't installed")
    server = emulator.create_server("127.0.0.1", unused_port, in_memory=True, default_bucket="traces")
    server.start()
    address = f"http://127.0.0.1:{unused_port}"
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", address)
    for name in NAMES:
        place = f"{address}/upload/storage/v1/b/traces/o?uploadType=media&name={quote(name, safe='')}"
        urlopen(Request(place, (folder / name).read_bytes(), {"Content-Type": "application/octet-stream"})).close()
    yield "gs://traces"
    server.stop()


class _Hub(BaseHTTPRequestHandler):
    """What Hugging Face answers of one data set, whose files are in `folder`."""

    folder: Path

    def do_GET(self) -> None:
        of_data, path = "datasets/someone/traces", unquote(urlsplit(self.path).path)
        if path.startswith(f"/{of_data}/resolve/main/"):
            self._answer((self.folder / path.removeprefix(f"/{of_data}/resolve/main/")).read_bytes())
        elif path.startswith(f"/api/{of_data}/tree/main"):
            inside = self.folder / path.removeprefix(f"/api/{of_data}/tree/main").strip("/")
            is_whole = "recursive=true" in urlsplit(self.path).query.lower()
            self._answer([self._about(file) for file in (inside.rglob("*") if is_whole else inside.iterdir())])
        elif path == f"/api/{of_data}":
            self._answer({"id": "someone/traces", "sha": "0" * 40})
        else:
            self.send_error(404)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["paths"]
        found = [self.folder / path for path in ([asked] if isinstance(asked, str) else asked)]
        self._answer([self._about(file) for file in found if file.exists()])

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""

    def _about(self, file: Path) -> dict[str, object]:
        kind, size = ("directory", 0) if file.is_dir() else ("file", file.stat().st_size)
        path = str(file.relative_to(self.folder))
        return {"type": kind, "path": path, "size": size, "oid": sha1(path.encode()).hexdigest()}

    def _answer(self, answer: object) -> None:
        body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream" if body is answer else "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Repo-Commit", "0" * 40)
        self.send_header("ETag", f'"{sha1(body).hexdigest()}"')
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@pytest.fixture
def hf(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A data set of Hugging Face's."""
    pytest.importorskip("huggingface_hub", reason="huggingface-hub isn't installed")
    handler = type("Hub", (_Hub,), {"folder": folder})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
        yield "hf://datasets/someone/traces"
        server.shutdown()


@pytest.fixture
def unused_port() -> int:
    import socket

    with socket.socket() as some:
        some.bind(("127.0.0.1", 0))
        return int(some.getsockname()[1])


def mine(*words: str | Path) -> subprocess.CompletedProcess[str]:
    """By a process: readers look at the environment as they are imported."""
    command = [sys.executable, "-m", "inferometer", "mine", *map(str, words), "--json"]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ), timeout=300)


@pytest.mark.parametrize("kind", ["s3", "gs", "hf"])
def test_a_bucket_is_mined_as_a_folder_is(
    kind: str, folder: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    bucket = request.getfixturevalue(kind)
    first = mine(f"{bucket}/runs", "-o", tmp_path / "f.ifm")
    assert first.returncode == 0, first.stderr
    assert {name: json.loads(first.stdout)[name] for name in ("traces", "made", "aside")} == {
        "traces": 2,
        "made": 2,
        "aside": [],
    }
    again = json.loads(mine(f"{bucket}/runs", f"{bucket}/*.json", "-o", tmp_path / "f.ifm").stdout)
    assert (again["traces"], again["made"]) == (3, 1)
    mined(tmp_path / "local.ifm", folder)
    digests = [
        sorted(file.name for file in (tmp_path / fleet).rglob("digests/*/*")) for fleet in ("f.ifm", "local.ifm")
    ]
    assert digests[0] == digests[1]
    missing = mine(f"{bucket}/none/", "-o", tmp_path / "g.ifm")
    assert missing.returncode == 3
    assert f"{bucket}/none/: no such file, and no folder with files" in missing.stderr
