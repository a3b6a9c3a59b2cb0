"""A `.ncu-rep` report, through `ncu --import` where that is installed: its raw page, in base units."""

from pathlib import Path
from typing import Final

from inferometer.formats.vendor_tool import VendorTool

_PAGE: Final = ("--csv", "--page", "raw", "--print-units", "base")
_NCU: Final = VendorTool("ncu", "Nsight Compute", "ncu --import", f"ncu --import {{}} {' '.join(_PAGE)} > ncu.csv")


def print_report(report: Path, name: str, folder: Path) -> Path:
    """What the `ncu` on PATH prints of `report`, as a file in `folder`.

    Raises:
        Unavailable: There is no `ncu`.
        FormatError: `ncu` could not read it.
    """
    printed = folder / "raw.csv"
    _NCU.print_to(printed, name, ["--import", str(report.absolute()), *_PAGE])
    return printed
