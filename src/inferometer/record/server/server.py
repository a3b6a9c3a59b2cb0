"""`inferometer record --server URL`: the traces of a running vLLM or SGLang, and counters next to them, as one store.

The server's own profiler is started and stopped over HTTP. Meanwhile counters of this machine and metrics of the engine
are sampled into a journal, which is a store at any time: what fails later leaves that. Then the trace files of all
ranks are collected and joined with it. Nothing but the given address is talked to.

Not done: files of a server elsewhere are not fetched, and counters are of this machine, also if the server is not.
"""

import os
from pathlib import Path

from inferometer.errors import InputError
from inferometer.record.server.engines import find_server
from inferometer.record.server.http import Http
from inferometer.record.server.place import find_place
from inferometer.record.server.profile import Waits
from inferometer.record.server.recording import OnProgress, ServerOptions, ServerRecording
from inferometer.record.server.session import Session

API_KEY = "INFEROMETER_API_KEY"


def record_server(
    url: str,
    out: Path,
    options: ServerOptions,
    on_progress: OnProgress,
    *,
    api_key: str | None = None,
    waits: Waits | None = None,
) -> ServerRecording:
    """Profile the server at `url` for a time, for some steps, or until Ctrl-C, into the store `out`.

    Args:
        url: `http://HOST:PORT`.
        out: The store to make.
        options: What to record.
        on_progress: Called with what goes on, a line at a time.
        api_key: Sent to the server, never shown. None: what the environment's INFEROMETER_API_KEY says, if anything.
        waits: How long to wait for what.

    Raises:
        InputError: No such server, or it can't be profiled; then nothing is written.
        NoAnswer: Nothing answers at `url`.
    """
    from inferometer.trace.store_writer import StoreFolder

    waits = waits or Waits()
    http = Http(url, api_key or os.environ.get(API_KEY) or None)
    StoreFolder(out, force=options.force)  # refuses, before the server is touched, what can't be written
    server = find_server(http, waits.answer_s)
    if options.steps is not None and server.engine == "vllm":
        raise InputError(
            "--steps: vLLM's profiler is stopped by time",
            hint="Use --seconds, or start vLLM with max_iterations in its --profiler-config.",
        )
    place = find_place(server, http, out, options.traces)
    session = Session(http, server, place, waits, options, on_progress)
    try:
        if place.is_own and place.folder:
            place.folder.mkdir(exist_ok=True)
        return session.record(out)
    finally:
        session.clean()
