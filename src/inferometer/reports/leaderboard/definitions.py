"""What every column means, and every flag."""

from inferometer.analyses.operators.bounds import FLAGS
from inferometer.analyses.operators.published import DEPLOYED
from inferometer.reports.page.blocks import Block, Facts, Words

_COLUMNS = (
    (
        "Importance",
        "Share of GPU time over all production profiles, normalised: the shares of all operators are 100 %.",
    ),
    (
        "As published",
        "The same before that: profiles overlap, so these add up to more than 100 %.",
    ),
    ("Profiles", "Production profiles that the operator was seen in."),
    ("Dtype", "The type whose peak the published bound is made with."),
    (
        "Regime",
        "By the median FLOP/B of the shapes: C (compute) above 10, I (indexing) below 0.01, M (memory) between.",
    ),
    ("FLOP/B", "Arithmetic intensity: published FLOPs over published bytes; in the roofline, ours."),
    ("W, Q", "Published FLOPs of an eager reference, and bytes of all its inputs and outputs."),
    ("T_SOL", "The published bound: max(W / matrix peak, Q / bandwidth)."),
    (
        "T_Prod, Deployed",
        f"Time of a deployed kernel, published for {DEPLOYED} only. Benchmarked by itself, not in production.",
    ),
    ("Dependency", "The longest chain of instructions that each need the one before, at the clock."),
    ("Matrix", "Products, padded to what one instruction of the matrix units multiplies, at their peak."),
    ("Vector", "Other arithmetic at the fp32 peak of the vector units."),
    ("Special", "exp, rsqrt and the like on the special-function units, with help from the vector units."),
    ("Memory", "The bytes that must move, once each, at the bandwidth of device memory."),
    ("From L2", "The same at the bandwidth of the L2 cache, where all fits: warm, a call may be as quick as that."),
    ("Bound, Bound by", "The greatest of the five, and which one that is. From L2 is none of them."),
    (
        "Launch",
        "What a launch that does nothing takes, as far as is known: a reference next to the bounds, and none of them.",
    ),
    ("Below launch", "Shapes whose bound is below that: their time may be mostly the launch, and a low S says so."),
    ("S", "Bound over deployed time. Above 100 % something isn't as assumed."),
    ("Published S", "T_SOL over T_Prod."),
    ("Median", "The upper median: of two middle values the greater."),
    ("Odd", "Flags, explained below."),
)
_SOURCES = (
    "A device's values are from a datasheet, measured, or derived from others; the table of each device says which, "
    "and where from. A bound that lacks its peak isn't given and doesn't count."
)


def build_definitions() -> Block:
    """Columns, then flags."""
    flags = [(flag, f"{words[0].upper()}{words[1:]}.") for flag, words in FLAGS.items()]
    return Block("definitions", "Definitions", [Facts(_COLUMNS), Words(_SOURCES), Facts(flags)])
