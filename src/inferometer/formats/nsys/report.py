"""A `.nsys-rep` (or older `.qdrep`) report, through `nsys export` where that is installed."""

import shutil
import subprocess
from pathlib import Path

from inferometer.errors import FormatError, Unavailable

_LONGEST_MESSAGE = 300


def export_report(report: Path, name: str, folder: Path) -> Path:
    """Export `report` to an `.sqlite` file in `folder`, with the `nsys` on PATH.

    Raises:
        Unavailable: There is no `nsys`.
        FormatError: `nsys` could not export it.
    """
    nsys = shutil.which("nsys")
    if nsys is None:
        raise Unavailable(
            f"{name}: only nsys can read a report, and it is not on PATH",
            hint=f"Install Nsight Systems, or run where it is installed: nsys export --type sqlite {name}",
        )
    target = folder / "export.sqlite"
    command = [nsys, "export", "--type", "sqlite", "--force-overwrite", "true", "--output", str(target)]
    try:
        done = subprocess.run(
            [*command, str(report.absolute())], check=False, stdin=subprocess.DEVNULL, capture_output=True
        )
    except OSError as error:
        raise FormatError(f"{name}: {nsys} can't be run: {error.strerror}") from error
    if done.returncode or not target.is_file():
        text = (done.stderr or done.stdout).decode("utf-8", "replace").strip() or "it says nothing"
        raise FormatError(
            f"{name}: nsys export ended with {done.returncode}: {' '.join(text.split())[-_LONGEST_MESSAGE:]}",
            hint="A report is read only by an nsys of its own version or a later one.",
        )
    return target
