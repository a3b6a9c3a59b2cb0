"""Opens a page with a device in a browser: a Chromium that is started, or the user's own."""

import zlib
from pathlib import Path

from inferometer.backends.wgsl.source import read_kernel
from inferometer.engines.webgpu.browser.chromium import Chromium
from inferometer.engines.webgpu.browser.server import PageServer
from inferometer.engines.webgpu.browser.session import BrowserSession
from inferometer.engines.webgpu.run.executor import OnText
from inferometer.engines.webgpu.run.limits import Sources
from inferometer.errors import InputError

ADAPTER_S = 45.0
OWN_BROWSER_S = 600.0
_FIRST_PORT, _PORTS = 20_000, 10_000  # below those that systems give out by themselves


def open_browser(
    *,
    on_text: OnText,
    url_only: bool = False,
    port: int | None = None,
    cache: Path | None = None,
    source: str = "",
    timeout_s: float | None = None,
    sources: Sources = read_kernel,
) -> BrowserSession:
    """A page that has a device, in a Chromium of ours or in the user's own browser.

    Args:
        on_text: Gets a line for the user at a time, those of the page's log among them.
        url_only: Say the address and wait for the user's browser, instead of starting one.
        port: Where the page is served. None: one that is the same for the same `cache`, because browsers keep files by
            address and port; a free one where that is taken, and then nothing is kept.
        cache: Folder where Chromium keeps its files, so that a later session finds the weights. None: nothing is kept;
            with `url_only` the user's browser keeps them.
        source: What the weights are of: a folder with times of its files, a seed. A part of their name in the cache.
        timeout_s: Most until the page says which device it has; None: 45 s, of the user's own browser 10 minutes.
        sources: Finds a kernel's file.

    Raises:
        InputError: The port is taken.
        Unavailable: No browser, one that ended at once, or one without a device; the message says which.
    """
    keeps = cache is not None or url_only
    server, stable = _serve(port, cache)
    if keeps and not stable:
        keeps = False
        on_text(f"[browser] port {_stable_port(cache)} is taken: on port {server.port}, kept weights are not found")
    chromium = None
    try:
        if url_only:
            on_text(f"[browser] open this page in a browser with WebGPU: {server.url}")
        else:
            profile = cache / f"chromium-{server.port}" if cache is not None and keeps else None
            chromium = Chromium(f"{server.url}#ours", profile=profile)
        limit_s = timeout_s if timeout_s is not None else OWN_BROWSER_S if url_only else ADAPTER_S
        return BrowserSession(
            server,
            chromium,
            on_text=on_text,
            source=source,
            keeps=keeps,
            adapter_s=limit_s,
            sources=sources,
        )
    except BaseException:
        server.close()
        if chromium is not None:
            chromium.close()
        raise


def _serve(port: int | None, cache: Path | None) -> tuple[PageServer, bool]:
    """The server, and whether it is where the next session's will be."""
    if port is not None:
        return PageServer(port), port != 0
    try:
        return PageServer(_stable_port(cache)), True
    except InputError:
        return PageServer(), False


def _stable_port(cache: Path | None) -> int:
    return _FIRST_PORT + zlib.crc32(str(cache.resolve() if cache else "").encode()) % _PORTS
