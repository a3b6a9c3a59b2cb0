"""What was examined, and how much idle time is in no finding: every number, counted in the files."""

import re
from collections import Counter
from pathlib import Path

import pytest
from tests.truth.idle import Idle, findings, places_idle, total
from tests.truth.raw import FILES, duration, events, share, timed_events
from tests.truth.test_launch_bound import size_ns

from inferometer.reports.views.findings import what_was_examined

ROOT = Path(__file__).parents[2]
KINDS = ("host", "queued", "graph", "unknown")
SPANS = ("user_annotation", "gpu_user_annotation", "cuda_sync", "trace")
ONE = {"launches": "launch", "spans": "span"}
TABLES = ("launches", "calls", "ops", "frames", "spans")


def rules() -> int:
    files = (ROOT / "src" / "inferometer" / "findings" / "rules").rglob("*.py")
    return sum(bool(re.search(r"^RULE = Rule\(", file.read_text("utf-8"), re.MULTILINE)) for file in files)


def explained_ns(told: Idle) -> int:
    """Kinds of an eighth of the window or more, and late launches one by one where they and tiny kernels are many."""
    window_ns = told.found.window_ns
    large = [kind for kind in KINDS if total(told.of(kind)) >= 0.12 * window_ns]
    is_bound = len(told.alone) >= 50 and size_ns(told) >= 0.05 * window_ns
    return total(told.of(*large, *(["launching"] if is_bound else [])))


def idle_sentence(places: dict[str, Idle]) -> str | None:
    devices = f"the windows of {len(places)} devices" if len(places) > 1 else "the device's window"
    window_ns = sum(told.found.window_ns for told in places.values())
    idle_ns, known_ns = (sum(count(told) for told in places.values()) for count in (lambda t: t.idle_ns, explained_ns))
    if not places:
        return None
    if not idle_ns:
        return f"No time of {devices} is idle."
    is_idle = f"Idle time is {duration(idle_ns)}, {share(idle_ns / window_ns)} of {devices}"
    if not known_ns:
        return f"{is_idle}; no finding is about it."
    if known_ns == idle_ns:
        return f"{is_idle}; the findings account for all of it."
    rest = f"{duration(idle_ns - known_ns)} ({share((idle_ns - known_ns) / window_ns)}) are in none"
    return f"{is_idle}: the findings account for {duration(known_ns)}; {rest}."


@pytest.mark.parametrize("file", [*FILES, "both ranks"])
def test_each_number_is_what_the_file_says(file: str, shared_data: Path, tmp_path: Path) -> None:
    path, places = places_idle(file, shared_data, tmp_path)
    found = findings(path)
    rows: Counter[str] = Counter()
    captures = [path] if path.is_file() else sorted(path.iterdir())
    for each in captures:
        rows += counted(each)
    words = [f"{rows[table]:,} {ONE[table] if rows[table] == 1 else table}" for table in TABLES if rows[table]]
    on = f" on {len(places)} device{'s' if len(places) > 1 else ''}" if places else ""
    nothing = "" if found.findings else ": nothing is above their thresholds"
    first, *others = what_was_examined(found)
    assert first == f"{rules()} rules looked at {', '.join(words)}{on}{nothing}."
    assert others == [each for each in [idle_sentence(places)] if each]


def counted(path: Path) -> Counter[str]:
    tables = {
        **dict.fromkeys(("kernel", "gpu_memcpy", "gpu_memset"), "launches"),
        **dict.fromkeys(("cuda_runtime", "cuda_driver"), "calls"),
        "cpu_op": "ops",
        "python_function": "frames",
        **dict.fromkeys(SPANS, "spans"),
    }
    marks = sum(each["ph"] == "i" and "cat" not in each for each in events(path))
    return Counter(spans=marks) + Counter(
        tables[name] for each in timed_events(path) if (name := each["cat"].lower()) in tables
    )
