"""A `.nsys-rep` (or older `.qdrep`) report, through `nsys export` where that is installed."""

from pathlib import Path
from typing import Final

from inferometer.formats.vendor_tool import VendorTool

_NSYS: Final = VendorTool("nsys", "Nsight Systems", "nsys export", "nsys export --type sqlite {}")


def export_report(report: Path, name: str, folder: Path) -> Path:
    """Export `report` to an `.sqlite` file in `folder`, with the `nsys` on PATH.

    Raises:
        Unavailable: There is no `nsys`.
        FormatError: `nsys` could not export it.
    """
    target = folder / "export.sqlite"
    how = ["export", "--type", "sqlite", "--force-overwrite", "true", "--output", str(target)]
    _NSYS.export(target, name, [*how, str(report.absolute())])
    return target
