"""A process for jobs: what to do comes on stdin, what it is at and what came of it goes to stdout, a line of JSON each.

It does one job after another, and ends when its input ends: then the server is gone. Memory has a limit of the kernel's
(`RLIMIT_AS`), so that a hostile file ends this process and nothing else.
"""

import os
import queue
import sys
import threading
from contextlib import suppress
from typing import Any

import msgspec

from inferometer.reports.serve.work.progress import Progress, ProgressReporter


def main() -> None:
    """Do what stdin asks for, until it ends."""
    replies = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what a library prints is no reply
    _limit(int(sys.argv[1]))
    asked: queue.Queue[bytes] = queue.Queue()
    threading.Thread(target=_listen, args=(asked,), daemon=True).start()

    def reply(line: dict[str, Any]) -> None:
        replies.write(msgspec.json.encode(line) + b"\n")

    import inferometer.reports.serve.work.kinds  # noqa: F401 - before there is something to do

    while True:
        request = msgspec.json.decode(asked.get())
        reply(_outcome(request["kind"], request["arguments"], ProgressReporter(reply)))


def _outcome(kind: str, arguments: dict[str, Any], progress: Progress) -> dict[str, Any]:
    from inferometer.failures import describe_failure

    try:
        from inferometer.reports.serve.work.kinds import KINDS

        return {"result": KINDS[kind](progress=progress, **arguments)}
    except BaseException as error:  # noqa: BLE001 - the edge of the process; a panic of Polars is no Exception
        failure = describe_failure(error)
        return {"error": failure.text, "exit_code": failure.exit_code}


def _listen(asked: "queue.Queue[bytes]") -> None:
    """Hand on what comes; when nothing comes any more, end whatever is at work."""
    with os.fdopen(0, "rb", closefd=False) as lines:
        for line in lines:
            asked.put(line)
    os._exit(1)


def _limit(memory_bytes: int) -> None:
    if sys.platform == "win32":
        return
    import resource

    for limit, most in ((resource.RLIMIT_AS, memory_bytes), (resource.RLIMIT_CORE, 0)):
        with suppress(OSError, ValueError):  # a system that has a lower one, or none
            resource.setrlimit(limit, (most, most))
