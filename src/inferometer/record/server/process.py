"""Which process of this machine is the server: who listens at its port. Its counters then differ from others' load.

Source: /proc/net/tcp, /proc/net/tcp6 and /proc/PID of Linux (proc(5)). Not seen are processes of other users and of
other containers; a proxy that passes a port on (docker-proxy, ssh) is none of an engine, so nobody is found there.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_LISTENS = "0A"
_ENGINES = (b"python", b"vllm", b"sglang")  # what the command of an engine holds
_PROC = Path("/proc")


def find_processes(port: int, proc: Path = _PROC) -> tuple[int, ...]:
    """Ids of the processes that listen at `port`, without those whose parent is among them; none where not seen."""
    sockets = {f"socket:[{inode}]" for inode in _listeners(port, proc)}
    if not sockets:
        return ()
    found = sorted(process for process in _processes(proc) if _holds(proc / str(process) / "fd", sockets))
    outermost = tuple(process for process in found if _parent(proc, process) not in found)
    return outermost if all(_is_engine(proc, process) for process in outermost) else ()


def _listeners(port: int, proc: Path) -> Iterator[str]:
    """Inodes of the sockets that listen at `port`, of any address."""
    for name in ("tcp", "tcp6"):
        try:
            lines = (proc / "net" / name).read_text("ascii", "replace").splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if len(fields) > 9 and fields[3] == _LISTENS and fields[1].endswith(f":{port:04X}"):
                yield fields[9]


def _processes(proc: Path) -> Iterator[int]:
    with suppress(OSError):
        yield from (int(path.name) for path in proc.iterdir() if path.name.isdecimal())


def _holds(folder: Path, sockets: set[str]) -> bool:
    """Whether a process has one of `sockets` open; False where that can't be seen."""
    with suppress(OSError):
        return any(_link(path) in sockets for path in folder.iterdir())
    return False


def _link(path: Path) -> str | None:
    try:
        return str(path.readlink())
    except OSError:
        return None


def _parent(proc: Path, process: int) -> int | None:
    try:
        text = (proc / str(process) / "stat").read_text("utf-8", "replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()  # the name before may hold anything
    return int(fields[1]) if len(fields) > 1 and fields[1].isdecimal() else None


def _is_engine(proc: Path, process: int) -> bool:
    try:
        command = (proc / str(process) / "cmdline").read_bytes().lower()
    except OSError:
        return False
    return any(word in command for word in _ENGINES)
