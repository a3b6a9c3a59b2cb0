"""A candidate's process in bubblewrap: it reads what the user reads, and writes to a folder of its own alone.

No network, no other processes in sight, no home: caches are made anew. `bwrap` is Debian's package bubblewrap; it needs
user namespaces, which some containers don't allow.
"""

import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from inferometer.errors import Unavailable, clean

_TOOL = "bwrap"
_TRY_S = 30.0


def require_sandbox() -> str:
    """The path of `bwrap`.

    Raises:
        Unavailable: It isn't installed, or can't run here.
    """
    found = shutil.which(_TOOL)
    if found is None:
        raise Unavailable(
            "--sandbox needs bubblewrap, and bwrap isn't on the PATH", hint="On Debian: apt install bubblewrap."
        )
    why = _why_not(found)
    if why is not None:
        hint = "It needs user namespaces: run it outside of the container, or without --sandbox."
        raise Unavailable(f"--sandbox: {found} can't run here: {why}", hint=hint)
    return found


def sandboxed(command: Sequence[str], folder: Path, *, device: str) -> list[str]:
    """The command in bubblewrap, with `folder` as the only place that it can write to."""
    devices = ["--dev", "/dev"] if device == "cpu" else ["--dev-bind", "/dev", "/dev"]
    return [
        require_sandbox(), "--ro-bind", "/", "/", *devices, "--proc", "/proc",
        "--bind", str(folder), str(folder), "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts",
        "--die-with-parent", "--setenv", "TMPDIR", str(folder / "work"), "--setenv", "HOME", str(folder / "work"),
        "--unsetenv", "TRITON_CACHE_DIR", "--unsetenv", "TORCHINDUCTOR_CACHE_DIR", "--unsetenv", "TORCH_EXTENSIONS_DIR",
        "--chdir", str(folder / "work"), *command,
    ]  # fmt: skip


@cache
def _why_not(tool: str) -> str | None:
    """What bubblewrap says where it can't make a sandbox."""
    command = [
        tool,
        "--ro-bind",
        "/",
        "/",
        "--dev",
        "/dev",
        "--proc",
        "/proc",
        "--unshare-pid",
        "--unshare-net",
        "true",
    ]
    try:
        ended = subprocess.run(command, capture_output=True, timeout=_TRY_S, check=False, env=dict(os.environ))
    except (OSError, subprocess.TimeoutExpired) as error:
        return clean(str(error))
    return clean(ended.stderr.decode("utf-8", "replace").strip()) or "it failed" if ended.returncode else None
