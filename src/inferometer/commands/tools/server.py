"""The protocol: lists the tools, answers calls in a thread, tells progress. Needs the SDK (extra `mcp`).

stdout carries the protocol alone: the SDK keeps it to itself and sends what others print to stderr.
"""

import sys
import time
import traceback
from typing import TYPE_CHECKING, Any

import click

from inferometer import __version__
from inferometer.commands.tools import listing
from inferometer.commands.tools.answers import SCHEMA
from inferometer.commands.tools.calls import Calls
from inferometer.commands.tools.offered import DATA_NOTE, offered
from inferometer.commands.tools.roots import Roots
from inferometer.errors import clean
from inferometer.failures import describe_failure

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from mcp.types import CallToolResult, Tool

_PAUSE_S = 0.25
_INSTRUCTIONS = f"""\
Inferometer reads what a profiler recorded of LLM inference (PyTorch, Nsight Systems, logs of engines) and says where \
the time of devices went. Begin with `files` and `summary`, then `findings`; `kernels`, `launches` and `timeline` go \
deeper; `compare` names the cause of a slower run. Times are in ns.

{DATA_NOTE}"""


def serve(roots: Roots, *, debug: bool) -> None:
    """Answer on stdin and stdout until stdin ends."""
    import anyio
    from mcp.server.stdio import stdio_server

    async def run() -> None:
        server = make_server(roots, debug=debug)
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())

    anyio.run(run)


def make_server(roots: Roots, *, debug: bool = False) -> "Server[Any]":
    """The server, for any transport."""
    import anyio
    from mcp.server.lowlevel import Server
    from mcp.types import ListToolsResult

    calls, one_at_a_time = Calls(roots), anyio.CapacityLimiter(1)

    async def list_tools(context: Any, params: Any) -> Any:
        return ListToolsResult(tools=_tools())

    async def call_tool(context: Any, params: Any) -> Any:
        def work() -> "CallToolResult":
            told = _Told(context.session.report_progress)
            return _result(calls, params.name, params.arguments or {}, told, debug=debug)

        return await anyio.to_thread.run_sync(work, limiter=one_at_a_time)

    return Server(
        "inferometer",
        version=__version__,
        instructions=_INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def _tools() -> "list[Tool]":
    from mcp.types import Tool, ToolAnnotations

    known = {name: (tool.description, tool.schema()) for name, tool in offered().items()}
    reads = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
    return [
        Tool(name=name, description=words, input_schema=schema, output_schema=dict(SCHEMA), annotations=reads)
        for name, (words, schema) in {listing.NAME: (listing.DESCRIPTION, listing.schema()), **known}.items()
    ]


def _result(calls: Calls, name: str, arguments: dict[str, Any], told: "_Told", *, debug: bool) -> "CallToolResult":
    """The answer, or what went wrong as the command line says it."""
    from mcp.types import CallToolResult, TextContent

    try:
        answer = calls.answer(name, arguments, told)
    except click.ClickException as error:
        return CallToolResult(content=[TextContent(text=clean(error.format_message()))], is_error=True)
    except BaseException as error:  # noqa: BLE001  a panic of Polars is no Exception
        if debug:
            traceback.print_exception(error, file=sys.stderr)
        return CallToolResult(content=[TextContent(text=describe_failure(error).text)], is_error=True)
    return CallToolResult(content=[TextContent(text=answer.text)], structured_content=answer.content)


class _Told:
    """Reports what was read to the client, a few times a second; the numbers grow over all files of a call."""

    def __init__(self, report: Any) -> None:
        self._report = report
        self._next = 0.0
        self._before = self._last = 0

    def __call__(self, done: int, total: int | None) -> None:
        import anyio

        done = done if total is None else min(done, total)  # readers count whole blocks
        if done < self._last:
            self._before += self._last
        self._last = done
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _PAUSE_S
        anyio.from_thread.run(self._report, self._before + done, None if total is None else self._before + total)
