"""What a watch costs beside an engine: processor time per second watched, and memory. Time of the processor is counted.

A process of its own watches a made-up engine ten times a second, with counters as often, so that a hundred of its ticks
stand for a hundred seconds at 1 Hz. What is done once (imports, learning for the first time) is not in it.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

_MOST_CPU = 0.01
_MOST_BYTES = 150_000_000
_TICKS = 100

_SCRIPT = """
import json, resource, sys

from inferometer.commands import watch
from inferometer.commands.main import main
from inferometer.record.journal import rolling
from inferometer.record.server.metrics import EngineMetrics

from tests.watch.serving_cost import serve

url, readings = serve()
made, flush = EngineMetrics.__init__, rolling.RollingStore.__init__
EngineMetrics.__init__ = lambda self, *args, **given: made(self, *args, **{**given, "hz": 10.0})
rolling.RollingStore.__init__ = lambda self, *args, **given: flush(self, *args, **{**given, "flush_s": 1.0})
marks = []

def is_over():
    done = readings()
    if done >= 60 and not marks or done >= 60 + TICKS and len(marks) == 1:
        used = resource.getrusage(resource.RUSAGE_SELF)
        marks.append((done, used.ru_utime + used.ru_stime))
    return len(marks) == 2

watch._until = lambda _: is_over
try:
    main(["watch", url, "-o", sys.argv[1], "--hz", "10", "--no-live", "--listen", "0", "--json"])
except SystemExit as ended:
    code = ended.code
(first, before), (last, after) = marks
status = open("/proc/self/status").read()  # ru_maxrss would be that of the process which started this one
peak = int(status.partition("VmHWM:")[2].split()[0]) * 1024
cost = {"per_tick_s": (after - before) / (last - first), "bytes": peak, "code": code}
print("COST", json.dumps(cost), file=sys.stderr)
""".replace("TICKS", str(_TICKS))


def test_it_takes_less_than_a_hundredth_of_a_core_and_150_mb(tmp_path: Path) -> None:
    if not Path("/proc/self/status").exists():
        pytest.skip("memory is read from Linux's /proc")
    root = Path(__file__).resolve().parents[2]
    words = [sys.executable, "-c", _SCRIPT, str(tmp_path / "run.ifm")]
    ran = subprocess.run(words, cwd=root, capture_output=True, text=True, timeout=120, check=False)
    (line,) = [line for line in ran.stderr.splitlines() if line.startswith("COST ")] or [ran.stderr]
    cost = json.loads(line.removeprefix("COST "))
    print(cost)
    assert cost["code"] in (0, None)
    assert 0 < cost["per_tick_s"] < _MOST_CPU
    assert 50_000_000 < cost["bytes"] < _MOST_BYTES
