"""Which kernel is the fastest for each matrix on an adapter: measured inside the model, kept in a file for later runs.

All candidates of a kernel path run in the first layers of the model itself, on its own weights, in the profiled form,
one after the other in one program: each twice, then the path's first and the `FINALISTS` best of each shape some times
more, and only these times decide. What replaces the path's first choice must be faster by more than `LEAST_GAIN`, and
three quarters of its times below the median of the first.
What is found is kept by `tuning_file`.

Where the path has a fused form of decode, whole steps of all layers in both forms, with the best kernels each, are
compared by the same rule, by wall time in one compute pass: what fusing saves lies between launches.

Left out: everything without a matrix but attention of one row, which is measured at one context; adapters without
timestamps.
"""

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from inferometer.backends.wgsl.source import read_kernel
from inferometer.backends.wgsl.weight_formats import F16
from inferometer.engines.webgpu.model_spec import Checkpoint, ModelSpec
from inferometer.engines.webgpu.plan.joined import Part, join_programs
from inferometer.engines.webgpu.plan.kernel_path import FUSED_OPS, PHASES, KernelPath
from inferometer.engines.webgpu.plan.path_files import find_path
from inferometer.engines.webgpu.plan.planner import plan_model
from inferometer.engines.webgpu.plan.selection import (
    FUSED,
    SEPARATE,
    Candidate,
    Tuned,
    TuneKey,
    form_key,
    is_tuned,
    present_steps,
    rows_of,
    situation_of,
    tunable,
)
from inferometer.engines.webgpu.program import Dispatch, Pass, Phase, Program
from inferometer.engines.webgpu.run.executor import Adapter, Executor, LoadedModel, OnText, Request, Submission
from inferometer.engines.webgpu.run.request_words import sampling_words, state_words
from inferometer.engines.webgpu.tune.first_layers import FirstLayers
from inferometer.engines.webgpu.tune.tuned_file import (
    LEAST_GAIN,
    Choice,
    Measured,
    check_findings_place,
    chooser_of,
    key_of,
    read_findings,
    tuning_file,
    write_findings,
)
from inferometer.errors import Unavailable

FINALISTS = 3
ROUNDS = 3
_DECODED = 8  # steps of a round, one submit for each; fewer where a step has many layers
_LEAST_DECODED = 2
_MOST_ROWS = 64
_POSITION = 512
"""Where decode steps are measured: attention's best variant depends on it."""
_BATCH = 4  # whole steps of a submit

_Timed = dict[tuple[TuneKey, int], list[float]]  # of a key's i-th candidate


def tune(
    checkpoint: Checkpoint,
    executor: Executor,
    *,
    path: KernelPath | None = None,
    file: Path | None = None,
    rounds: int = ROUNDS,
    on_text: OnText = lambda what: None,
) -> Sequence[Choice]:
    """Measure every candidate, and keep what was found. The executor is closed afterwards.

    Args:
        checkpoint: The model; of its layers as many run as `LEAST_BYTES` ask for, and all where the path has a fused
            form.
        executor: On the adapter that is asked about; it must have timestamps.
        path: None: that of the model's family.
        file: None: `tuning_file`.
        rounds: Times that the turn of each finalist comes.
        on_text: Called with what is being measured.

    Raises:
        Unavailable: The adapter has no timestamps.
        InputError: The file is there and isn't ours.
    """
    if "timestamp-query" not in executor.adapter.features:
        raise Unavailable(
            f"{executor.adapter.name}: tuning wants the feature timestamp-query, which this adapter lacks",
            hint="Leave --tune out: the kernel path's first choices run.",
        )
    target = tuning_file() if file is None else file
    check_findings_place(target)  # before the work, so that a wrong file is reported first
    kept = read_findings(target)
    layers = FirstLayers(checkpoint)
    path = find_path(layers.spec.family) if path is None else path
    wanted = dict(tunable(path, layers.spec, executor.adapter, most_rows=_MOST_ROWS))
    try:
        measured = _measure(layers, executor, path, wanted, rounds, on_text)
        choices = [_choose(key, candidates, measured[key]) for key, candidates in wanted.items()]
        if path.fused is not None:
            choices.append(_compare_forms(checkpoint, executor, path, chooser_of(choices), rounds, on_text))
    finally:
        executor.close()
    keys = {(each.op, each.n, each.k, each.is_decode) for each in choices}
    name = key_of(executor.adapter)
    others = [each for each in kept.adapters.get(name, []) if (each.op, each.n, each.k, each.is_decode) not in keys]
    kept.adapters[name] = [*others, *choices]
    write_findings(target, kept)
    return choices


_Wanted = Mapping[TuneKey, tuple[Candidate, ...]]
"""The candidates of each shape, the kernel path's first choice in front."""


def _measure(
    layers: Checkpoint, executor: Executor, path: KernelPath, wanted: _Wanted, rounds: int, on_text: OnText
) -> dict[TuneKey, list[Measured]]:
    """Times of each key's first candidate, then of its finalists."""
    on_text(f"tuning: {sum(map(len, wanted.values()))} candidates for {len(wanted)} shapes")
    rough = _run(layers, executor, path, wanted, _LEAST_DECODED, backwards=False)
    steps = max(_LEAST_DECODED + 1, min(_DECODED, 2 * _DECODED // layers.spec.layers))
    finals: dict[TuneKey, tuple[Candidate, ...]] = {}
    for key, candidates in wanted.items():
        order = sorted(range(1, len(candidates)), key=lambda i: _median(rough.get((key, i))))
        finals[key] = (candidates[0], *(candidates[i] for i in order[:FINALISTS]))
    times: _Timed = {}
    for number in range(rounds):
        on_text(f"tuning: the best of them, round {number + 1} of {rounds}")
        for key_of_times, found in _run(layers, executor, path, finals, steps, backwards=number % 2 == 1).items():
            times.setdefault(key_of_times, []).extend(found)
    return {
        key: [_measured(candidate, times.get((key, i), [])) for i, candidate in enumerate(candidates)]
        for key, candidates in finals.items()
    }


@dataclass(frozen=True)
class _Tag:
    """Which time a dispatch counts to: several of one tag (cut or split matrices) are one time."""

    key: TuneKey
    candidate: int
    role: str | None
    layer: int | None


def _run(
    layers: Checkpoint, executor: Executor, path: KernelPath, wanted: _Wanted, steps: int, *, backwards: bool
) -> _Timed:
    """Times of all candidates of all keys in a prefill pass and some decode steps; `backwards`: the last ones first."""
    program, tags = _load(layers, executor, path, wanted, backwards)
    executor.write("sampling", sampling_words(Request((0,), 1)))
    executor.write("tokens", np.arange(program.capacity, dtype=np.uint32) % program.vocabulary)
    decode = [Pass(("decode", "head"), 1, _POSITION + step) for step in range(steps)]
    measured = [Pass(("prefill",), program.most_rows, 0), *decode]
    times: _Timed = {}
    warm_up = [Pass(("prefill",), 1, 0), decode[0]]
    for number, each in enumerate([*warm_up, *measured]):
        executor.write("state", state_words(each.position, each.tokens))
        submission = executor.submit([each], "timestamps")
        if number >= len(warm_up):
            own = [tag for phase in each.phases for tag in tags[phase]]
            for tag, ns in _sum_by_tag(own, submission).items():
                times.setdefault((tag.key, tag.candidate), []).append(ns)
    return times


def _sum_by_tag(tags: Sequence[_Tag | None], submission: Submission) -> dict[_Tag, float]:
    """Time of the dispatches of each tag; without tags of which one dispatch has no time."""
    sums: dict[_Tag, float] = {}
    untimed = set()
    for tag, begin, end in zip(tags, submission.begin_ns, submission.end_ns, strict=True):
        if tag is None:
            continue
        if begin is None or end is None:
            untimed.add(tag)
        else:
            sums[tag] = sums.get(tag, 0.0) + (end - begin)
    return {tag: ns for tag, ns in sums.items() if tag not in untimed}


def _load(
    layers: Checkpoint, executor: Executor, path: KernelPath, wanted: _Wanted, backwards: bool
) -> tuple[Program, dict[Phase, list[_Tag | None]]]:
    """Load one program with the dispatches of all candidates; each dispatch's tag, None where it isn't timed.

    First comes a whole step, untimed, so that the first candidate finds caches as the others do. Then come the first
    candidates of all keys, the second ones, and so on, each with only the dispatches that it makes. A whole step with
    its sampling ends the program.
    """
    turns = range(max((len(candidates) for candidates in wanted.values()), default=0))
    whole = _plan(layers, executor.adapter, path, _trying(wanted, 0, SEPARATE))
    places = _places(path, SEPARATE, layers.spec, executor.adapter)
    warm_up: dict[Phase, Sequence[Dispatch]] = {
        phase: [each for each in dispatches if (phase, each.op, each.role) in places or phase != "head"]
        for phase, dispatches in whole.program.phases.items()
    }
    parts: list[Part] = [(whole, warm_up)]
    tags: dict[Phase, list[_Tag | None]] = {phase: [None] * len(warm_up[phase]) for phase in PHASES}
    for i in reversed(turns) if backwards else turns:
        for form in (SEPARATE,) if path.fused is None else (SEPARATE, FUSED):
            keys = {key for key, candidates in wanted.items() if i < len(candidates)}
            loaded = _plan(layers, executor.adapter, path, _trying(wanted, i, form))
            places = {
                place: key
                for place, key in _places(path, form, layers.spec, executor.adapter).items()
                if key in keys and (form == SEPARATE or key.op in FUSED_OPS)
            }
            own: dict[Phase, list[Dispatch]] = {phase: [] for phase in PHASES}
            for phase, dispatches in loaded.program.phases.items():
                for each in dispatches:
                    if (key := places.get((phase, each.op, each.role))) is not None:
                        own[phase].append(each)
                        tags[phase].append(_Tag(key, i, each.role, each.layer))
            parts.append((loaded, own))
    parts.append((whole, whole.program.phases))
    for phase, dispatches in whole.program.phases.items():
        tags[phase] += [None] * len(dispatches)
    program, contents = join_programs(parts)
    executor.load(program, contents, lambda what: None)
    return program, tags


def _plan(checkpoint: Checkpoint, adapter: Adapter, path: KernelPath, tuned: Tuned) -> LoadedModel:
    capacity = max(_MOST_ROWS, _POSITION + max(_DECODED, _BATCH))
    return plan_model(
        checkpoint,
        adapter,
        capacity=capacity,
        most_rows=_MOST_ROWS,
        path=path,
        tuned=tuned,
        greedy=True,
        weights=F16,
    )


def _trying(wanted: _Wanted, i: int, form: Candidate) -> Tuned:
    """The i-th candidate of each key; of one with fewer, its last."""

    def tuned(key: TuneKey, candidates: Sequence[Candidate]) -> tuple[Candidate, str] | None:
        tried = (form,) if SEPARATE in candidates else wanted.get(key)
        return None if tried is None else (tried[min(i, len(tried) - 1)], "tried")

    return tuned


def _places(
    path: KernelPath, form: Candidate, spec: ModelSpec, adapter: Adapter
) -> dict[tuple[Phase, str, str | None], TuneKey]:
    """The key of each operator and role of each phase, those that finish another included."""
    phases = dict(path.phases)
    if form == FUSED and path.fused is not None:
        phases["decode"] = path.fused
    found = {}
    for phase, steps in phases.items():
        for step in present_steps(steps, spec):
            key = situation_of(step, spec, adapter, rows_of(phase, _MOST_ROWS)).key
            if not is_tuned(key):
                continue
            ops = {step.op, *(read_kernel(each.then).op for each in path.candidates(step) if each.then is not None)}
            found.update({(phase, op, step.role): key for op in ops})
    return found


def _compare_forms(
    checkpoint: Checkpoint,
    executor: Executor,
    path: KernelPath,
    tuned: Tuned | None,
    rounds: int,
    on_text: OnText,
) -> Choice:
    """Whole decode steps of all layers, in both forms in turns. The fused one stands where prefill would."""
    on_text("tuning: decode in separate and in fused steps")

    def in_form(form: Candidate) -> Tuned:
        def chosen(key: TuneKey, candidates: Sequence[Candidate]) -> tuple[Candidate, str] | None:
            if SEPARATE in candidates:
                return form, "tried"
            return None if tuned is None else tuned(key, candidates)

        return chosen

    separate, fused = (_plan(checkpoint, executor.adapter, path, in_form(form)) for form in (SEPARATE, FUSED))
    phases = separate.program.phases
    program, contents = join_programs(
        [
            (separate, {"decode": phases["decode"], "head": phases["head"]}),
            (fused, {"prefill": fused.program.phases["decode"]}),
        ]
    )
    executor.load(program, contents, lambda what: None)
    executor.write("sampling", sampling_words(Request((0,), 1)))
    forms: dict[Phase, Candidate] = {"decode": SEPARATE, "prefill": FUSED}
    times: dict[Phase, list[float]] = {phase: [] for phase in forms}
    for number in range(1 + rounds * _DECODED // 2):
        for phase in forms if number % 2 else reversed(forms):
            passes = [Pass((phase, "head"), 1, _POSITION + step) for step in range(_BATCH)]
            executor.write("state", state_words(passes[0].position, passes[0].tokens))
            submission = executor.submit(passes, "single_pass")
            if number:  # the first one warms up
                times[phase].append(submission.wall_ns / _BATCH)
    measured = [_measured(form, times[phase]) for phase, form in forms.items()]
    kernels = {each.kernel for each in program.pipelines}
    return _choose(form_key(checkpoint.spec), (SEPARATE, FUSED), measured, kernels)


def _measured(candidate: Candidate, times: Sequence[float]) -> Measured:
    upper = float(np.quantile(times, 0.75)) if times else math.inf
    return Measured(candidate.kernel, dict(candidate.constants), _median(times), upper, len(times))


def _median(times: Sequence[float] | None) -> float:
    return float(np.median(times)) if times else math.inf


def _choose(
    key: TuneKey, candidates: Sequence[Candidate], measured: Sequence[Measured], kernels: Iterable[str] | None = None
) -> Choice:
    """`kernels`: whose text the finding depends on; None: the candidates'."""
    best = min(range(len(measured)), key=lambda i: measured[i].median_ns)
    first = measured[0].median_ns
    if measured[best].median_ns > (1 - LEAST_GAIN) * first or measured[best].upper_ns > first:
        best = 0
    names = {candidate.kernel for candidate in candidates} if kernels is None else kernels
    return Choice(
        op=key.op,
        n=key.n,
        k=key.k,
        is_decode=key.rows == 1,
        best=best,
        tried=len(candidates),
        measured=tuple(measured),
        digests={name: read_kernel(name).digest for name in sorted(names)},
        date=time.strftime("%Y-%m-%d"),
    )
