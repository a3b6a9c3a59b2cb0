"""A made-up engine in a process of its own, for the count of what a watch costs: its own work isn't the watch's."""

import atexit
import os
import subprocess
import sys
from collections.abc import Callable

_ENGINE = """
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
buckets = "".join(f'vllm:e2e_seconds_bucket{{engine="0",le="{n}",model_name="model"}} {n}.0\\n' for n in range(2000))
asked = 0

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        global asked
        asked += 1
        tokens = 400 * asked
        body = (
            f"vllm:num_requests_running 4\\nvllm:num_requests_waiting 1\\nvllm:generation_tokens_total {tokens}\\n"
            f"{buckets}vllm:inter_token_latency_seconds_sum {tokens / 100}\\n"
            f"vllm:inter_token_latency_seconds_count {tokens}\\n"
        ).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        print(asked, flush=True)

    def log_message(self, *_):
        return

server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""


def serve() -> tuple[str, Callable[[], int]]:
    """Its address, and how often it was asked. It ends with this process."""
    words = [sys.executable, "-c", _ENGINE]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    atexit.register(process.kill)
    assert process.stdout is not None
    port = process.stdout.readline().strip()
    os.set_blocking(process.stdout.fileno(), False)
    asked = [0]

    def readings() -> int:
        assert process.stdout is not None
        while line := process.stdout.readline():
            asked[0] = int(line)
        return asked[0]

    return f"http://127.0.0.1:{port}", readings
