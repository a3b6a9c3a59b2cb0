"""What an engine says of a run besides its kernels, under the keys that the reader of engine logs gives them.

So findings, summaries and comparisons take a recorded run as they take a log. Numbers here are exact; `engine_log`
prints them. Only here: `memory_by_purpose`, `kernel_selections` with constants, how well device and host clocks agree,
and `adapter_rates`, what the adapter reaches.
"""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from inferometer.engines.webgpu.profile.profiled_run import ProfiledRun
from inferometer.engines.webgpu.program_memory import PurposeMemory, memory_of
from inferometer.engines.webgpu.run.executor import LoadPhase

COMMAND = "chat"


def run_metrics(run: ProfiledRun) -> dict[str, Any]:
    """Plain data; what isn't known is left out."""
    return {
        **_of_request(run),
        **_of_engine(run),
        "loads": loads_of(run),
        "memory": list(memory_entries(run)),
        "perf": _known(
            ttft_ns=run.ttft_ns,
            prefill_ns=run.prefill_ns,
            decode_ns=run.decode_ns,
            decode_tokens=run.decode_tokens,
            decode_tokens_per_s=run.decode_tokens_per_s,
        ),
        "memory_by_purpose": {
            one.purpose: {key: value for key, value in asdict(one).items() if key != "purpose"}
            for one in memory_of(run.program)
        },
        "kernel_selections": [asdict(selection) for selection in run.loaded.selections],
        "clocks": sorted({submission.clock for submission in run.submissions}),
        **_known(adapter_rates=None if run.rates is None else asdict(run.rates)),
    }


def kernel_path_of(run: ProfiledRun) -> dict[str, Any]:
    """The plan: its name, its steps in a decode step, and how many kernels these have."""
    steps = [step for step in run.loaded.planned if step.phase != "prefill"]
    return {
        "name": run.program.kernel_path,
        "decode_steps": len(steps),
        "kernels": len({step.kernel for step in steps}),
        "source": "plan",
    }


def loads_of(run: ProfiledRun) -> list[dict[str, Any]]:
    """Each part of getting ready, then `complete`: the bytes of all, and the time of the parts that moved any."""
    found = [_load(run, one, one.name) for one in run.load]
    if run.load:
        moved = [one for one in run.load if one.bytes]
        dur_ns = sum(one.dur_ns for one in moved)
        end_ns = max(one.start_ns + one.dur_ns for one in run.load)
        whole = LoadPhase("complete", end_ns - dur_ns, dur_ns, sum(one.bytes for one in moved))
        found.append(_load(run, whole, whole.name))
    return found


def memory_entries(run: ProfiledRun) -> Iterator[dict[str, Any]]:
    """Memory of the device: before, `complete` with weights and tables loaded, `ready` with all buffers that it has."""
    began_ns = min((one.start_ns for one in run.load), default=run.zero_ns)
    loaded_ns = began_ns + (run.load_ns or 0)
    every = memory_of(run.program)
    weights = [one for one in every if one.purpose in ("weights", "tables")]
    for when, parts, at_ns in (("start", [], began_ns), ("complete", weights, loaded_ns), ("ready", every, loaded_ns)):
        size = sum(part.size_bytes for part in parts)
        yield {
            "when": when,
            "elapsed_ns": at_ns - began_ns,
            "gpu_bytes": size,
            "gpu_peak_bytes": size,
            "gpu_active": _buffers(parts),
            "gpu_pooled": 0,
            "layers": run.spec.layers if run.spec is not None and parts else 0,
            "buffers": _buffers(parts),
            "time_ns": at_ns - run.zero_ns,
        }


def _load(run: ProfiledRun, one: LoadPhase, name: str) -> dict[str, Any]:
    moved = {"bytes": one.bytes, "bytes_per_s": one.bytes * 1e9 / one.dur_ns if one.dur_ns else 0.0}
    has_bytes = one.bytes > 0 or name == "complete"
    place = {"dur_ns": one.dur_ns, "time_ns": one.start_ns + one.dur_ns - run.zero_ns}
    return {"what": word(name), **(moved if has_bytes else {}), **place}


def _of_request(run: ProfiledRun) -> dict[str, Any]:
    last_ns = max([run.request_ns + run.total_ns, *(one.start_ns + one.dur_ns for one in run.load)])
    return {
        "result": "ok" if run.failure is None else "failed",
        "command": COMMAND,
        "passed": int(run.failure is None),
        "failed": int(run.failure is not None),
        "duration_ns": last_ns - run.zero_ns,
        "prefill_tokens": run.prefill_tokens,
        "decode_tokens": len(run.tokens),
        "max_tokens": run.request.new_tokens,
        "prefill_ns": run.prefill_ns,
        "decode_ns": run.decode_ns,
        "total_ns": run.total_ns,
        **_known(
            prompt=one_line(run.prompt) if run.prompt else None,
            load_ns=run.load_ns,
            ttft_ns=run.ttft_ns,
            total_tokens_per_s=run.tokens_per_s,
            prefill_tokens_per_s=run.prefill_tokens_per_s,
            decode_tokens_per_s=run.decode_tokens_per_s,
        ),
    }


def _of_engine(run: ProfiledRun) -> dict[str, Any]:
    spec, vocab = run.spec, run.program.vocabulary
    found: dict[str, Any] = {
        "features": sorted(run.adapter.features),
        "adapter_limit_bytes": run.adapter.most_buffer_bytes,
        "kernel_path": kernel_path_of(run),
    }
    if spec is not None:
        found |= {"layers": spec.layers, "hidden": spec.hidden, "heads": spec.heads, "head_dim": spec.head_dim}
    if run.tokenizer is not None:
        source, tokens = run.tokenizer
        found |= {"tokenizer": {"source": source, "tokens": tokens}, "tokenizer_vocab": tokens}
        found |= {"model_vocab": vocab} if tokens != vocab else {}
    return found


def word(text: str) -> str:
    """A name that log lines can hold as one word, in lower case."""
    return "".join(letter if letter.isalnum() else "_" for letter in text.lower())[:40] or "part"


def one_line(text: str) -> str:
    """A text without line ends, control characters and runs of spaces."""
    from inferometer.errors import clean

    return clean(" ".join(text.split()))


def _buffers(parts: list[PurposeMemory]) -> int:
    return sum(part.buffers for part in parts)


def _known(**fields: Any) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not None}
