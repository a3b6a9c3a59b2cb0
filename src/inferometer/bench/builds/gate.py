"""What is wrong with what a compiler made: errors that stop a candidate, warnings that cost it time.

- `failed`: the candidate can't be called, or a kernel doesn't compile.
- `no-kernel`: nothing was launched, so there is nothing of the candidate's own to measure.
- `unlaunchable`: a block needs more shared memory, registers or threads than the architecture has. It compiles, and
  fails when it is launched.
- `no-matrix`: the operator multiplies matrices, and no kernel of a call has an instruction of the matrix units, whose
  peak is ten times that of the vector units and more. A warning only where memory is slower than the vector units, or
  where a call leaves products to PyTorch.
- `spills`: registers go to memory for want of room.
- `idle-schedulers`: fewer warps fit on a multiprocessor than it has schedulers, so some never issue anything.

An autotuner leaves out configurations that don't compile or fit, and slow ones. A fault that a sibling configuration
of the same kernel doesn't have is only reported (`info`).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from inferometer.bench.builds.limits import ARCHITECTURES, SCHEDULERS
from inferometer.bench.builds.record import ArchitectureBuild, FailedKernel, KernelBuild, gist
from inferometer.operators.work import Work

VECTOR_FLOPS_PER_BYTE = 8
"""Of products, up to which vector units keep up with memory on every architecture: the fp32 peak over the bandwidth is
9 to 10 of an A100 and a B200, 20 of an H100. A matrix times a vector has 1 in bf16, decoding with 8 heads per group
8."""

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")


@dataclass(frozen=True)
class BuildFinding:
    """One finding: `where` is the architecture and the kernel or call."""

    severity: Severity
    rule: str
    where: str
    found: str
    wanted: str

    def as_json(self) -> dict[str, Any]:
        """Plain data under the fields' names."""
        return asdict(self)


@dataclass(frozen=True)
class _Rule:
    """A fault of a single kernel: `found` is None where it hasn't got it."""

    name: str
    severity: Severity
    found: Callable[[KernelBuild], tuple[str, str] | None]


def check_builds(builds: Sequence[ArchitectureBuild], operator: str, works: Sequence[Work]) -> tuple[BuildFinding, ...]:
    """All findings, the gravest first, else in the order of the builds; `works` are those of the cases."""
    found = [finding for build in builds for finding in _check(build, operator, works)]
    return tuple(sorted(found, key=lambda finding: SEVERITIES.index(finding.severity)))


def _check(build: ArchitectureBuild, operator: str, works: Sequence[Work]) -> Iterable[BuildFinding]:
    if build.error is not None:
        yield BuildFinding("error", "failed", build.architecture, gist(build.error), "a call that ends")
    for failure in build.failed:
        yield _failure(failure, build)
    if not (build.kernels or build.failed or build.error):
        wanted = f"{operator} to launch a kernel of its own in Triton or CuTe-DSL"
        yield BuildFinding("error", "no-kernel", build.architecture, "no launch", wanted)
    for rule in _RULES:
        yield from _of_kernels(rule, build)
    if build.kernels and build.error is None and all(failure.tuned for failure in build.failed):
        yield from _products(build, works)  # else what multiplies may be among what isn't there


def _failure(failure: FailedKernel, build: ArchitectureBuild) -> BuildFinding:
    spared = failure.tuned and any(each.tuned and each.kernel == failure.kernel for each in build.kernels)
    where = f"{failure.architecture}: {failure.kernel}({failure.configuration})"
    return BuildFinding("info" if spared else "error", "failed", where, gist(failure.message), "a kernel that compiles")


def _of_kernels(rule: _Rule, build: ArchitectureBuild) -> Iterable[BuildFinding]:
    faults = {index: fault for index, each in enumerate(build.kernels) if (fault := rule.found(each)) is not None}
    sound = {each.kernel for index, each in enumerate(build.kernels) if each.tuned and index not in faults}
    for index, (found, wanted) in faults.items():
        kernel = build.kernels[index]
        spared = kernel.tuned and kernel.kernel in sound
        where = f"{build.architecture}: {kernel.label}"
        yield BuildFinding("info" if spared else rule.severity, rule.name, where, found, wanted)


def _unlaunchable(build: KernelBuild) -> tuple[str, str] | None:
    limits = ARCHITECTURES[build.architecture]
    if build.shared_bytes > limits.shared_block_bytes:
        found = f"{build.shared_bytes:,} bytes of shared memory a block"
        return found, f"at most {limits.shared_block_bytes:,}: smaller tiles or fewer stages"
    if build.occupancy is not None and not build.occupancy.blocks:
        found = f"{build.num_warps} warps a block of {build.registers} registers a lane: no room for one block"
        return found, f"less of: {build.occupancy.limited_by}"
    return None


def _spills(build: KernelBuild) -> tuple[str, str] | None:
    if not build.spills:
        return None
    wanted = "none: smaller tiles, more warps or fewer stages"
    if build.spilled_registers:
        return f"{build.spilled_registers} of its registers spilled, {build.registers} used", wanted
    spilled = f"{build.spill_store_bytes:,} bytes of spill stores and {build.spill_load_bytes:,} of loads a lane"
    return f"{spilled}, {build.registers} registers used", wanted


def _idle_schedulers(build: KernelBuild) -> tuple[str, str] | None:
    occupancy = build.occupancy
    if occupancy is None or not occupancy.blocks or occupancy.warps >= SCHEDULERS:
        return None
    found = f"{occupancy.warps} warps at once on a multiprocessor, limited by {occupancy.limited_by}"
    return found, f"at least {SCHEDULERS}, one for each scheduler"


_RULES = (
    _Rule("unlaunchable", "error", _unlaunchable),
    _Rule("spills", "warning", _spills),
    _Rule("idle-schedulers", "warning", _idle_schedulers),
)


def _products(build: ArchitectureBuild, works: Sequence[Work]) -> Iterable[BuildFinding]:
    """Calls with products whose kernels have no matrix instruction. Declared kernels may be of any call."""
    without: dict[Severity, list[int]] = {}
    for case, work in enumerate(works):
        own = [each for each in build.kernels if case in each.cases or not each.cases]
        if own and work.products and not any(each.matrix for each in own):
            spared = build.torch_products or _is_slow_in_memory(work)
            without.setdefault("warning" if spared else "error", []).append(case)
    for severity, cases in without.items():
        where = f"{build.architecture}: case {', '.join(map(str, cases))}"
        found = f"no matrix instruction in {', '.join(sorted({each.kernel for each in build.kernels}))}"
        if build.torch_products:
            found += f"; PyTorch's {', '.join(build.torch_products)} multiplies"
        flops = max(works[case].matrix_flops / max(works[case].moved_bytes, 1) for case in cases)
        wanted = f"one: its products are {flops:.3g} FLOPs a byte, in {works[cases[0]].dtype}"
        yield BuildFinding(severity, "no-matrix", where, found, wanted)


def _is_slow_in_memory(work: Work) -> bool:
    return work.matrix_flops <= VECTOR_FLOPS_PER_BYTE * work.moved_bytes
