"""Hard cases that all norms of rows share: a root of a sum of squares that may be 0, overflow, or be NaN."""

from math import inf, nan

from inferometer.operators.hard_cases import NORM_RANGE, HardCase, enlarged, nan_may_fill_rows, shrunk, spoiled, zeroed


def norm_cases(x: str, *added: str) -> tuple[HardCase, ...]:
    """Of the input `x`, to which `added` is added first, if any.

    The squares of fp16 overflow above 255 unless they are float32's; those of bf16 and fp32 can't but do so far up.
    """
    both = (x, *added)
    return (
        HardCase("zeros", "rows of zeros", "zeros: eps keeps the root from 0", zeroed(*both)),
        HardCase(
            "large numbers",
            "large numbers",
            "what smaller ones would give: squares are summed in float32",
            enlarged(*both, room=4.0, most=NORM_RANGE),
        ),
        HardCase(
            "tiny numbers", "tiny numbers", "next to eps nothing is left of their squares", shrunk(*both, fp16=2.0**-12)
        ),
        HardCase("NaN", "NaN in one number", "NaN in all of its row and in no other", spoiled(nan, x)),
        HardCase(
            "infinity",
            "infinity in one number",
            "NaN there, 0 or NaN in the rest of its row",
            spoiled(inf, x),
            left_open=nan_may_fill_rows,
        ),
    )
