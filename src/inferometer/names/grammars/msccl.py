"""RCCL's collectives by MSCCL: `mscclKernel_<operator>_<type>_<protocol>_<whether it is one step>`.

Source: RCCL's public generator. The collective is in a schedule that is loaded at run time, not in the name.
"""

from inferometer.names.dtypes import TYPES
from inferometer.names.kernel_name import Evidence, KernelName
from inferometer.names.reading import Grammar, ParsedName
from inferometer.names.short_names import short
from inferometer.patterns import late_re

_NAME = late_re(r"mscclKernel_(?P<op>[A-Za-z]+)_+(?P<type>\w+?)_(?P<protocol>LL128|LL|Simple)(?:_\w+)?")


def read(name: ParsedName) -> KernelName | None:
    """A collective of RCCL that follows a schedule."""
    match = _NAME.fullmatch(name.function) if name.function.startswith("mscclKernel_") else None
    if match is None:
        return None
    dtype = TYPES.get(match["type"]) or TYPES.get(match["type"].removeprefix("rccl_").removeprefix("hip_") + "_t")
    return KernelName(
        library="rccl",
        family="collective",
        dtype=dtype,
        flags=(match["op"], match["protocol"]),
        short_name=short("msccl", match["op"].lower(), dtype, match["protocol"]),
        evidence=Evidence("MSCCL kernel", "D"),
    )


GRAMMAR = Grammar("msccl", "form", read, spaces="", letters="m")
