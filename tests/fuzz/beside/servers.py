"""Servers that are recorded, for the campaign: what they answer is damaged.

Each `open_…` uses a damaged sample as its command does; it gives no trace.
"""

import json
import socket
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from random import Random

from inferometer.record.server.engines import find_server
from inferometer.record.server.http import Http

Files = Mapping[str, bytes]

_ANSWER_S = 1.0


@cache
def servers() -> Sequence[Files]:
    """Answers of both engines' servers, a file each with its headers, and one that answers whatever is asked."""
    models = {"object": "list", "data": [{"id": "a/b", "owned_by": "vllm", "root": "a/b", "max_model_len": 4096}]}
    config = {"parallel_config": {"tensor_parallel_size": 2, "data_parallel_size": 1}, "dtype": "bfloat16"}
    metrics = b'vllm:cache_config_info{block_size="16",num_gpu_blocks="100"} 1.0\nvllm:num_requests_running 1.0\n'
    info = {"model_path": "a/b", "version": "0.5.3", "tp_size": 2, "dp_size": 1, "internal_states": []}
    of_vllm = {
        "v1_models": _answer(json.dumps(models).encode()),
        "server_info": _answer(json.dumps({"vllm_config": config}).encode()),
        "version": _answer(b'{"version": "0.11.0"}'),
        "metrics": _answer(metrics, "text/plain"),
    }
    of_sglang = {
        "v1_models": _answer(json.dumps(models).replace("vllm", "sglang").encode()),
        "get_server_info": _answer(json.dumps(info).encode()),
    }
    named = [{f"answers/{name}": data for name, data in each.items()} for each in (of_vllm, of_sglang)]
    return [*named, {"answers/any": of_sglang["get_server_info"]}]


def _answer(body: bytes, kind: str = "application/json") -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    return head.encode() + body


def open_server(path: Path, _: Random) -> None:
    """Ask a server that gives the answers of these files."""
    folder = path if path.is_dir() else path.parent
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.05)
        stop = threading.Event()

        def serve() -> None:
            while not stop.is_set():
                with suppress(OSError):
                    connection, _ = listening.accept()
                    with connection, suppress(OSError):
                        connection.settimeout(0.5)
                        connection.sendall(_chosen(folder, connection.recv(65_536)))

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            server = find_server(Http(f"http://127.0.0.1:{listening.getsockname()[1]}"), _ANSWER_S)
            assert server.name
        finally:
            stop.set()
            thread.join()


def _chosen(folder: Path, request: bytes) -> bytes:
    asked = request.split(b" ", 2)[1].decode().partition("?")[0].strip("/").replace("/", "_")
    for name in (asked, "any"):
        if (folder / name).is_file():
            return (folder / name).read_bytes()
    return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
