"""The server: listens on one address, looks for new runs every two seconds, and ends in order on Ctrl-C.

Source of the rules for connections: `loopback.py`. Needs the extra `serve`: Starlette and Uvicorn.
"""

import asyncio
import signal
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inferometer.errors import InputError
from inferometer.loopback import HOST, MOST_CONNECTIONS, MOST_HEADER_BYTES, UNKNOWN_S, Door, new_token
from inferometer.reports.serve.jobs import Jobs, usual_memory_bytes
from inferometer.reports.serve.kept import Kept
from inferometer.reports.serve.readers import Readers
from inferometer.reports.serve.runs import Library
from inferometer.reports.serve.state import Hub, State
from inferometer.reports.serve.uploads import Uploads

if TYPE_CHECKING:
    from uvicorn import Server

_LOOK_S = 2.0
_END_S = 0.2
_IDLE_S = 30  # that a connection stays open between requests
_TIDY_EVERY = 300  # looks


@dataclass(frozen=True)
class Serving:
    """What to serve, and to whom.

    Attributes:
        paths: Files, stores and folders.
        host: The address to listen on.
        port: 0: a free one.
        token: What the address of the app begins with; None: a new one.
        keep: The folder of uploads and tags; None: nothing is written.
        memory_bytes: For one job; None: a share of the machine's.
        is_limited: Whether readers have the limits of the command line.
        cache: Where results of jobs are kept; None: the user's folder of caches.
    """

    paths: tuple[str, ...]
    host: str = HOST
    port: int = 0
    token: str | None = None
    keep: Path | None = None
    memory_bytes: int | None = None
    is_limited: bool = True
    cache: Path | None = None


def serve(serving: Serving, on_ready: Callable[[str, int], None]) -> None:
    """Serve until Ctrl-C or SIGTERM.

    Args:
        serving: What, and to whom.
        on_ready: Called with the app's address and the number of runs.

    Raises:
        InputError: A path isn't there, the port is taken, the folder can't be written to.
    """
    uploads = None if serving.keep is None else Uploads(serving.keep)
    memory_bytes = serving.memory_bytes or usual_memory_bytes()
    readers = Readers(memory_bytes)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        paths = serving.paths if uploads is None else (*serving.paths, str(uploads.folder))
        kept = Kept(serving.cache)
        library = Library(paths, is_one=readers.is_one, without=kept.folder)
        with _listening(serving.host, serving.port) as listener, suppress(KeyboardInterrupt):
            door = Door(serving.token or new_token(), listener.getsockname()[1], serving.host)
            asyncio.run(
                _serve(listener, door, _Parts(library, kept, readers, uploads, memory_bytes, serving), on_ready)
            )
    finally:
        readers.close()
        signal.signal(signal.SIGTERM, before)


@dataclass(frozen=True)
class _Parts:
    library: Library
    kept: Kept
    readers: Readers
    uploads: Uploads | None
    memory_bytes: int
    serving: Serving


async def _serve(listener: socket.socket, door: Door, parts: _Parts, on_ready: Callable[[str, int], None]) -> None:
    import uvicorn
    from starlette.applications import Starlette

    from inferometer.reports.serve.routes import make_routes
    from inferometer.reports.serve.security import Guard

    state = State(
        library=parts.library,
        kept=parts.kept,
        jobs=Jobs(memory_bytes=parts.memory_bytes),
        readers=parts.readers,
        hub=Hub(),
        uploads=parts.uploads,
        is_limited=parts.serving.is_limited,
    )
    state.jobs.on_change = state.heard
    page_token = new_token()

    @asynccontextmanager
    async def living(app: Starlette) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(_watch(state)), asyncio.create_task(_close_streams(server, state.hub))]
        on_ready(_address(door), len(state.library.runs))
        yield
        for task in tasks:
            task.cancel()
        await state.jobs.close()

    app = Starlette(routes=make_routes(state, page_token), lifespan=living)
    server = uvicorn.Server(
        uvicorn.Config(
            Guard(app, door, page_token),
            http=_protocol(),
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            limit_concurrency=MOST_CONNECTIONS,
            backlog=MOST_CONNECTIONS,
            h11_max_incomplete_event_size=MOST_HEADER_BYTES,
            timeout_keep_alive=_IDLE_S,
            timeout_graceful_shutdown=2,
        )
    )
    await server.serve(sockets=[listener])


async def _watch(state: State) -> None:
    """Look for what came, went or changed; read what is new."""
    looks = 0
    while True:
        if looks % _TIDY_EVERY == 0:
            await asyncio.to_thread(state.kept.make_room, state.jobs.in_use())
        looks += 1
        state.read_ahead()
        await asyncio.sleep(_LOOK_S)
        if await asyncio.to_thread(state.library.scan):
            state.hub.send({"runs": True})


async def _close_streams(server: "Server", hub: Hub) -> None:
    """Streams of events never end by themselves: the server would wait for them."""
    while not server.should_exit:
        await asyncio.sleep(_END_S)
    hub.close()


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=MOST_CONNECTIONS)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # asyncio leaves it off: an answer waits 40 ms
        return listener
    except OSError as error:
        why = (error.strerror or str(error)).partition(" (while")[0]
        raise InputError(f"{host}, port {port}: {why}", hint="Name another --port, or none for a free one.") from error


def _address(door: Door) -> str:
    host = {"0.0.0.0": socket.gethostname(), "::": socket.gethostname()}.get(door.host, door.host)
    return f"http://{f'[{host}]' if ':' in host else host}:{door.port}/{door.token}/"


def _protocol() -> Any:
    """Uvicorn's, which waits for a first request only so long."""
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Impatient(H11Protocol):  # type: ignore[misc]  # Any: the extra is not looked into
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._patience = self.loop.call_later(UNKNOWN_S, self._leave)

        def connection_lost(self, exc: Exception | None) -> None:
            self._patience.cancel()
            super().connection_lost(exc)

        def _leave(self) -> None:
            if self.cycle is None:
                self.transport.close()

    return Impatient
