"""What to say about attributed launches: how captures fit, what is lacking, and how to record it next time."""

from collections.abc import Iterator, Mapping

import polars as pl

from inferometer.analyses.launched_by.attribution import Attribution
from inferometer.analyses.launched_by.sites import BY_COLUMN, By
from inferometer.analyses.recording_advice import RAN_ALONE, is_of_jax, is_of_rocprof
from inferometer.units import format_counted, format_duration, format_share

_ONLY_SUMS = "Only sums by kernel are in the file, no single launches: who launched them can't be known."
_BY_PATH = "Only sums by call path are in the file, no single launches: inferometer tree FILE shows them."
_GOOD = 0.95  # fits below it are reported with their score
_TORCH: dict[By, str] = {
    "op": "PyTorch's profiler records ops with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA].",
    "module": "PyTorch's profiler records modules and Python frames with with_stack=True.",
    "frame": "PyTorch's profiler records Python frames with with_stack=True.",
    "user-frame": "PyTorch's profiler records Python frames with with_stack=True.",
    "span": 'Name ranges with torch.profiler.record_function("name") or NVTX (torch.cuda.nvtx.range).',
    "region": "Compiled regions are recorded where torch.compile runs under PyTorch's profiler.",
}
_NSYS: dict[By, str] = {
    "op": "Nsight Systems shows ops as ranges: run under torch.autograd.profiler.emit_nvtx() and use --by span.",
    "module": "Nsight Systems shows modules as ranges: vLLM and SGLang name them with layerwise NVTX tracing.",
    "frame": "Nsight Systems records call stacks with --python-backtrace=cuda and --cudabacktrace=all.",
    "user-frame": "Nsight Systems records Python stacks with --python-backtrace=cuda.",
    "span": "With Nsight Systems, name ranges with NVTX (torch.cuda.nvtx.range) and record --trace=cuda,nvtx.",
    "region": _TORCH["region"],
}
_ROCPROF: dict[By, str] = {
    "op": "rocprofv3 has none: PyTorch's profiler on ROCm records ops with activities=[ProfilerActivity.CPU, "
    "ProfilerActivity.CUDA].",
    "module": "rocprofv3 has none: PyTorch's profiler on ROCm records modules and Python frames with with_stack=True.",
    "frame": "rocprofv3 has none: PyTorch's profiler on ROCm records Python frames with with_stack=True.",
    "user-frame": "rocprofv3 has none: PyTorch's profiler on ROCm records Python frames with with_stack=True.",
    "span": "Name ranges with ROCTx (roctxRangePush) and record them with rocprofv3 --marker-trace --hip-trace.",
    "region": "Compiled regions are recorded where torch.compile runs under PyTorch's profiler on ROCm.",
}
_JAX_FRAMES = (
    "JAX's profiler records Python functions with python_tracer_level = 1 in jax.profiler.ProfileOptions; threads of "
    "XLA's own that launch are in none."
)
_JAX: dict[By, str] = {
    **dict.fromkeys(("op", "module"), "XLA names the instruction and the program of what its compiler made only."),
    **dict.fromkeys(("frame", "user-frame"), _JAX_FRAMES),
    "span": 'Name ranges with jax.profiler.TraceAnnotation("name") on the thread that calls the compiled function.',
    "region": "Compiled regions are torch.compile's: --by module has XLA's programs.",
}
WORDS: dict[By, str] = {
    "op": "framework ops",
    "module": "modules",
    "frame": "frames",
    "user-frame": "frames of user code",
    "span": "named ranges",
    "region": "compiled regions",
}
_CAPTURE = (
    "--capture FILE finds them: a profile of the graph's capture where its calls name their kernels (ROCm), or of an "
    "eager run of the same batch (SGLang --disable-cuda-graph, vLLM --enforce-eager)."
)


def has_any(found: Attribution, by: By) -> bool:
    """Whether any launch has a key of this kind."""
    return found.sites[BY_COLUMN[by]].null_count() < found.sites.height


def site_remarks(found: Attribution, by: By | None) -> Iterator[str]:
    """Sentences about an attribution, as far as they matter to keys of this kind; None for all kinds."""
    work = found.launches
    if not work.height:
        yield _why_no_launches(found)
        return
    yield from _fits(found)
    yield from _replays(work)
    captured = int(work["is_captured"].sum())
    if captured:
        yield f"{captured:,} launches are captured into a graph: calls in this file, without device time."
    yield from _before(work, found.format)
    yield from _lacking(found, by)


def _why_no_launches(found: Attribution) -> str:
    if found.losses.total("profiled_alone"):
        return RAN_ALONE
    if found.format == "proton":
        return _BY_PATH
    return _ONLY_SUMS if found.has_totals else found.why_none


def _fits(found: Attribution) -> Iterator[str]:
    is_given = any(fit.nameless is not None for fit in found.fits)
    if is_given and not found.launches["is_replay"].any():
        yield "No graph replays are among these launches: a capture has nothing to explain."
        return
    for fit in found.fits:
        if fit.replays:
            where = f" ({', '.join(fit.places[:3])})" if fit.places else ""
            is_worth_it = fit.worst_score is not None and fit.worst_score < _GOOD
            score = f"; the worst fit has a score of {fit.worst_score:.2f} of 1" if is_worth_it else ""
            replays = format_counted(fit.replays, "replay")
            yield (
                f"{fit.found:,} of {fit.launches:,} replayed launches ({replays}) are found in "
                f"{fit.source}{where}{score}."
            )
        elif fit.nameless is not None:
            yield f"No replay fits {fit.source}: it is of another model, batch size or engine, or shows no launches."
            if fit.nameless:
                yield (
                    f"{fit.source} has {fit.nameless:,} captured launches that don't name their kernels, as CUDA "
                    "records them. Give an eager run of the same batch instead."
                )
    if found.unfitted and found.fits:
        replays = "1 replay fits" if found.unfitted == 1 else f"{found.unfitted:,} replays fit"
        yield f"{replays} nothing that was given."


def _replays(work: pl.DataFrame) -> Iterator[str]:
    left = work.filter(pl.col("is_replay") & ~pl.col("how").is_in(["graph_alignment", "graph_node", "node_creation"]))
    if left.height:
        yield (
            f"{left.height:,} launches{_share(left, work)} come from graph replays, whose kernels have no ops or "
            f"modules of their own. {_CAPTURE}"
        )


def _before(work: pl.DataFrame, form: str) -> Iterator[str]:
    before = work.filter(pl.col("how") == "launch_before_window")
    if before.height:
        yield (
            f"{before.height:,} launches{_share(before, work)} were queued before the profiling window. Wait for the "
            f"device ({_wait(form)}) before the profiler starts, or give it a warm-up step."
        )
    missing = work.filter(pl.col("how") == "call_missing")
    if missing.height:
        yield f"{missing.height:,} launches{_share(missing, work)} have lost their host calls."
    if (work["how"] == "no_call").all():
        how = "rocprofv3 --hip-trace" if is_of_rocprof(form) else "that of the CUDA or HIP runtime"
        yield f"No launch can be tied to a host call: record the host's side, too: {how}."


def _wait(form: str) -> str:
    return "jax.block_until_ready(result)" if is_of_jax(form) else "torch.cuda.synchronize()"


def _lacking(found: Attribution, by: By | None) -> Iterator[str]:
    advice = _advice(found.format)
    if by is not None:
        if not has_any(found, by):
            yield f"No {WORDS[by]} stand around the launches of this file. {advice[by]}"
        return
    ops, spans = has_any(found, "op"), has_any(found, "span")
    if not ops and not spans:
        yield f"No {WORDS['op']} stand around the launches of this file. {advice['op']}"
    if (ops or not spans) and not has_any(found, "module") and not has_any(found, "user-frame"):
        yield f"No modules or frames stand around the launches of this file. {advice['module']}"


def _advice(form: str) -> Mapping[By, str]:
    if is_of_rocprof(form):
        return _ROCPROF
    return _JAX if is_of_jax(form) else _NSYS if form.startswith("nsys") else _TORCH


def _share(some: pl.DataFrame, every: pl.DataFrame) -> str:
    part_ns, total_ns = (int(frame["dur_ns"].sum()) for frame in (some, every))
    return f" ({format_duration(part_ns)}, {format_share(part_ns / total_ns)} of the time)" if total_ns else ""
