"""Runs made by hand, as an executor would give them: no device, and times that a test can add up."""

import random
from collections.abc import Callable

from inferometer.engines.webgpu.model_spec import ModelSpec
from inferometer.engines.webgpu.profile.profiled_run import ProfiledRun
from inferometer.engines.webgpu.program import (
    Amount,
    Binding,
    Buffer,
    Dispatch,
    Extent,
    Grid,
    Pass,
    Phase,
    Pipeline,
    Program,
)
from inferometer.engines.webgpu.run.executor import (
    Adapter,
    LoadedModel,
    LoadPhase,
    PlannedStep,
    Request,
    Selection,
    Submission,
    Timing,
)

HIDDEN, FFN, VOCAB, HEADS, HEAD_DIM = 64, 256, 512, 4, 16
Dur = Callable[[Dispatch, Pass, random.Random], int | None]

ADAPTER = Adapter(
    name="llvmpipe (LLVM 15.0.6, 256 bits)",
    backend="Vulkan",
    kind="CPU",
    features=frozenset({"subgroups", "timestamp-query"}),
    most_binding_bytes=128 << 20,
    most_buffer_bytes=2 << 30,
    most_storage_buffers=32,
    most_workgroup_threads=1024,
)


def small_program(layers: int = 2, name: str = "toy") -> Program:
    """A decoder of few dispatches: norm, product and attention a layer, and a head."""
    pipelines = (
        Pipeline("gather", {"K": HIDDEN}),
        Pipeline("rms_norm", {"D": HIDDEN}),
        Pipeline("linear_workgroup", {"K": HIDDEN, "N": FFN}),
        Pipeline("matmul_tile", {"K": HIDDEN, "N": FFN}),
        Pipeline("attention_split", {"CHUNK": 16}),
        Pipeline("linear_thread", {"K": HIDDEN, "N": VOCAB}),
        Pipeline("argmax_final", {"GROUPS": 2}),
    )

    def body(product: int) -> tuple[Dispatch, ...]:
        found = [dispatch("gather", pipeline=0, read=Amount(per_token=2 * HIDDEN), grid=(Extent("tokens"), 1, 1))]
        for layer in range(layers):
            weight = Amount(fixed=2 * HIDDEN * FFN, per_token=4 * HIDDEN)
            flops = Amount(per_token=2 * HIDDEN * FFN)
            op = "matmul" if product == 3 else "linear"
            found += [
                dispatch("rms_norm", layer=layer, pipeline=1, read=Amount(per_token=4 * HIDDEN)),
                dispatch(op, role="ffn_up", layer=layer, pipeline=product, read=weight, flops=flops, grid=(4, 1, 1)),
                dispatch(
                    "attention",
                    layer=layer,
                    pipeline=4,
                    read=Amount(per_kv=8 * HEADS * HEAD_DIM),
                    grid=(HEADS, Extent("kv", per=16), 1),
                ),
            ]
        return tuple(found)

    head = (
        dispatch("linear", role="lm_head", pipeline=5, read=Amount(fixed=2 * HIDDEN * VOCAB), grid=(8, 1, 1)),
        dispatch("sample", pipeline=6, read=Amount(fixed=16)),
    )
    phases: dict[Phase, tuple[Dispatch, ...]] = {"prefill": body(3), "decode": body(2), "head": head}
    return Program(
        name=name,
        kernel_path="toy-portable",
        capacity=256,
        most_rows=64,
        vocabulary=VOCAB,
        buffers=(
            Buffer("embed", 65_536, "weights", 65_536),
            Buffer("layers", 131_072, "weights", 131_000),
            Buffer("k", 40_960, "kv_cache", 40_960),
            Buffer("x", 4_096, "activations", 4_000),
            Buffer("angles", 512, "tables", 512),
            Buffer("state", 32, "state", 32),
        ),
        pipelines=pipelines,
        phases=phases,
    )


def dispatch(
    op: str,
    *,
    role: str | None = None,
    layer: int | None = None,
    pipeline: int,
    read: Amount,
    flops: Amount | None = None,
    grid: Grid = (1, 1, 1),
) -> Dispatch:
    """One launch, of which only the work counts here."""
    return Dispatch(
        op=op,
        role=role,
        layer=layer,
        pipeline=pipeline,
        bindings=(Binding("state", 0, 32),),
        grid=grid,
        flops=flops or Amount(),
        bytes_read=read,
        bytes_written=Amount(per_token=4),
        shapes="[T,64]",
    )


def usual_dur(one: Dispatch, passed: Pass, chance: random.Random) -> int:
    """Ns: a launch's, and more where the kernel does more."""
    grown = one.bytes_read.at(passed.tokens, passed.position) // 10
    return 20_000 + grown + chance.randrange(2_000)


def submit(
    program: Program,
    passes: tuple[Pass, ...],
    *,
    start_ns: int,
    tokens: tuple[int, ...] = (),
    timing: Timing = "timestamps",
    dur: Dur = usual_dur,
    chance: random.Random | None = None,
) -> Submission:
    """One submit: 1 ms recorded, 0.2 ms handed over, 3 μs between dispatches, 0.1 ms read. `dur` None: untimed."""
    chance = chance or random.Random(1)
    at, begins, ends = start_ns + 1_200_000, [], []
    for one in passes:
        for each in one.dispatches(program):
            ns = dur(each, one, chance)
            begins.append(None if ns is None else at)
            ends.append(None if ns is None else at + ns)
            at += 3_000 + (ns or 10_000)
    timed = timing == "timestamps"
    return Submission(
        passes=passes,
        timing=timing,
        start_ns=start_ns,
        record_ns=1_000_000,
        submit_ns=200_000,
        wait_ns=at - start_ns - 1_200_000 + 50_000,
        read_ns=100_000,
        tokens=tokens or tuple(range(10, 10 + sum("head" in one.phases for one in passes))),
        begin_ns=tuple(begins) if timed else (),
        end_ns=tuple(ends) if timed else (),
        untimed=sum(begin is None for begin in begins) if timed else 0,
        clock="aligned" if timed else "none",
    )


def answer(
    program: Program,
    *,
    prompt: int = 9,
    rows: int = 64,
    new_tokens: int = 12,
    batch: int = 4,
    timing: Timing = "timestamps",
    dur: Dur = usual_dur,
    start_ns: int = 5_000_000_000,
    between_ns: int = 700_000,
    cached: int = 0,
    seed: int = 1,
) -> list[Submission]:
    """All submits of an answer: the prompt in pieces of `rows`, then decode steps, `batch` a submit."""
    chance = random.Random(seed)
    found: list[Submission] = []

    def run(passes: tuple[Pass, ...]) -> None:
        at = found[-1].start_ns + found[-1].wall_ns + between_ns if found else start_ns
        found.append(submit(program, passes, start_ns=at, timing=timing, dur=dur, chance=chance))

    for first in range(0, prompt, rows):
        piece = min(rows, prompt - first)
        phases: tuple[Phase, ...] = ("prefill", "head") if first + piece == prompt else ("prefill",)
        run((Pass(phases, piece, cached + first),))
    position, left = cached + prompt, new_tokens - 1
    while left:
        n = min(batch, left)
        run(tuple(Pass(("decode", "head"), 1, position + i) for i in range(n)))
        position, left = position + n, left - n
    return found


SPEC = ModelSpec(
    name="toy",
    family="llama",
    vocab=VOCAB,
    hidden=HIDDEN,
    layers=2,
    heads=HEADS,
    kv_heads=HEADS,
    head_dim=HEAD_DIM,
    intermediate=FFN,
    eps=1e-6,
    norm_offset=0.0,
    sandwich=False,
    head_norms=False,
    qkv_bias=False,
    o_bias=False,
    activation="silu",
    embed_scale=1.0,
    attention_scale=0.25,
    tied=True,
    windows=(None, None),
    rope_of=(0, 0),
    inverse_frequencies=((1.0,) * (HEAD_DIM // 2),),
    context_limit=None,
)


def run_of(program: Program, submissions: list[Submission], **changes: object) -> ProfiledRun:
    """The run that these submissions are of, loaded in a second and asked a millisecond before the first."""
    asked_ns = submissions[0].start_ns - 1_000_000
    steps = [(phase, one) for phase, every in program.phases.items() for one in every]
    kernels = {(phase, one.op, one.role): program.pipelines[one.pipeline].kernel for phase, one in steps}
    loaded = LoadedModel(
        program=program,
        contents={},
        selections=[
            Selection(phase, op, role, kernel, {"THREADS": 64}, "the first that the adapter can run")
            for (phase, op, role), kernel in kernels.items()
        ],
        planned=[PlannedStep(phase, op, role, kernel, 1) for (phase, op, role), kernel in kernels.items()],
        parameters=98_304,
    )
    values: dict[str, object] = {
        "loaded": loaded,
        "adapter": ADAPTER,
        "request": Request(prompt=(1, 2, 3), new_tokens=1_000),
        "submissions": submissions,
        "load": (
            LoadPhase("embedding", asked_ns - 1_000_000_000, 300_000_000, 65_536),
            LoadPhase("layers", asked_ns - 700_000_000, 500_000_000, 131_072),
            LoadPhase("pipelines", asked_ns - 200_000_000, 150_000_000),
        ),
        "started_ns": asked_ns,
        "spec": SPEC,
        "prompt": "Summarize this.",
        "tokenizer": ("tokenizer.json", VOCAB),
    }
    return ProfiledRun(**{**values, **changes})  # type: ignore[arg-type]
