"""Findings as a result: their order, what is shown, several runs, other packages' rules."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.traces import trace_of
from tests.webgpu_log_files import write_log

from inferometer.errors import InputError
from inferometer.findings import engine
from inferometer.findings.engine import Findings, find_findings, known_rules
from inferometer.findings.finding import SEVERITIES, Finding, Scale
from inferometer.findings.rule import Evidence, Rule
from inferometer.reports.terminal import render_terminal
from inferometer.trace.trace import Trace

Read = Callable[..., Trace]
BAD = {"gap_ms": 25.0, "decode": {"sample_phase2": 0.6}, "zero_byte_load": True, "not_found": True}


def said(severity: str, size_ns: int | None) -> Rule:
    def find(_: Evidence) -> Iterator[Finding]:
        name, title = f"{severity}-{size_ns}", "x"
        yield Finding(rule=name, severity=severity, title=title, evidence=(), size_ns=size_ns, next="y")  # type: ignore[arg-type]

    return Rule(f"{severity}-{size_ns}", find)


def test_gravest_first_then_the_longest_time(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = [said("info", 9), said("low", None), said("high", 1), said("low", 5), said("medium", 7), said("high", 2)]
    monkeypatch.setattr(engine, "known_rules", lambda: {rule.name: rule for rule in rules})
    found = find_findings(trace_of()).findings
    assert [finding.rule for finding in found] == ["high-2", "high-1", "medium-7", "low-5", "low-None", "info-9"]


def test_every_severity_is_one_of_four() -> None:
    assert SEVERITIES == ("high", "medium", "low", "info")


@pytest.mark.parametrize(
    ("share", "severity"), [(0.0, None), (0.0099, None), (0.01, "low"), (0.1, "medium"), (0.5, "high"), (7.0, "high")]
)
def test_a_scale_gives_the_severity_from_its_limit_on(share: float, severity: str | None) -> None:
    assert Scale(low=0.01, medium=0.1, high=0.5).severity(share) == severity


def test_a_scale_may_end_early() -> None:
    assert Scale(low=0.01).severity(1.0) == "low"


class TestResult:
    @pytest.fixture
    def result(self, read: Read) -> Findings:
        return find_findings(read(write_log(**BAD), name="engine.log"))

    def test_the_table_has_a_row_a_finding_and_notes_for_all_but_remarks(self, result: Findings) -> None:
        (section,) = result.sections()
        assert section.title == "What to look at first"
        assert section.frame.height == len(result.findings)
        assert len(section.notes) == sum(finding.severity != "info" for finding in result.findings)
        assert section.notes[0].startswith("1. the GPU waits for")
        assert " Next: " in section.notes[0]

    def test_json_has_all_under_the_declared_keys(self, result: Findings) -> None:
        data = result.as_json()
        keys = ["rule", "severity", "title", "evidence", "size_ns", "share", "next"]
        assert [list(finding) for finding in data["findings"]] == [keys] * len(result.findings)
        assert all(finding["evidence"] and finding["next"] for finding in data["findings"])

    def test_the_frame_is_the_same(self, result: Findings) -> None:
        assert result.to_polars().to_dicts() == result.as_json()["findings"]

    def test_it_prints(self, result: Findings) -> None:
        page = render_terminal(result, is_terminal=False)
        assert "What to look at first" in page
        assert "host_gap" in page

    def test_none_is_a_table_too(self) -> None:
        result = find_findings(trace_of())
        assert (result.findings, result.to_polars().height) == ((), 0)
        assert "none" in render_terminal(result, is_terminal=False)


class TestRuns:
    def test_each_run_is_looked_at_alone(self, read: Read) -> None:
        text = write_log(prompt="first") + write_log(prompt="second", seed=2, **BAD)
        found = find_findings(read(text, name="engine.log")).findings
        graver = [finding.title.split(":")[0] for finding in found if finding.severity in ("high", "medium")]
        assert set(graver) == {"run 1"}

    def test_what_the_whole_log_says_is_said_once(self, read: Read) -> None:
        text = write_log(prompt="first", not_found=True) + write_log(prompt="second", seed=2)
        found = [each for each in find_findings(read(text, name="engine.log")).findings if "missing" in each.title]
        assert [finding.title for finding in found] == ["a resource was missing"]

    def test_two_runs_find_what_each_finds_alone(self, read: Read) -> None:
        first, second = write_log(prompt="first", gap_ms=25.0), write_log(prompt="second", seed=2, gap_ms=4.0)
        both = find_findings(read(first + second, name="both.log")).findings
        alone = [find_findings(read(text, name="one.log")).findings for text in (first, second)]
        gaps = [each for findings in (both, *alone) for each in findings if each.rule == "host_gap"]
        assert [gap.size_ns for gap in gaps[:2]] == [gap.size_ns for gap in gaps[2:]]
        assert [gap.title.split(":")[0] for gap in gaps[:2]] == ["run 0", "run 1"]


def test_tables_that_were_not_read_are_asked_for() -> None:
    with pytest.raises(InputError, match="was not read, only launches"):
        find_findings(trace_of(tables={"launches"}))


def test_rows_in_another_order_find_the_same(read: Read) -> None:
    trace = read(write_log(**BAD), name="engine.log")
    frames = {
        name: frame.collect().sample(fraction=1.0, shuffle=True, seed=1).lazy() for name, frame in trace.tables.items()
    }
    frames["log"] = trace.log  # lines are in order
    frames["selections"] = trace.selections
    shuffled = Trace(trace.facts, frames, trace.losses)
    assert find_findings(shuffled).as_json()["findings"] == find_findings(trace).as_json()["findings"]


def test_every_rule_has_its_words_and_its_name() -> None:
    for name, rule in known_rules().items():
        module = sys.modules[rule.find.__module__]
        assert module.__name__.rpartition(".")[2] == name
        assert (module.__doc__ or "").count(".") >= 2


def test_no_rule_knows_a_label_or_number_of_the_users_log() -> None:
    words = ("gemma", "ffn_down", "26", "1152", "6912", "262144", "metal", "fused_ffn", "lm_head", "sample_phase")
    for path in Path(engine.__file__).parent.glob("*.py"):
        text = path.read_text("utf-8")
        assert [word for word in words if word in text] == [], path.name


def test_lines_of_any_log_are_looked_at() -> None:
    log: list[dict[str, Any]] = [{"line": n, "text": f"{n}: not found", "level": "error"} for n in range(1, 6)]
    (finding,) = find_findings(trace_of(log=log)).findings
    assert finding.title == "5 resources were missing"
    assert finding.evidence[0] == "Line 1: 1: not found"
    assert finding.evidence[-1] == "2 more lines say so."


def test_an_evidence_says_none_where_nothing_is_recorded() -> None:
    evidence = Evidence(trace_of())
    assert (evidence.steps, evidence.model, evidence.bounds, evidence.best_bytes_per_s) == (None, None, None, None)
    assert evidence.printed.is_empty()
    assert evidence.number("perf", "decode_ns") is None
    assert evidence.gpu_ns("decode") == 0
    assert isinstance(evidence.class_times, pl.DataFrame)
