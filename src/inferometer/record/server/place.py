"""Where a server's traces will lie, and whether they can be seen from here.

SGLang is given a folder with each request. vLLM was started with its own, which is read from its process where that is
on this machine. A server on another machine writes there: its files can be joined only through a shared folder.
"""

import os
import socket
import time
from dataclasses import dataclass
from pathlib import Path

from inferometer.errors import InputError
from inferometer.record.server.engines import Server
from inferometer.record.server.http import Http
from inferometer.record.server.started_with import find_profiler_folder


@dataclass(frozen=True)
class TraceFolder:
    """`folder`: as seen from here; `asked`: what SGLang is given; `is_own`: made by us for this recording alone.

    `copy_hint`: how to get the files where they can't be seen.
    """

    folder: Path | None
    asked: str | None = None
    is_own: bool = False
    copy_hint: str = ""


def find_place(server: Server, http: Http, out: Path, traces: Path | None) -> TraceFolder:
    """The place of the traces of a recording that becomes `out`; the folder of the user's, where there is one.

    Raises:
        InputError: That folder isn't there, and the server won't make it.
    """
    host, is_here = http.host, is_this_machine(http.host)
    if server.engine == "vllm":
        return _of_vllm(server, http, traces, is_here=is_here)
    if traces is not None:
        if traces.exists() and not traces.is_dir():
            raise InputError(f"{traces}: is no folder", hint="Name a folder with --traces.")
        return TraceFolder(
            traces, str(traces.absolute()), copy_hint=_look_in(str(traces), host, server, is_here=is_here)
        )
    if is_here:
        folder = out.absolute().parent / f".{out.name}.{os.getpid()}.traces"
        return TraceFolder(
            folder, str(folder), is_own=True, copy_hint=_look_in(str(folder), host, server, is_here=True)
        )
    asked = f"/tmp/inferometer-{time.time_ns()}"  # on the server's machine, made by the server
    return TraceFolder(None, asked, copy_hint=f"Copy the traces: scp -r {host}:{asked} traces, then open that folder.")


def is_this_machine(host: str) -> bool:
    """Whether an address of `host` is one of this machine's: only these can be bound to."""
    try:
        found = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return False
    for family, kind, protocol, _, address in found:
        try:
            with socket.socket(family, kind, protocol) as probe:
                probe.bind(address)
                return True
        except OSError:
            continue
    return False


def _of_vllm(server: Server, http: Http, traces: Path | None, *, is_here: bool) -> TraceFolder:
    host = http.host
    if traces is not None:
        if not traces.is_dir():
            raise InputError(f"{traces}: no such folder", hint="Name the folder that vLLM was started with.")
        return TraceFolder(traces, copy_hint=_look_in(str(traces), host, server, is_here=is_here))
    known = _own_folder(server, http.port) if is_here else None
    if known is not None:
        return TraceFolder(known, copy_hint=_look_in(str(known), host, server, is_here=True))
    where = server.traces or "the folder that vLLM was started with (torch_profiler_dir, VLLM_TORCH_PROFILER_DIR)"
    return TraceFolder(
        None,
        copy_hint=f"The traces (*.pt.trace.json.gz) are on {host} in {where}. Name that folder with --traces DIR, "
        "or copy the files and open their folder.",
    )


def _own_folder(server: Server, port: int) -> Path | None:
    """The folder of a vLLM on this machine: as it says itself, if that is seen from here, or as it was started.

    The latter needn't be there: vLLM makes it as it first writes.
    """
    reported = Path(server.traces) if server.traces else None
    return reported if reported is not None and reported.is_dir() else find_profiler_folder(port)


def _look_in(folder: str, host: str, server: Server, *, is_here: bool) -> str:
    if is_here:
        return (
            f"Look into {folder} as the server sees it: in a container it is another folder "
            "(docker cp CONTAINER:DIR traces); may the server write there?"
        )
    return f"If {folder} is no shared folder: scp -r {host}:{folder} traces. The log of {server.name} says more."
