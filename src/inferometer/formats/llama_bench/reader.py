"""Fills `tests`, `steps` and `log` from what llama-bench printed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, Final

from inferometer.errors import FormatError
from inferometer.formats.held import read_held
from inferometer.formats.llama_bench.fields import Fields
from inferometer.formats.llama_bench.names import Work, full_name, settings_of, work_of
from inferometer.formats.llama_bench.texts import found_in
from inferometer.trace.facts import Device, Facts

if TYPE_CHECKING:
    from inferometer.formats.source import Source
    from inferometer.trace.builder import TraceBuilder

_HINT: Final = "Run llama-bench again with -o json."
_TOO_LARGE: Final = "Keep only what llama-bench printed, or read it with --no-limits."
_ANCHOR: Final = "a repetition of llama-bench"
_NOTE: Final = (
    "These are times of whole tests, not of kernels: inferometer compare sets two such files side by side. A step is a "
    "repetition of a test, with all its tokens. Neither tokenisation nor sampling is timed."
)


@dataclass(frozen=True)
class _Test:
    work: Work
    fields: Fields
    samples_ns: list[int]


def read(source: "Source", out: "TraceBuilder") -> Facts:
    """Read all of it.

    Raises:
        FormatError: There is no test in it.
    """
    found = [*found_in(read_held(source, hint=_TOO_LARGE), source.name, out.losses)]
    tests = []
    for each in found:
        if each.fields is None:
            continue
        fields = Fields(each.fields, out.losses, each.line)
        if (work := work_of(fields)) is None:
            _lose(out, each.line)
        else:
            tests.append(_Test(work, fields, fields.times("samples_ns")))
    if not tests:
        raise FormatError(f"{source.name}: expected tests of llama-bench, found none", hint=_HINT)
    alike, differing = settings_of([test.fields for test in tests])
    names = [full_name(test.work, test.fields, differing) for test in tests]
    _add_tests(out, tests, names)
    _add_steps(out, tests, names)
    lines = [each for each in found if each.fields is None]
    if out.wants("log"):
        out.losses.see("log", len(lines))
        out.add("log", len(lines), {"line": [each.line for each in lines], "text": [each.text for each in lines]})
    return _facts(source.name, tests, alike)


def _lose(out: "TraceBuilder", line: int) -> None:
    if out.wants("tests"):
        out.losses.see("tests")
        out.losses.count("unreadable_row", category="tests", example=f"line {line}: it doesn't say how many tokens")


def _add_tests(out: "TraceBuilder", tests: Sequence[_Test], names: Sequence[str]) -> None:
    if not out.wants("tests"):
        return
    out.losses.see("tests", len(tests))
    rows = [_row(test) for test in tests]
    columns: dict[str, Any] = {name: [row[name] for row in rows] for name in rows[0]}
    out.add("tests", len(tests), columns | {"test": list(names), "order": range(len(tests)), "batch": 1})


def _row(test: _Test) -> dict[str, Any]:
    fields, samples = test.fields, test.samples_ns
    row = {
        "phase": test.work.phase,
        "prefill_tokens": test.work.prompt,
        "decode_tokens": test.work.generated,
        "context_len": test.work.depth,
        "time_ns": _time_ns(fields.text("test_time")),
        "repetitions": len(samples) or None,
    }
    if samples:
        rates = [test.work.tokens * 1e9 / ns for ns in samples]
        spread = (stdev(samples), stdev(rates)) if len(samples) > 1 else (None, None)
        statistics: tuple[float | None, ...] = (fmean(samples), spread[0], fmean(rates), spread[1])
    else:
        mean_ns, rate = (fields.number(name) or None for name in ("avg_ns", "avg_ts"))
        statistics = (mean_ns, fields.number("stddev_ns") or None, rate, fields.number("stddev_ts") or None)
    names = ("mean_ns", "stddev_ns", "tokens_per_s", "tokens_per_s_stddev")
    return row | dict(zip(names, statistics, strict=True))


def _add_steps(out: "TraceBuilder", tests: Sequence[_Test], names: Sequence[str]) -> None:
    if not out.wants("steps"):
        return
    for process, (test, name) in enumerate(zip(tests, names, strict=True)):
        rows = len(test.samples_ns)
        out.losses.see("steps", rows)
        columns = {
            "step": range(rows),
            "phase": test.work.phase,
            "process": process,
            "dur_ns": test.samples_ns,
            "batch": 1,
            "prefill_tokens": test.work.prompt,
            "decode_tokens": test.work.generated,
            "context_len": test.work.depth,
            "anchor": f"{_ANCHOR}: {name}",
            "source": "recorded",
        }
        out.add("steps", rows, columns)


def _time_ns(text: str | None) -> int | None:
    """RFC 3339, in whole seconds."""
    try:
        seconds = datetime.fromisoformat(text or "").timestamp() if text and text.endswith("Z") else None
    except (ValueError, OverflowError):
        return None
    return None if seconds is None else int(seconds) * 1_000_000_000


def _facts(name: str, tests: Sequence[_Test], alike: dict[str, str]) -> Facts:
    first = tests[0].fields
    commit, number = (_same(tests, field) for field in ("build_commit", "build_number"))
    version = " ".join(filter(None, (number, f"({commit})" if commit else None)))
    gpus, cpu = _same(tests, "gpu_info"), _same(tests, "cpu_info")
    on_gpu = gpus and first.text("backends") != "CPU" and alike.get("n_gpu_layers") != "0"
    devices = [Device(f"gpu:{i}", name=gpu) for i, gpu in enumerate((gpus or "").split(", "))] if on_gpu else []
    if not on_gpu and cpu:
        devices = [Device("cpu", name=cpu)]
    settings = alike | ({"cpu_info": cpu} if on_gpu and cpu else {})
    return Facts(
        "llama-bench",
        name,
        tool="llama-bench",
        tool_version=version or None,
        framework="llama.cpp",
        model=settings.pop("model_type", None),
        devices=tuple(devices),
        settings=settings,
        versions={"llama.cpp": version} if version else {},
        notes=(_NOTE,),
    )


def _same(tests: Sequence[_Test], field: str) -> str | None:
    """What all tests say; None where they don't agree."""
    texts = {test.fields.text(field) for test in tests}
    return texts.pop() if len(texts) == 1 else None
