"""What runs a program, opened by its name: NumPy, an adapter of this machine, or a browser."""

from pathlib import Path
from typing import TYPE_CHECKING

from inferometer.engines.webgpu.run.executor import Adapter, Executor, OnText, Runner
from inferometer.engines.webgpu.run.local_runner import LocalRunner
from inferometer.errors import InferometerError

if TYPE_CHECKING:
    from inferometer.engines.webgpu.browser.session import BrowserSession

NUMPY, WGPU, BROWSER, BROWSER_URL = "numpy", "wgpu", "browser", "browser-url"


def open_local(on: str, on_text: OnText) -> Runner:
    """The runner for `numpy`, `wgpu` (the best adapter) or `wgpu:TEXT` (one whose name has this in it).

    Raises:
        InferometerError: `on` is none of these.
        Unavailable: There is no such adapter.
    """
    kind, _, name = on.partition(":")
    if on == NUMPY:
        from inferometer.engines.webgpu.run.numpy_executor import NumpyExecutor

        return LocalRunner(NumpyExecutor())
    if kind == WGPU:
        from inferometer.engines.webgpu.run.wgpu_executor import open_wgpu

        on_text("an adapter")
        return LocalRunner(open_wgpu(name or None))
    raise InferometerError(f"{on}: expected numpy, wgpu, wgpu:NAME, browser or browser-url")


def open_browser_named(on: str, source: str, cache: Path | None, on_text: OnText) -> "BrowserSession | None":
    """The browser for `browser` or `browser-url`; None for the names of other runners.

    Args:
        on: The name.
        source: What distinguishes the model's weights from others', for the browser's cache.
        cache: Where a headless browser keeps weights; None: nowhere.
        on_text: Called with what is being made, and each line of the browser's log.

    Raises:
        Unavailable: There is no browser.
    """
    if on not in (BROWSER, BROWSER_URL):
        return None
    from inferometer.engines.webgpu.browser.opening import open_browser

    on_text("a browser")
    return open_browser(on_text=on_text, url_only=on == BROWSER_URL, cache=cache, source=source)


def open_like(runner: LocalRunner) -> Executor:
    """A second executor on a runner's adapter.

    Raises:
        Unavailable: The adapter can't be opened again.
    """
    from inferometer.engines.webgpu.run.numpy_executor import NumpyExecutor

    if isinstance(runner.executor, NumpyExecutor):
        return NumpyExecutor()
    from inferometer.engines.webgpu.run.wgpu_executor import open_wgpu

    return open_wgpu(runner.adapter.name)


def describe_adapter(adapter: Adapter) -> str:
    """An adapter's name with its backend and kind, as far as these add something."""
    more = [word for word in (adapter.backend, adapter.kind) if word not in ("unknown", adapter.name)]
    return f"{adapter.name} ({', '.join(more)})" if more else adapter.name
