"""What runs inside a recorded process: its part of the recording, from the first import of torch to its end.

Called by the hook (`hook/sitecustomize.py`). The counters are the business of the process that started the recording.
"""

import os
import threading
from pathlib import Path

from inferometer.record.parts import Options
from inferometer.record.plan import NOTES, Plan, new_part, read_plan
from inferometer.record.recorder import Recording
from inferometer.record.running import RUNNING


def begin(*, ops: bool = True) -> Recording | None:
    """Record this process from now on, as its environment says; None when there is no recording to be part of."""
    plan = read_plan(os.environ)
    if plan is None or any(recording.parts == Path(plan.folder) for recording in RUNNING):
        return None
    profile = plan.profile if ops else False
    options = Options(
        counters=False,
        ops=plan.ops and ops,
        profile=profile,
        stacks=plan.stacks,
        ops_by=plan.ops_by,
        ops_every=plan.ops_every,
    )
    folder = Path(plan.folder)
    recording = Recording(new_part(folder), options, clock=plan.clock, parts=folder)
    if plan.until_ns is not None and plan.clock.now() >= plan.until_ns:
        return None
    recording.start()
    for line in recording.remarks:
        say(folder, line)
    _stop_in_time(recording, plan)
    return recording


def say(folder: Path, line: str) -> None:
    """Leave a line for whoever started the recording."""
    with (folder / f"{os.getpid()}{NOTES}").open("a", encoding="utf-8") as notes:
        notes.write(line + "\n")


def _stop_in_time(recording: Recording, plan: Plan) -> None:
    if plan.until_ns is None:
        return
    left_s = (plan.until_ns - plan.clock.now()) / 1e9
    timer = threading.Timer(max(left_s, 0), recording.stop)
    timer.daemon = True
    timer.start()
