"""A server that speaks the protocols of vLLM and SGLang, as far as profiling needs them, and has a fault on request.

It runs in a thread, on loopback only, and writes traces made by `tools/kineto_maker`, a file per rank, slowly. Their
clock begins so that the first kernel ran when the profiler started; one more ran when it stopped.
"""

import gzip
import io
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from tools.kineto_maker import Options, write_trace
from tools.kineto_maker.kineto_text import BASE_TIME_NS

MODEL = "llama-3.2-1b"
KEY = "sk-inferometer-test-key"
SGLANG_INFO = {
    "model_path": MODEL,
    "tp_size": 1,
    "dp_size": 1,
    "pp_size": 1,
    "attention_backend": "fa3",
    "quantization": None,
    "max_running_requests": 256,
    "api_key": KEY,
    "internal_states": [{"last_gen_throughput": 1.0}],
    "version": "0.5.3",
}
VLLM_METRICS = """\
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m, {x}"} 3.0
vllm:num_requests_running{engine="1",model_name="m, {x}"} 2.0
vllm:num_requests_waiting{engine="0",model_name="m"} 7.0
vllm:kv_cache_usage_perc{engine="0",model_name="m"} 0.25
vllm:gpu_cache_usage_perc{engine="0",model_name="m"} 0.9
vllm:generation_tokens_total{engine="0",model_name="m"} 1.5e+03
vllm:generation_tokens_created{engine="0",model_name="m"} 1.7e+09
vllm:prompt_tokens_total{engine="0",model_name="m"} NaN
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.001",model_name="m"} 0.0
vllm:time_to_first_token_seconds_sum{engine="0",model_name="m"} 12.5
vllm:time_to_first_token_seconds_count{engine="0",model_name="m"} 50
vllm:cache_config_info{block_size="16",cache_dtype="auto",engine="0",num_gpu_blocks="27543"} 1.0
"""
SGLANG_METRICS = """\
sglang:num_running_reqs{model_name="m",tp_rank="0",pp_rank="0"} 4
sglang:num_running_reqs{model_name="m",tp_rank="1",pp_rank="0"} 4
sglang:num_queue_reqs{model_name="m"} 1
sglang:token_usage{model_name="m"} 0.5
sglang:generation_tokens_total{model_name="m"} 77
sglang:inter_token_latency_seconds_sum{model_name="m"} 2.5
sglang:inter_token_latency_seconds_count{model_name="m"} 100
"""

Answer = tuple[int, str, bytes]
Part = Literal["first", "last"]


@dataclass
class Fake:
    """What the server is and what is wrong with it.

    Attributes:
        engine: Whose protocol.
        folder: vLLM's; SGLang is reported one.
        world: Ranks, a trace each.
        key: Wanted in every request.
        profiles: False: vLLM without a profiler.
        is_busy: A profiler is running already.
        metrics: Whether there are any.
        answers: In the place of the usual ones, by path.
        blocks: How many pieces a file is written in.
        pause_s: Between two pieces.
        gz: Whether files are packed.
        start_s: How long its profiler takes to start.
        steps_s: How long SGLang's steps take.
        dies: When its process ends: as its profile is asked to stop, or in the middle of the first file.
        lost: So many ranks write no file.
        clock_off_ns: By how much its clock is ahead.
        frontend: vLLM's API server writes a trace, too.
        dev_mode: vLLM tells its configuration.
    """

    engine: Literal["sglang", "vllm"] = "sglang"
    folder: Path | None = None
    world: int = 1
    key: str | None = None
    profiles: bool = True
    is_busy: bool = False
    metrics: bool = True
    answers: dict[str, Answer] = field(default_factory=dict)
    blocks: int = 3
    pause_s: float = 0.03
    gz: bool = True
    start_s: float = 0.0
    steps_s: float = 0.2
    dies: Literal["at stop", "in a file"] | None = None
    lost: int = 0
    clock_off_ns: int = 0
    frontend: bool = False
    dev_mode: bool = False


class FakeServer:
    """Serves as `fake` says, from `with` to its end. `asked`: method, path and body of every request.

    `scrapes`: when metrics were asked for, ns since 1970; `began_ns` and `ended_ns`: the profiler's.
    """

    def __init__(self, fake: Fake) -> None:
        self.fake = fake
        self.asked: list[tuple[str, str, bytes]] = []
        self.scrapes: list[int] = []
        self.began_ns: int | None = None
        self.ended_ns = 0
        self.is_dead = False
        self._target: Path | None = fake.folder
        self._server = _Server(("127.0.0.1", 0), _handler(self))
        self._threads = [threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)]

    @property
    def url(self) -> str:
        """Where it is."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.die()
        for thread in self._threads:
            thread.join(10)

    def die(self) -> None:
        """End at once: nobody listens any more, and open connections break."""
        if not self.is_dead:
            self.is_dead = True
            self._server.shutdown()
            self._server.server_close()

    def paths(self) -> list[str]:
        """What was asked, in order."""
        return [path for _, path, _ in self.asked]

    def answer(self, method: str, path: str, headers: Any, body: bytes) -> Answer | None:
        """The answer to a request; None breaks the connection."""
        self.asked.append((method, path, body))
        if self.fake.key and headers.get("Authorization") != f"Bearer {self.fake.key}":
            return _json({"error": f"Unauthorized: {headers.get('Authorization')}"}, 401)
        if path in self.fake.answers:
            return self.fake.answers[path]
        usual: dict[tuple[str, str], Callable[[bytes], Answer | None]] = {
            ("GET", "/v1/models"): lambda _: _json({"data": [{"id": MODEL, "owned_by": self.fake.engine}]}),
            ("GET", "/metrics"): lambda _: self._metrics(),
            ("POST", "/start_profile"): self._start,
            ("POST", "/stop_profile"): lambda _: self._stop(),
        }
        if self.fake.engine == "sglang":
            usual["GET", "/get_server_info"] = lambda _: _json(SGLANG_INFO | {"tp_size": self.fake.world})
        else:
            usual["GET", "/version"] = lambda _: _json({"version": "0.13.0"})
            if self.fake.dev_mode:
                usual["GET", "/server_info?config_format=json"] = lambda _: _json(self._config())
            if not self.fake.profiles:
                del usual["POST", "/start_profile"]
        return usual.get((method, path), lambda _: _json({"detail": "Not Found"}, 404))(body)

    def _config(self) -> dict[str, Any]:
        parallel = {"tensor_parallel_size": self.fake.world, "pipeline_parallel_size": 1, "data_parallel_size": 1}
        profiler = {"profiler": "torch", "torch_profiler_dir": str(self.fake.folder)}
        return {"vllm_config": {"parallel_config": parallel, "profiler_config": profiler}}

    def _metrics(self) -> Answer:
        self.scrapes.append(time.time_ns())
        if not self.fake.metrics:
            return _json({"detail": "Not Found"}, 404)
        text = VLLM_METRICS if self.fake.engine == "vllm" else SGLANG_METRICS
        return 200, "text/plain; version=0.0.4", text.encode()

    def _start(self, body: bytes) -> Answer:
        if self.fake.is_busy:
            return 500, "text/plain", b"Profiling is already in progress. Call /stop_profile first."
        time.sleep(self.fake.start_s)
        asked = json.loads(body) if body else {}
        self.began_ns = time.time_ns()
        if self.fake.engine == "sglang":
            assert {"CPU", "GPU"} == set(asked["activities"])
            self._target = Path(asked["output_dir"])
            if steps := asked.get("num_steps"):
                assert steps > 0
                self._threads.append(threading.Thread(target=self._do_steps, daemon=True))
                self._threads[-1].start()
        return 200, "text/plain", b"Start profiling.\n"

    def _do_steps(self) -> None:
        time.sleep(self.fake.steps_s)
        if self.began_ns is not None:  # else it was stopped before
            self._write()

    def _stop(self) -> Answer | None:
        if self.began_ns is None:
            return 500, "text/plain", b"Profiling is not in progress. Call /start_profile first."
        if self.fake.dies == "at stop":
            self.die()
            return None
        self._write()
        if self.is_dead:
            return None
        return 200, "text/plain", b"Stop profiling. This will take some time.\n"

    def _write(self) -> None:
        """The files of all ranks at a time, piece by piece."""
        self.ended_ns = time.time_ns()
        assert self.began_ns is not None
        assert self._target is not None
        folder = self._target
        folder.mkdir(parents=True, exist_ok=True)
        files = {folder / self._name(rank): self._trace(rank) for rank in range(self.fake.world - self.fake.lost)}
        if self.fake.frontend:
            name = f"node-1_77.async_llm.{self.began_ns}.pt.trace.json.gz"
            files[folder / name] = gzip.compress(frontend_trace(self.began_ns))
        self._write_slowly(files)
        self.began_ns = None

    def _write_slowly(self, files: dict[Path, bytes]) -> None:
        for piece in range(self.fake.blocks):
            for path, data in files.items():
                size = -(-len(data) // self.fake.blocks)
                with path.open("ab") as file:
                    file.write(data[piece * size : (piece + 1) * size])
            if self.fake.dies == "in a file":
                self.die()
                return
            time.sleep(self.fake.pause_s)

    def _name(self, rank: int) -> str:
        if self.fake.engine == "sglang":
            return f"{(self.began_ns or 0) / 1e9:.7f}-TP-{rank}.trace.json" + (".gz" if self.fake.gz else "")
        return f"dp0_pp0_tp{rank}_dcp0_ep{rank}_rank{rank}.{self.began_ns}.pt.trace.json" + (
            ".gz" if self.fake.gz else ""
        )

    def _trace(self, rank: int) -> bytes:
        off_ns = self.fake.clock_off_ns
        text = rank_trace((self.began_ns or 0) + off_ns, self.ended_ns + off_ns, rank, self.fake.world)
        return gzip.compress(text) if self.fake.gz else text


def rank_trace(began_ns: int, ended_ns: int, rank: int, world: int) -> bytes:
    """A made trace whose first device work begins at `began_ns` since 1970, with one more kernel at `ended_ns`."""
    made = io.BytesIO()
    options = Options(steps=2, model=MODEL, layers=2, stack=False, rank=rank, world=world)
    write_trace(options, made)
    text = made.getvalue().decode()
    first_ns = min(_device_starts_ns(text))
    base_ns = began_ns - first_ns
    last = {
        "ph": "X",
        "cat": "kernel",
        "name": "last_kernel",
        "pid": 0,
        "tid": 7,
        "dur": 1.0,
        "args": {"device": 0, "context": 1, "stream": 7, "correlation": 99_999_999},
    }
    ts = ended_ns - base_ns
    event = json.dumps(last).replace('"dur"', f'"ts": {ts // 1000}.{ts % 1000:03}, "dur"', 1)
    text = text.replace(f'"baseTimeNanoseconds": {BASE_TIME_NS}', f'"baseTimeNanoseconds": {base_ns}', 1)
    head, end, tail = text.rpartition("\n  ],")
    return f"{head},\n  {event}{end}{tail}".encode()


def frontend_trace(began_ns: int) -> bytes:
    """What an API server's own profile looks like: no device, no rank."""
    op = {"ph": "X", "cat": "cpu_op", "name": "tokenize", "pid": 77, "tid": 77, "ts": 5.0, "dur": 2.0, "args": {}}
    return json.dumps({"schemaVersion": 1, "baseTimeNanoseconds": began_ns, "traceEvents": [op]}).encode()


def _device_starts_ns(text: str) -> list[int]:
    events = json.loads(text, parse_float=lambda number: round(float(number) * 1000))["traceEvents"]
    return [event["ts"] for event in events if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]


def _json(content: object, status: int = 200) -> Answer:
    return status, "application/json", json.dumps(content).encode()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that are gone are no news."""


def _handler(server: FakeServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer("GET")

        def do_POST(self) -> None:
            self._answer("POST")

        def log_message(self, format: str, *_: object) -> None:
            """Quiet."""

        def _answer(self, method: str) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            answer = server.answer(method, self.path, self.headers, body)
            if answer is None:
                self.close_connection = True
                return
            status, content_type, text = answer
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", text.decode())
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

    return Handler
