"""The folder that vLLM was started with for its profiler, where it runs on this machine and its process can be seen.

Its command line says so from 0.13 on (`--profiler-config`, as JSON or an option a field), before that an environment
variable (`VLLM_TORCH_PROFILER_DIR`). Source: vLLM's guide "Profiling vLLM", proc(5). Of the environment nothing else is
kept.
"""

import json
import os
from contextlib import suppress
from pathlib import Path

from inferometer.record.server.process import find_processes

_OPTION = "--profiler-config"
_FIELD = "torch_profiler_dir"
_VARIABLE = "VLLM_TORCH_PROFILER_DIR="
_PROC = Path("/proc")


def find_profiler_folder(port: int, proc: Path = _PROC) -> Path | None:
    """The folder of the one server that listens at `port`; None where that can't be seen, or says nothing of it."""
    processes = find_processes(port, proc)
    if len(processes) != 1:
        return None
    process = proc / str(processes[0])
    folder = _of_command(_words(process / "cmdline")) or _of_environment(_words(process / "environ"))
    if folder is None:
        return None
    with suppress(OSError):
        return (process / "cwd").readlink() / folder
    return Path(folder) if Path(folder).is_absolute() else None


def _of_command(words: list[str]) -> str | None:
    """The last counts, as for vLLM's own parser."""
    found = None
    for word, following in zip(words, [*words[1:], ""], strict=True):
        option, equals, value = word.partition("=")
        value = value if equals else following
        option, _, name = option.replace("_", "-").partition(".")
        if option != _OPTION:
            continue
        if name == _FIELD.replace("_", "-"):
            found = value or found
        elif not name:
            with suppress(ValueError, RecursionError):
                fields = json.loads(value)
                found = fields.get(_FIELD, found) if isinstance(fields, dict) else found
    return found if isinstance(found, str) else None


def _of_environment(words: list[str]) -> str | None:
    return next((word.removeprefix(_VARIABLE) for word in words if word.startswith(_VARIABLE)), None) or None


def _words(path: Path) -> list[str]:
    """Separated by NUL, as Python has file names: what isn't UTF-8 is kept."""
    try:
        return [os.fsdecode(word) for word in path.read_bytes().split(b"\0")]
    except OSError:
        return []
