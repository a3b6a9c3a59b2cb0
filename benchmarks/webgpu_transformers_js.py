"""The WebGPU engine against transformers.js: decode in the same headless Chromium, on the same adapter, in one run.

    npm pack @huggingface/transformers@4.3.1 onnxruntime-common@1.30.0 onnxruntime-web@1.31.0-dev.20260914-8d85527a0
    python -m benchmarks.webgpu_transformers_js --packages FOLDER --peer-python PYTHON --json results.json

FOLDER has each package unpacked under its last name (`transformers`, `onnxruntime-web`, `onnxruntime-common`); PYTHON
has torch, transformers, onnx and onnxruntime-genai, which make the model: eight Llama layers of hidden size 256 with
random weights and 2,048 tokens. transformers.js runs it in float32, since SwiftShader, the adapter without a GPU, has
no shader-f16; ours holds weights in float16.

Rounds in turns: transformers.js, ours with a submit per token, ours with four. While one runs, the other waits for its
next request, each in a browser of its own. A first round, in which kernels are compiled, isn't counted. A rate is of
the tokens after the first; a ratio is of two rates of one round. The gate: both make the same tokens first. Needs the
extra webgpu and Chromium; not part of CI.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import queue
import random
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.machine import describe_machine
from benchmarks.record_overhead import interval
from benchmarks.webgpu_peers import BATCHES, LEAST_SAME, PROMPTS, SMALL, SMALL_CONFIG, ours

from inferometer.engines.webgpu.browser.chromium import Chromium
from inferometer.engines.webgpu.load import LoadOptions, load_webgpu

PEERS = Path(__file__).parent / "peers"
CONFIG = {**SMALL_CONFIG, "vocab_size": 2048}
PEER = "transformers.js"
POSITIONS = 128
_PACKAGES = ("transformers", "onnxruntime-web", "onnxruntime-common")
_PATIENCE_S = 1_800.0
_SEED = 16


class Page:
    """transformers.js in a browser, which asks for its next request and says what it answered."""

    def __init__(self, packages: Path, models: Path) -> None:
        self._places = {"": PEERS, "models": models} | {name: packages / name for name in _PACKAGES}
        self._asked: queue.Queue[Any] = queue.Queue()
        self._said: queue.Queue[Any] = queue.Queue()

    def handler(self) -> type[SimpleHTTPRequestHandler]:
        """Serves the page, its packages and the model; nothing else of the disk."""
        page = self

        class Handler(SimpleHTTPRequestHandler):
            extensions_map = {**SimpleHTTPRequestHandler.extensions_map, ".mjs": "text/javascript"}  # noqa: RUF012

            def translate_path(self, path: str) -> str:
                if path == "/":
                    return str(PEERS / "transformers_js.html")
                first, _, rest = path.lstrip("/").partition("/")
                return str(page._places.get(first, Path("nowhere")) / rest)

            def do_GET(self) -> None:
                if self.path == "/next":
                    self._answer(json.dumps(page._asked.get()).encode())
                else:
                    super().do_GET()

            def do_POST(self) -> None:
                page._said.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                self._answer(b"{}")

            def _answer(self, body: bytes) -> None:
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def end_headers(self) -> None:
                self.send_header("Cross-Origin-Opener-Policy", "same-origin")  # for threads
                self.send_header("Cross-Origin-Embedder-Policy", "require-corp")
                super().end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        return Handler

    def ask(self, prompt: Sequence[int], new_tokens: int) -> tuple[tuple[int, ...], float]:
        """The most probable tokens, and the rate of those after the first."""
        self._asked.put({"prompt": list(prompt), "new_tokens": new_tokens})
        found = self.hear()
        times = found["times_ms"]
        return tuple(found["tokens"]), (len(times) - 1) * 1e3 / (times[-1] - times[0])

    def hear(self) -> Any:
        """What the page says next."""
        said = self._said.get(timeout=_PATIENCE_S)
        if "error" in said:
            raise SystemExit(f"{PEER}: {said['error']}")
        return said


@contextmanager
def opened(packages: Path, models: Path) -> Iterator[tuple[Page, Any]]:
    """The page with its model loaded, and what it says of itself."""
    page = Page(packages, models)
    server = ThreadingHTTPServer(("127.0.0.1", 0), page.handler())
    threading.Thread(target=server.serve_forever, daemon=True).start()
    browser = Chromium(f"http://127.0.0.1:{server.server_port}/")
    try:
        yield page, page.hear()
    finally:
        browser.close()
        server.shutdown()


def measure(source: Path, packages: Path, models: Path, rounds: int, new_tokens: int) -> dict[str, Any]:
    """Rates of both in turns, and the ratios of each round."""
    prompt = PROMPTS[SMALL]
    same = 0
    rates: dict[str, list[float]] = {name: [] for name in (PEER, *BATCHES)}
    engine = load_webgpu(str(source), LoadOptions(on="browser", capacity_tokens=POSITIONS, greedy=True))
    try:
        with opened(packages, models) as (page, said):
            for number in range(rounds + 1):
                answers = {PEER: page.ask(prompt, new_tokens)}
                for label, batch in BATCHES.items():
                    answer = ours(engine, prompt, new_tokens, batch)
                    answers[label] = (answer.tokens, answer.tokens_per_s)
                same = next((n for n, each in enumerate(zip(*(tokens for tokens, _ in answers.values()), strict=True))
                             if len(set(each)) > 1), new_tokens)  # fmt: skip
                if same < LEAST_SAME:
                    raise SystemExit(f"expected the same {LEAST_SAME} tokens first, found {answers}")
                print(f"round {number}: {answers}", file=sys.stderr, flush=True)
                for label, (_, rate) in answers.items():
                    if number:
                        rates[label].append(rate)
            adapter = engine.adapter
    finally:
        engine.close()
    draw, rows = random.Random(_SEED), []
    for label, own in rates.items():
        ratios = [one / other for one, other in zip(own, rates[PEER], strict=True)]
        low, high = interval(ratios, draw)
        rows.append({"engine": label, "ratio": statistics.median(ratios), "low": low, "high": high,
                     "tokens_per_s": statistics.median(own), "rates": own})  # fmt: skip
    return {"adapter": f"{adapter.name}, {adapter.description}", "peer": said, "prompt_tokens": len(prompt),
            "new_tokens": new_tokens, "same_tokens": same, "rows": rows}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packages", type=Path, required=True, help="a folder with the npm packages, unpacked")
    parser.add_argument("--peer-python", type=Path, required=True, help="of the environment that makes the model")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--new-tokens", type=int, default=8)
    parser.add_argument("--json", metavar="FILE", type=Path)
    given = parser.parse_args()
    machine = describe_machine(len(os.sched_getaffinity(0)))
    with TemporaryDirectory() as folder:
        source, models = Path(folder) / "hf", Path(folder) / "models"
        command = [given.peer_python.absolute(), PEERS / "llama_onnx.py", source, models / "model", json.dumps(CONFIG)]
        subprocess.run(command, check=True, stdout=sys.stderr)
        found = measure(source, given.packages, models, given.rounds, given.new_tokens)
    for row in found["rows"]:
        line = "{engine:27} {tokens_per_s:9.3f} tokens/s, {ratio:.2f} times {peer} ({low:.2f} to {high:.2f})\n"
        sys.stdout.write(line.format(peer=PEER, **row))
    result = {"date": time.strftime("%Y-%m-%d"), "machine": machine, "rounds": given.rounds, **found,
              "versions": {"python": platform.python_version()}}  # fmt: skip
    if given.json is not None:
        given.json.write_text(json.dumps(result, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
