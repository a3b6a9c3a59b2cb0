"""What a recorded process is given in its environment: where its part goes, the common clock, what to record.

`INFEROMETER_RECORD` holds it as JSON, and `PYTHONPATH` begins with the folder `hook`, whose `sitecustomize.py` every
Python started below runs before anything else. Processes hand both on to their children, as environments are.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path

import msgspec

from inferometer.record.clock import Clock
from inferometer.record.parts import OpsBy, Options

VARIABLE = "INFEROMETER_RECORD"
HOOK = Path(__file__).parent / "hook"
NOTES = ".python.txt"  # what a process's hook says of itself, next to its part: PID.python.txt
PART = ".ifm"
_PLACE = re.compile(r"[1-9][0-9]{0,9}(?:-[1-9][0-9]{0,9})?\.ifm")


class Plan(msgspec.Struct, frozen=True):
    """For the processes below: `folder` takes their parts; `until_ns`, on the clock, is when to stop."""

    folder: str
    origin_ns: int
    base_ns: int
    ops: bool = True
    profile: bool | None = None
    stacks: bool = True
    until_ns: int | None = None
    ops_by: OpsBy | None = None
    ops_every: int = 1

    @classmethod
    def of(cls, folder: str, clock: Clock, options: Options, until_ns: int | None = None) -> "Plan":
        """For what a recording with these options has its processes do."""
        wanted = (options.ops, options.profile, options.stacks)
        return cls(folder, clock.origin_ns, clock.base_ns, *wanted, until_ns, options.ops_by, options.ops_every)

    @property
    def clock(self) -> Clock:
        """The recording's, which all its processes share."""
        return Clock(self.origin_ns, self.base_ns)

    def environment(self, old: Mapping[str, str]) -> dict[str, str]:
        """What to add to `old`, so that every Python started with it records itself."""
        below = [path for path in old.get("PYTHONPATH", "").split(os.pathsep) if path and path != str(HOOK)]
        return {
            VARIABLE: msgspec.json.encode(self).decode(),
            "PYTHONPATH": os.pathsep.join([str(HOOK), *below]),
        }


def read_plan(environment: Mapping[str, str]) -> Plan | None:
    """The plan in an environment; None when there is none, it can't be read, or its recording has ended."""
    text = environment.get(VARIABLE)
    if not text:
        return None
    try:
        plan = msgspec.json.decode(text, type=Plan)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    return plan if Path(plan.folder).is_dir() else None


def parts_folder(store: Path) -> Path:
    """Where the parts of a recording wait to be joined."""
    return store.with_name(store.name + ".parts")


def new_part(folder: Path) -> Path:
    """A place for this process's part: a process that replaced itself (`exec`) has another one already."""
    place = folder / f"{os.getpid()}{PART}"
    again = 1
    while place.exists():
        place = folder / f"{os.getpid()}-{again}{PART}"
        again += 1
    return place


def part_places(folder: Path) -> list[Path]:
    """What in a folder of parts is called as a part, whole or not: the program may put files of its own there."""
    return [path for path in folder.glob(f"*{PART}") if _PLACE.fullmatch(path.name)]


def process_of(part: Path) -> int:
    """The process that a part is called after."""
    return int(part.name.partition(".")[0].partition("-")[0])
