"""What Nsight Compute printed of a program on an H200, read by a reader that shares nothing with ours."""

import csv
import gzip
from pathlib import Path

SAMPLES = Path(__file__).parents[1] / "samples" / "h200"
RAW, DETAILS = (SAMPLES / f"ncu_{page}.csv.gz" for page in ("raw", "details"))


def printed(kernel: str = "") -> list[dict[str, float]]:
    """The numbers of each launch as the raw page prints them, in its units, of kernels with this text in their name."""
    with gzip.open(RAW, "rt") as file:
        names, _, *launches = csv.reader(file)
    return [dict(_numbers(names, row)) for row in launches if kernel in row[names.index("Kernel Name")]]


def _numbers(names: list[str], row: list[str]) -> list[tuple[str, float]]:
    found = []
    for name, text in zip(names, row, strict=True):
        try:
            found.append((name, float(text.replace(",", ""))))
        except ValueError:
            continue
    return found
