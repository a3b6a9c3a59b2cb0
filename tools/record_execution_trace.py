"""Records a small training step on the CPU twice over: PyTorch's profile of a run, and its execution trace.

    python tools/record_execution_trace.py FOLDER

Writes `profile.json.gz` (with shapes and the allocator's records) and `et.json.gz`. Needs torch. The machine's name and
folders are left out of both.
"""

import gzip
import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

STEPS = 2
_PRIVATE = ("host_name", "traceName", "distributedInfo")


def main(folder: Path) -> None:
    """Record and write both."""
    import torch
    from torch.profiler import ExecutionTraceObserver, ProfilerActivity, profile

    torch.manual_seed(0)
    step = make_step(torch)
    step()
    with TemporaryDirectory() as scratch:
        written = [Path(scratch, name) for name in ("profile.json", "et.json")]
        observer = ExecutionTraceObserver().register_callback(str(written[1]))
        with profile(
            activities=[ProfilerActivity.CPU],
            record_shapes=True,
            profile_memory=True,
            execution_trace_observer=observer,
        ) as profiler:
            for _ in range(STEPS):
                step()
                profiler.step()
        profiler.export_chrome_trace(str(written[0]))
        for path in written:
            pack(json.loads(path.read_text()), folder / f"{path.name}.gz")


def make_step(torch: Any) -> Any:
    """A step of training: embedding, attention, a convolution, two types, Adam."""
    nn = torch.nn

    class Model(nn.Module):  # type: ignore[misc,name-defined]  # torch is not imported at the top
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.norm = nn.Embedding(50, 32), nn.LayerNorm(32)
            self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)
            self.mix = nn.Conv1d(32, 32, 3, padding=1)

        def forward(self, tokens_BT: Any) -> Any:  # B sequences, T tokens
            hidden = self.norm(self.embed(tokens_BT))
            q, k, v = self.qkv(hidden).chunk(3, -1)
            hidden = hidden + self.out(nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True))
            hidden = self.mix(hidden.transpose(1, 2)).transpose(1, 2)
            return torch.cat([hidden, hidden.to(torch.bfloat16).float()], -1)

    model = Model()
    tokens = torch.randint(0, 50, (2, 16))
    optimizer = torch.optim.Adam(model.parameters())

    def step() -> None:
        with torch.profiler.record_function("training step"):
            model(tokens).sum().backward()
            optimizer.step()
            optimizer.zero_grad()

    return step


def pack(found: dict[str, Any], target: Path) -> None:
    """Without what names the machine."""
    kept = {key: value for key, value in found.items() if key not in _PRIVATE}
    target.write_bytes(gzip.compress(json.dumps(kept).encode(), 9, mtime=0))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
