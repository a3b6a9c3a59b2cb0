"""The folder that `jax.profiler` writes: `plugins/profile/DATE/HOST.xplane.pb`, one per host, with JSON next to each.

The JSON is made from the `.pb`, and cut at a million events: it is never read where the `.pb` is there.
"""

from pathlib import Path

from inferometer.errors import InputError, printable

SUFFIX = ".xplane.pb"
BESIDE = (".trace.json.gz", ".trace.json")
_BELOW = ("plugins", "profile")


def find_profile(folder: Path) -> Path | None:
    """What to open where the user named `folder`: a file where there is one alone, else the folder of all hosts.

    None for a folder that `jax.profiler` didn't write.

    Raises:
        InputError: It holds several recordings.
    """
    dates = _dates(folder)
    if len(dates) > 1:
        names = ", ".join(printable(date.name) for date in dates[:4])
        raise InputError(
            f"{printable(str(folder))}: expected one recording, found {len(dates)}: {names}",
            hint=f"Name one, such as {printable(str(dates[-1]))}.",
        )
    inner = dates[0] if dates else folder
    files = _profiles(inner)
    if len(files) == 1:
        return files[0]
    return inner if files and dates else None


def note_beside(path: Path | None) -> str | None:
    """What to say of a JSON next to the file; None where there is none."""
    if path is None or not path.name.endswith(SUFFIX):
        return None
    stem = path.name.removesuffix(SUFFIX)
    found = next((name for ending in BESIDE if path.with_name(name := f"{stem}{ending}").is_file()), None)
    return found and f"{printable(found)} was not read: it is made from this file, and cut at a million events."


def _dates(folder: Path) -> list[Path]:
    """The folders of recordings below; none where `folder` is one itself."""
    for top in (folder.joinpath(*_BELOW), folder.joinpath(_BELOW[1])):
        if top.is_dir():
            return sorted(date for date in top.iterdir() if date.is_dir() and _profiles(date))
    return []


def _profiles(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob(f"*{SUFFIX}") if path.is_file())
