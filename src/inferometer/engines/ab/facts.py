"""What a reader must know of an A/B besides its times: the model, the machine, versions, what the instrument costs."""

import platform
import statistics
import time
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from inferometer.engines.ab.completion import without_collector
from inferometer.engines.ab.plan import Plan
from inferometer.engines.engine import Engine
from inferometer.engines.paths import PathRecorder, scope
from inferometer.hardware.measure.host import load_remarks, read_host

_PACKAGES = ("torch", "triton", "transformers")
_SCOPES, _BATCHES = 200, 5
_clock = time.perf_counter_ns

INTERPRETED_NOTE = "Triton's kernels ran in its interpreter: their times say nothing about their speed on a GPU."


def describe(engine: Engine, plan: Plan, prompt_tokens: int) -> dict[str, Any]:
    """Facts that are known before anything runs."""
    import torch

    on_gpu = engine.device.startswith("cuda")
    return {
        "model": engine.name,
        "source": getattr(engine, "source", None),
        "parameters": getattr(engine, "parameters", None),
        "device": engine.device,
        "device_name": torch.cuda.get_device_name(engine.device) if on_gpu else read_host().name,
        "dtype": engine.dtype,
        "batch": plan.batch,
        "prompt_tokens": prompt_tokens,
        "new_tokens": plan.new_tokens,
        "repetitions": plan.repetitions,
        "warmup": plan.warmup,
        "seed": plan.seed,
        "threads": torch.get_num_threads(),
        "versions": _versions(torch),
        "interrupted": False,
        "began": _now(),
    }


def cost_of_scopes(device: str) -> dict[str, int]:
    """What an empty scope takes here, ns, the middle of some batches: recorded, and where nothing records."""
    with without_collector():
        idle_ns = [_batch_ns() for _ in range(_BATCHES)]
        with PathRecorder(device).entered():
            _batch_ns()
            recorded_ns = [_batch_ns() for _ in range(_BATCHES)]
    return {"scope_ns": round(statistics.median(recorded_ns)), "idle_scope_ns": round(statistics.median(idle_ns))}


def end_of(orders: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Facts that are known at the end. `orders`: of the arms, in each whole repetition."""
    return {"repetitions_done": len(orders), "order": [list(order) for order in orders], "ended": _now()}


def load_notes() -> list[str]:
    """Whether other work takes the processor now: ask before the first run."""
    return list(load_remarks(read_host()))


def run_notes(engine: Engine, backends: Collection[str]) -> list[str]:
    """What the engine says of itself, and what its device means for times. `backends`: what ran."""
    is_interpreted = engine.device == "cpu" and "triton" in backends
    return [*getattr(engine, "notes", ()), *([INTERPRETED_NOTE] if is_interpreted else [])]


def _batch_ns() -> float:
    begun = _clock()
    for _ in range(_SCOPES):
        with scope("empty"):
            pass
    return (_clock() - begun) / _SCOPES


def _versions(torch: Any) -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    toolkits = {"cuda": torch.version.cuda, "hip": getattr(torch.version, "hip", None)}
    return found | {name: str(each) for name, each in toolkits.items() if each}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
