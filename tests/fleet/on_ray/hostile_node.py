"""A stand-in for `on_ray.node` whose Ray worker ends over some files, as if the machine had ended it."""

import os
import signal
from pathlib import Path

from inferometer.fleet.on_ray.node import Answer
from inferometer.fleet.on_ray.node import read as _read
from inferometer.fleet.workers import WorkerLimits


def read(name: str, trace: str | None, limits: WorkerLimits, version: str) -> Answer:
    """Ends over `deadly.json` always, over `unlucky.json` at first; another content is in `another.json`."""
    path = Path(name)
    if path.name == "deadly.json":
        os.kill(os.getpid(), signal.SIGKILL)
    if path.name == "unlucky.json" and not (met := path.with_suffix(".met")).exists():
        met.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    if path.name == "another.json" and trace is not None:
        return Answer("n", "0" * 64)
    return _read(name, trace, limits, version)
