"""tinygrad's own language model on its WebGPU backend: loads a GGUF file, then answers requests, a line each.

    DEV=WEBGPU python benchmarks/peers/tinygrad_decode.py MODEL.gguf POSITIONS

Lines on stdin are `{"prompt": [ids], "new_tokens": N}`, those on stdout `{"tokens": [ids], "token_ns": [ns],
"cpu_ns": ns}`: the most probable tokens, what each took, the first with the prompt, and the CPU time of all threads for
those after the first. The first line says that the model is loaded. Weights
are widened to float16 once, as its own server does with REALIZE=1; its KV cache is float16.

Dawn comes from the package `dawn-python`. The wheel of tinygrad 0.14.0 lacks the folder `tinygrad/llm/kernels`, which
its model imports for AMD's GPUs: a stand-in says that there is none, and that a linear layer is a linear layer.
"""

from __future__ import annotations

import json
import os
import platform
import sys
import time
import types
from importlib.metadata import version
from importlib.util import find_spec
from itertools import islice
from pathlib import Path


def main(model: str, positions: str) -> None:
    _find_dawn()
    import tinygrad

    if find_spec("tinygrad.llm.kernels") is None:
        _stand_in_for_kernels(tinygrad.nn.Linear)
    from tinygrad.llm.model import Transformer

    transformer, _ = Transformer.from_gguf(Path(model), max_context=int(positions), realize=True)
    said = {
        "device": tinygrad.Device.DEFAULT,
        "versions": {each: version(each) for each in ("tinygrad", "dawn-python")},
    }
    print(json.dumps(said), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        transformer._cached_tokens = []  # nothing of the answer before is kept
        tokens, token_ns, before_ns, cpu_ns = [], [], time.perf_counter_ns(), 0
        for token in islice(transformer.generate(list(request["prompt"])), request["new_tokens"]):
            now_ns = time.perf_counter_ns()
            tokens.append(token)
            token_ns.append(now_ns - before_ns)
            before_ns = now_ns
            cpu_ns = cpu_ns or time.process_time_ns()
        print(
            json.dumps({"tokens": tokens, "token_ns": token_ns, "cpu_ns": time.process_time_ns() - cpu_ns}), flush=True
        )


def _find_dawn() -> None:
    """Tells tinygrad where the package keeps its library, whose name has the processor in it."""
    spec = find_spec("pydawn")
    if spec is not None and spec.origin is not None:
        name = f"libwebgpu_dawn_{platform.machine()}.so"
        os.environ.setdefault("WEBGPU_PATH", str(Path(spec.origin).with_name("lib") / name))


def _stand_in_for_kernels(linear: type) -> None:
    folder, amd = types.ModuleType("tinygrad.llm.kernels"), types.ModuleType("tinygrad.llm.kernels.amd")
    names = {"Linear": linear, "gated_delta_prefill": None, "flash_attention": None}
    amd.__dict__.update(names, amd_custom_kernels_supported=lambda device: False)
    sys.modules.update({folder.__name__: folder, amd.__name__: amd})


if __name__ == "__main__":
    main(*sys.argv[1:])
