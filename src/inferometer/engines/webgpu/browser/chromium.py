"""Chromium or Chrome as a process of ours: found, started without a window, and ended with all of its children."""

import atexit
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from inferometer.errors import InputError, Unavailable

VARIABLE = "CHROMIUM"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge", "microsoft-edge")
_MAC = tuple(
    Path(f"/Applications/{name}.app/Contents/MacOS/{name}")
    for name in ("Google Chrome", "Chromium", "Microsoft Edge", "Google Chrome Canary")
)
_WINDOWS = (r"Google\Chrome\Application\chrome.exe", r"Microsoft\Edge\Application\msedge.exe")
_WINDOWS_ROOTS = ("PROGRAMFILES", "PROGRAMFILES(X86)", "LOCALAPPDATA")
FLAGS = (
    *("--headless=new", "--enable-unsafe-webgpu", "--disable-quic", "--disable-background-networking"),
    *("--no-first-run", "--no-default-browser-check", "--disable-component-update", "--disable-sync"),
    *("--disable-dev-shm-usage", "--disable-extensions", "--mute-audio", "--password-store=basic"),
    *("--disable-background-timer-throttling", "--disable-renderer-backgrounding"),
)
"""`--enable-unsafe-webgpu` also gives device times that aren't rounded against spying."""
_GPU_NODES = ("/dev/nvidia0", "/dev/kfd", "/dev/dxg")
_END_S = 5.0
_LAST_LINES = 8


def find_chromium() -> str:
    """The program: `$CHROMIUM`, one of the usual names on PATH, or where macOS and Windows have it.

    Raises:
        InputError: `$CHROMIUM` names none.
        Unavailable: There is none.
    """
    if named := os.environ.get(VARIABLE):
        if found := shutil.which(named):
            return found
        raise InputError(f"${VARIABLE}: expected a program, found {named}", hint="Unset it to search the usual places.")
    for name in NAMES:
        if found := shutil.which(name):
            return found
    roots = [Path(os.environ[each]) for each in _WINDOWS_ROOTS if each in os.environ]
    places = [*_MAC, *(root / each for root in roots for each in _WINDOWS)]
    if found := next((str(place) for place in places if place.is_file()), None):
        return found
    raise Unavailable(
        "no Chromium or Chrome was found",
        hint=f"Install one (Debian: apt-get install chromium), name it in ${VARIABLE}, "
        "or open the page in a browser of yours: --browser-url",
    )


def choose_flags() -> tuple[str, ...]:
    """The flags for this machine.

    Linux without a GPU: the adapter on the CPU is named, or there is none. With one, Vulkan is asked for; that doesn't
    take the CPU's away. As root, Chromium refuses its sandbox.
    """
    flags = list(FLAGS)
    if sys.platform == "linux":
        gpu = any(Path(node).exists() for node in _GPU_NODES) or any(Path("/dev/dri").glob("renderD*"))
        flags.append("--enable-features=Vulkan" if gpu else "--use-webgpu-adapter=swiftshader")
    if sys.platform != "win32" and os.geteuid() == 0:
        flags.append("--no-sandbox")
    return tuple(flags)


class Chromium:
    """A browser with one page, in a process group of its own. It ends with `close`, and with this process.

    Args:
        url: What it opens.
        profile: Its folder, kept; None: a new one that goes away with it.

    Raises:
        Unavailable: There is none, or it can't be started.
    """

    def __init__(self, url: str, *, profile: Path | None = None) -> None:
        self._program = find_chromium()
        self._closed = False
        self._temporary = None
        if profile is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="inferometer-browser-", ignore_cleanup_errors=True)
            profile = Path(self._temporary.name)
        profile.mkdir(parents=True, exist_ok=True)
        for lock in profile.glob("Singleton*"):  # of one that was killed; only one of us has this folder at a time
            lock.unlink(missing_ok=True)
        self._stderr = profile / "stderr.txt"
        command = [self._program, *choose_flags(), f"--user-data-dir={profile}", url]
        try:
            with self._stderr.open("wb") as stderr:
                self._process = subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=stderr,
                    start_new_session=sys.platform != "win32",
                )
        except OSError as error:
            self._forget()
            raise Unavailable(f"{self._program}: can't be started: {error.strerror or error}") from error
        atexit.register(self.close)

    @property
    def pid(self) -> int:
        """Number of the process, which is also that of its group."""
        return self._process.pid

    def ended(self) -> str | None:
        """What to tell once it ended by itself: its code and last words. None while it runs."""
        code = self._process.poll()
        if code is None:
            return None
        return "\n".join([f"{self._program}: ended with code {code}", *self.last_lines()])

    def last_lines(self) -> list[str]:
        """The last lines of its standard error."""
        try:
            lines = self._stderr.read_text("utf-8", "replace").splitlines()
        except OSError:
            return []
        return [line for line in lines if line.strip()][-_LAST_LINES:]

    def close(self) -> None:
        """End it and its children: asked first, so that it can write what it keeps; then by force."""
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self.close)
        self._signal(ask=True)
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            pass
        finally:
            self._signal(ask=False)
            self._process.wait()
            self._forget()

    def _signal(self, *, ask: bool) -> None:
        if sys.platform == "win32":
            if self._process.poll() is None:
                self._process.terminate()
            return
        try:
            os.killpg(self._process.pid, signal.SIGTERM if ask else signal.SIGKILL)
        except (ProcessLookupError, PermissionError):  # macOS says the latter of a group of zombies
            return

    def _forget(self) -> None:
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None
