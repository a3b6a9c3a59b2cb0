"""Reads what compilers print: ptxas' log, disassembled SASS, AMD's assembly.

Sources: logs of ptxas 12.9 and 13.1 (`-v`), listings of `nvdisasm -c` of CUDA 12.9, assembly of LLVM 21 for gfx942
and gfx950, all as Triton 3.7 has them; SASS' names are in the CUDA binary utilities' instruction set reference.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_USED = re.compile(r"Used (\d+) registers")
_STATIC_SHARED = re.compile(r"Used .*?(\d+) bytes smem")
_FRAME = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_SASS = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P[T0-9]+\s+)?([A-Z][A-Z0-9_]*)", re.MULTILINE)
_SASS_LOAD = re.compile(r"LD|LDG|LDGSTS|LDS|LDSM|LDL|LDTM|UTMALDG|UBLKCP")
_AMD = re.compile(r"^\t([a-z][a-z0-9_]+)([^\n;]*)", re.MULTILINE)
_AMD_LOAD = re.compile(r"(global|buffer|flat|scratch)_load|ds_read")
_AMD_MATRIX = ("v_mfma_", "v_smfmac_")


@dataclass(frozen=True)
class Resources:
    """What a kernel takes, as its compiler says; None: it doesn't say."""

    registers: int | None = None
    scalar_registers: int | None = None
    stack_bytes: int | None = None
    spill_store_bytes: int | None = None
    spill_load_bytes: int | None = None
    spilled_registers: int | None = None
    spilled_scalar_registers: int | None = None
    static_shared_bytes: int | None = None


@dataclass(frozen=True)
class Instructions:
    """How many there are in the code, of all and of those of interest by kind."""

    total: int
    matrix: Mapping[str, int]
    loads: Mapping[str, int]


def read_ptxas_log(log: str) -> Resources:
    """Resources of a kernel and the functions that it calls: frames and spills of all add up."""
    used, frames = _USED.search(log), [tuple(map(int, frame)) for frame in _FRAME.findall(log)]
    if used is None or not frames:
        return Resources()
    shared = _STATIC_SHARED.search(log)
    stack, stores, loads = map(sum, zip(*frames, strict=True))
    return Resources(
        registers=int(used[1]),
        stack_bytes=stack,
        spill_store_bytes=stores,
        spill_load_bytes=loads,
        static_shared_bytes=int(shared[1]) if shared else 0,
    )


def read_amd_metadata(assembly: str) -> Resources:
    """The numbers at the end of the assembly, which the driver reads too."""

    def number(name: str) -> int | None:
        found = re.search(rf"^ +(?:- )?\.{name}: +(\d+)$", assembly, re.MULTILINE)
        return int(found[1]) if found else None

    return Resources(
        registers=number("vgpr_count"),
        scalar_registers=number("sgpr_count"),
        stack_bytes=number("private_segment_fixed_size"),
        spilled_registers=number("vgpr_spill_count"),
        spilled_scalar_registers=number("sgpr_spill_count"),
        static_shared_bytes=number("group_segment_fixed_size"),
    )


def count_sass(listing: str) -> Instructions:
    """Names without their modifiers; every one that ends in MMA multiplies matrices."""
    names = _SASS.findall(listing)
    return Instructions(
        total=sum(name != "NOP" for name in names),
        matrix=_counted(name for name in names if name.endswith("MMA")),
        loads=_counted(name for name in names if _SASS_LOAD.fullmatch(name)),
    )


def count_amd(assembly: str) -> Instructions:
    """Matrix instructions whole, as their shape is their name; loads without their width.

    Loads that go straight to shared memory have `lds` behind, as an operand or in their name
    (`global_load_lds_dwordx4`). Scalar ones are left out: they fetch arguments.
    """
    found = _AMD.findall(assembly)
    loads = (
        f"{kind[0]} lds" if "_lds_" in name or re.search(r"\blds\b", operands) else kind[0]
        for name, operands in found
        if (kind := _AMD_LOAD.match(name))
    )
    return Instructions(
        total=sum(name != "s_nop" for name, _ in found),
        matrix=_counted(name for name, _ in found if name.startswith(_AMD_MATRIX)),
        loads=_counted(loads),
    )


def _counted(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))
