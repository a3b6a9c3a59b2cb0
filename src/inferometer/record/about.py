"""What a recording says of itself: tool, versions, host, processes, the command without its secrets.

Nothing here starts a device: GPUs are described once the program itself has started CUDA, or by NVML. Where a driver
is first touched matters to programs that fork afterwards.
"""

import os
import platform
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from inferometer.privacy.secrets import MASK, blank_secrets

if TYPE_CHECKING:
    from inferometer.trace.facts import Device, Facts

_SECRET_NAME = re.compile(
    r"(?i)(?:^|[-_.])(?:api[-_]?key|key|token|hf[-_]?token|secret|passw(?:or)?d|passphrase|credentials?|auth|bearer)$"
)
# Prefixes that services give to their keys, a signed token, or credentials in an address. Shorter ones than in the
# texts of a trace: here nothing is lost by a word too many.
_SECRET_VALUE = re.compile(
    r"(?:sk|pk|rk)-[\w-]{16,}|hf_\w{16,}|gh[opsru]_\w{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|xox[abprs]-[\w-]{8,}"
    r"|AKIA[0-9A-Z]{12,}|AIza[\w-]{20,}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*|(?<=://)[^/@\s:]*:[^/@\s]+(?=@)"
)
_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID", "LOCAL_RANK")


def masked(words: Sequence[str]) -> list[str]:
    """A command line whose values of `--api-key`, `TOKEN=` and the like, and what looks like a key, are `***`."""
    shown, hides_next = [], False
    for word in words:
        name, equals, value = word.partition("=")
        is_secret = bool(_SECRET_NAME.search(name.lstrip("-"))) if word.startswith("-") or equals else False
        if hides_next and not word.startswith("-"):
            shown.append(MASK)
        elif is_secret and equals:
            shown.append(f"{name}={MASK}" if value else word)
        else:
            shown.append(blank_secrets(_SECRET_VALUE.sub(MASK, word)))
        hides_next = is_secret and not equals
    return shown


def command_line(words: Sequence[str]) -> str:
    """As one would type it, without secrets."""
    import shlex

    return " ".join(MASK if word == MASK else shlex.quote(word) for word in masked(words))


def find_rank() -> int | None:
    """Of this process in its distributed job, as launchers show it in the environment."""
    for name in _RANKS:
        value = os.environ.get(name, "")
        if value.isdecimal():
            return int(value)
    return None


def describe(facts: "Facts", recorded: dict[str, bool]) -> "Facts":
    """`facts` with what can be known when a recording begins."""
    from inferometer.trace.facts import Device, NamedId

    rank = find_rank()
    size = os.environ.get("WORLD_SIZE", "")
    notes = (f"Command: {command_line(_words())}",)
    return replace(
        facts,
        devices=facts.devices or (Device("cpu", name=_processor()),),
        processes=(NamedId(os.getpid(), name=_process_name(), rank=rank),),
        ranks=() if rank is None else (rank,),
        world_size=int(size) if rank is not None and size.isdecimal() else None,
        recorded={**facts.recorded, **recorded},
        versions={**facts.versions, "python": platform.python_version()},
        notes=(*facts.notes, *(note for note in notes if note not in facts.notes)),
    )


def with_torch(facts: "Facts") -> "Facts":
    """`facts` with PyTorch's versions and settings, and the GPUs once the program has started them."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "version"):
        return facts
    versions = {"torch": str(torch.__version__), "cuda": torch.version.cuda, "hip": getattr(torch.version, "hip", None)}
    known = {device.device for device in facts.devices}
    return replace(
        facts,
        framework="PyTorch",
        versions={**facts.versions, **{name: version for name, version in versions.items() if version}},
        settings={**facts.settings, **_settings(torch)},
        devices=(*facts.devices, *(each for each in _started_gpus(torch) if each.device not in known)),
    )


def _settings(torch: Any) -> dict[str, str]:
    """What the program's speed may hang on; nothing of what this PyTorch, or one half imported, can't say."""
    asked = {
        "torch threads": "get_num_threads",
        "float32 matmul precision": "get_float32_matmul_precision",
        "deterministic algorithms": "are_deterministic_algorithms_enabled",
    }
    found = {name: str(getattr(torch, function)()) for name, function in asked.items() if hasattr(torch, function)}
    blocking = os.environ.get("CUDA_LAUNCH_BLOCKING", "0")
    return found | ({"CUDA_LAUNCH_BLOCKING": blocking} if blocking in ("0", "1") else {})


def _started_gpus(torch: Any) -> "list[Device]":
    from inferometer.trace.facts import Device

    if not hasattr(torch, "cuda") or not torch.cuda.is_initialized():
        return []
    devices = []
    for index in range(torch.cuda.device_count()):
        about = torch.cuda.get_device_properties(index)
        devices.append(
            Device(
                f"gpu:{index}",
                name=about.name,
                memory_bytes=about.total_memory,
                multiprocessors=about.multi_processor_count,
                compute_capability=f"{about.major}.{about.minor}",
                warp_size=getattr(about, "warp_size", None),
            )
        )
    return devices


def _processor() -> str | None:
    from inferometer.hardware.measure.host import read_host

    return read_host().name or None


def _words() -> list[str]:
    """The command of this process; an interactive one has no arguments worth keeping."""
    words = list(getattr(sys, "orig_argv", None) or sys.argv)
    return [Path(words[0]).name, *words[1:]] if words else []


def _process_name() -> str:
    """What runs, in one word: the script's or module's name."""
    argv = getattr(sys, "argv", None) or [""]
    main = getattr(sys.modules.get("__main__"), "__spec__", None)
    if main is not None and main.name not in ("__main__", "pytest.__main__"):
        return str(main.name).removesuffix(".__main__")
    return Path(argv[0]).name if argv[0] not in ("", "-c", "-m") else "python"
