"""Where the control group of a process keeps its files, version 1 or 2.

Source: cgroups(7), /proc/PID/cgroup. A container often sees its own group as the root: where the path isn't there, the
groups above it are tried, the nearest first.
"""

from pathlib import PurePosixPath

from inferometer.record.counters.files import Files

_ROOT = "/sys/fs/cgroup"


def find_file(files: Files, process: int, controller: str, name: str) -> str | None:
    """The nearest file of that name: of version 1's `controller` where it is mounted, else of version 2."""
    try:
        lines = files.read_once(f"/proc/{process}/cgroup").splitlines()
    except OSError:
        return None
    parts = [line.split(":", 2) for line in lines]
    first = [(f"{_ROOT}/{part[1]}", part[2]) for part in parts if len(part) == 3 and controller in part[1].split(",")]
    first += [(f"{_ROOT}/{controller}", group) for _, group in first]
    second = [(_ROOT, part[2]) for part in parts if len(part) == 3 and part[:2] == ["0", ""]]
    for root, group in (*first, *second):
        found = _nearest(files, root, group, name)
        if found:
            return found
    return None


def _nearest(files: Files, root: str, group: str, name: str) -> str | None:
    place = PurePosixPath("/", group.lstrip("/"))
    for each in (place, *place.parents):
        path = f"{root}{each}".rstrip("/") + f"/{name}"
        try:
            files.read_once(path)
        except OSError:
            continue
        return path
    return None
