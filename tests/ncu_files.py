"""What Nsight Compute printed of a program on an H200, read by a reader that shares nothing with ours."""

import csv
import gzip
import io
import re
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


def in_locale(page: Path, point: str = ".", thousands: str = ",") -> str:
    """A page of the sample as it would be printed where numbers have this decimal mark and this one for thousands."""
    with gzip.open(page, "rt") as file:
        found = [[_in_locale(cell, point, thousands) for cell in row] for row in csv.reader(file)]
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(found)
    return text.getvalue()


def _in_locale(cell: str, point: str, thousands: str) -> str:
    if not re.fullmatch(r"-?[\d,]+\.\d+|-?\d{1,3}(,\d{3})+", cell) or re.fullmatch(r"\d\.\d", cell):
        return cell  # 9.0 is the version of the device's instructions
    whole, dot, decimals = cell.partition(".")
    return whole.replace(",", thousands) + (point if dot else "") + decimals
