"""Which metadata row serves the unsplit forward, from counts of four layers, each batch size captured once."""

import pytest

from inferometer.analyses.groups.counts.printed_rows import PrintedRow
from inferometer.analyses.groups.counts.varlen_batches import UnsplitSteps, find_unsplit

LAYERS = 4


def metadata(**steps: int) -> list[PrintedRow]:
    """Rows by warps (`w1`), with as many steps."""
    kernel = "void flash::prepare_varlen_num_blocks_kernel<{}, true>(int)"
    return [row(kernel.format(warps[1:]), LAYERS * n) for warps, n in steps.items()]


def heads(**steps: int) -> list[PrintedRow]:
    """Output heads by the N side of their tile (`n8`), with as many steps."""
    return [row(f"nvjet_tst_256x{tile[1:]}_64x6_2x1_v_bz_TNT", n) for tile, n in steps.items()]


def row(kernel: str, count: int) -> PrintedRow:
    return PrintedRow(kernel, count, 10 * count, None, None, None)


def test_the_one_tile_that_is_denser_holds_the_unsplit_steps() -> None:
    # Decode with batches of 8 to 64 in steps of 8, and one more step of up to 48 sequences.
    rows = heads(n8=1, n16=1, n24=1, n32=1, n40=1, n48=2, n56=1, n64=1)
    found = find_unsplit(metadata(w1=3, w2=5, w4=1), LAYERS, rows)
    assert found == UnsplitSteps(warps=2, tile=48, steps=1, layers=LAYERS)


@pytest.mark.parametrize(
    ("head", "unsplit", "why"),
    [
        (heads(n8=1, n16=1, n24=1, n32=1, n40=1, n48=1, n56=1, n64=1), LAYERS, "9 steps of metadata, 8 of heads"),
        (heads(n8=2, n16=1, n24=1, n32=1, n40=1, n48=1, n56=1, n64=1), LAYERS, "a dense beginning is normal"),
        (
            heads(n8=1, n16=1, n24=2, n32=1, n40=1, n48=1, n56=1, n64=1),
            LAYERS,
            "four steps of 1 warp, three of metadata",
        ),
        (heads(n8=1, n16=1, n24=1, n32=1, n40=1, n48=2, n56=1, n64=1), 1, "a quarter of a step"),
        ([], LAYERS, "no heads"),
    ],
)
def test_counts_that_do_not_fit_are_no_answer(head: list[PrintedRow], unsplit: int, why: str) -> None:
    assert find_unsplit(metadata(w1=3, w2=5, w4=1), unsplit, head) is None, why
