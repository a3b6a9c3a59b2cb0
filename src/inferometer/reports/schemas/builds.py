"""`bench --stage builds`: the machine code of a candidate's kernels."""

from typing import Annotated, Any

from inferometer.reports.schemas.fields import Document, Part, says


class Occupancy(Part):
    """How many blocks fit onto a multiprocessor."""

    blocks: Annotated[int, says("Blocks at once.")]
    warps: Annotated[int, says("Warps of these.")]
    most_warps: Annotated[int, says("Warps that there is room for.")]
    limited_by: Annotated[str, says("What there isn't more of: `registers`, `shared`, `warps`, `blocks`.")]
    share: Annotated[float, says("The one of the other, 0 to 1.")]


class KernelBuild(Part):
    """One kernel as it was compiled for one architecture; null is what that vendor doesn't say."""

    kernel: Annotated[str, says("The function's name.")]
    architecture: Annotated[str, says("Such as `sm_90`, `gfx942`.")]
    arguments: Annotated[dict[str, str], says("By name: the type, or `=` and the value that was compiled in.")]
    cases: Annotated[list[int], says("Which of the calls launched it, from 0.")]
    grid: Annotated[list[int] | None, says("Of its first launch.")]
    tuned: Annotated[bool, says("Whether it is one of several configurations of an autotuner.")]
    triton: Annotated[str, says("Version of Triton, or name and version of what compiled it.")]
    num_warps: Annotated[int, says("Warps of a block; 0 where only run time tells.")]
    num_stages: Annotated[int, says("Stages that were asked for.")]
    num_ctas: Annotated[int, says("Blocks of a cluster.")]
    registers: Annotated[int | None, says("Registers of a lane.")]
    scalar_registers: Annotated[int | None, says("Scalar registers of a wavefront; AMD.")]
    stack_bytes: Annotated[int | None, says("Stack of a lane, in device memory.")]
    spill_store_bytes: Annotated[int | None, says("Bytes that spills store, of a lane; NVIDIA.")]
    spill_load_bytes: Annotated[int | None, says("Bytes that spills load, of a lane; NVIDIA.")]
    spilled_registers: Annotated[int | None, says("Vector registers that were spilled; AMD.")]
    spilled_scalar_registers: Annotated[int | None, says("Scalar registers that were spilled; AMD.")]
    static_shared_bytes: Annotated[int | None, says("Shared memory of a block, compiled in.")]
    dynamic_shared_bytes: Annotated[int, says("Shared memory of a block, asked for at launch.")]
    tensor_memory_columns: Annotated[int, says("Columns of tensor memory of a block.")]
    occupancy: Occupancy | None
    instructions: Annotated[int, says("Instructions of the machine code, each counted once.")]
    matrix: Annotated[dict[str, int], says("Instructions for matrix units, by name.")]
    loads: Annotated[dict[str, int], says("Instructions that load from memory, by name.")]
    shared_bytes: Annotated[int, says("Shared memory of a block.")]


class FailedKernel(Part):
    """A kernel that doesn't compile."""

    kernel: Annotated[str, says("The function's name.")]
    architecture: Annotated[str, says("For which it was compiled.")]
    configuration: Annotated[str, says("What it was launched with.")]
    case: Annotated[int | None, says("Which call launched it, from 0.")]
    tuned: Annotated[bool, says("Whether it is one of several configurations of an autotuner.")]
    message: Annotated[str, says("The compiler's.")]


class ArchitectureBuild(Part):
    """All that came of one architecture."""

    architecture: Annotated[str, says("Such as `sm_90`, `gfx942`.")]
    error: Annotated[str | None, says("Why the candidate couldn't be called to its end.")]
    triton: Annotated[str | None, says("Version of Triton.")]
    torch: Annotated[str | None, says("Version of PyTorch.")]
    torch_products: Annotated[list[str], says("Functions of PyTorch that it had matrices multiplied by.")]
    kernels: list[KernelBuild]
    failed: list[FailedKernel]


class BuildFinding(Part):
    """What speaks against the machine code."""

    severity: Annotated[str, says("`error`, `warning` or `info`.")]
    rule: Annotated[str, says("The rule.")]
    where: Annotated[str, says("The architecture and the kernel or call.")]
    found: Annotated[str, says("What was found. Its words may change.")]
    wanted: Annotated[str, says("What was expected. Its words may change.")]


class Builds(Document):
    """A candidate's kernels on every architecture that was asked for."""

    candidate: Annotated[str, says("The candidate.")]
    operator: Annotated[str, says("The operator.")]
    cases: Annotated[list[dict[str, Any]], says("Arguments of each call.")]
    passed: Annotated[bool, says("Whether no finding is an error.")]
    findings: Annotated[list[BuildFinding], says("The gravest first.")]
    architectures: list[ArchitectureBuild]


DOCUMENT = Builds
