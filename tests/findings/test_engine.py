"""Findings as a result: their order, what is shown, several runs, other packages' rules."""

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Barrier, Event
from time import sleep
from typing import Any

import polars as pl
import pytest
from msgspec.structs import replace
from tests.traces import trace_of
from tests.webgpu_log_files import write_log

import inferometer
from inferometer.analyses.steps import table as step_table
from inferometer.errors import InputError, UnknownName
from inferometer.findings import engine, first_look
from inferometer.findings.causes import EXPLAINS, explain
from inferometer.findings.engine import Findings, find_findings, known_rules
from inferometer.findings.evidence.launch_evidence import LaunchEvidence
from inferometer.findings.examined import Examined
from inferometer.findings.finding import SEVERITIES, Finding, Scale, Severity
from inferometer.findings.rule import Evidence, Rule
from inferometer.reports.delimited import render_csv
from inferometer.reports.terminal import render_terminal
from inferometer.reports.views.findings import first_findings
from inferometer.reports.views.view import remarks_of, sections_of, table_of
from inferometer.trace.losses import Losses
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


def test_rules_are_asked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    both_asked = Barrier(2, timeout=60)

    def find(_: Evidence) -> Iterator[Finding]:
        both_asked.wait()
        yield from said("low", 5).find(_)

    monkeypatch.setattr(engine, "known_rules", lambda: {name: Rule(name, find) for name in ("a", "b")})
    assert [finding.rule for finding in find_findings(trace_of()).findings] == ["low-5"]


def test_what_launches_are_of_is_found_while_steps_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither waits for the other: rules ask for much that needs no steps."""
    attributed, made = Event(), step_table.step_table

    def after_the_attribution(trace: Trace) -> Any:
        assert attributed.wait(60)
        return made(trace)

    def find(evidence: Evidence) -> Iterator[Finding]:
        assert evidence.launches is not None
        assert evidence.launches.work.height
        attributed.set()
        yield from said("low", evidence.launches.total_ns).find(evidence)

    monkeypatch.setattr(step_table, "step_table", after_the_attribution)
    monkeypatch.setattr(engine, "known_rules", lambda: {"a": Rule("a", find)})
    assert [finding.size_ns for finding in find_findings(trace_of([{"dur_ns": 7}])).findings] == [7]


def test_the_first_of_equal_findings_is_the_first_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(_: Evidence) -> Iterator[Finding]:
        sleep(0.05)
        yield Finding(rule="late", severity="low", title="x", evidence=(), size_ns=5, next="y")

    rules = [Rule("late", late), said("low", 5)]
    monkeypatch.setattr(engine, "known_rules", lambda: {rule.name: rule for rule in rules})
    assert [finding.rule for finding in find_findings(trace_of()).findings] == ["late", "low-5"]


def test_what_a_rule_raises_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: Evidence) -> Iterator[Finding]:
        raise InputError("no such table")

    rules = [said("low", 5), Rule("broken", broken)]
    monkeypatch.setattr(engine, "known_rules", lambda: {rule.name: rule for rule in rules})
    with pytest.raises(InputError, match="no such table"):
        find_findings(trace_of())


def test_what_is_done_beside_is_done_once_and_what_it_raises_is_raised() -> None:
    done: list[int] = []
    find_findings(trace_of([]), rules=["idle_device"], beside=lambda: done.append(1))
    assert done == [1]

    def fail() -> None:
        raise InputError("no")

    with pytest.raises(InputError, match="no"):
        find_findings(trace_of([]), rules=["idle_device"], beside=fail)


def test_every_severity_is_one_of_four() -> None:
    assert SEVERITIES == ("high", "medium", "low", "info")


@pytest.mark.parametrize(
    ("share", "severity"), [(0.0, None), (0.0099, None), (0.01, "low"), (0.1, "medium"), (0.5, "high"), (7.0, "high")]
)
def test_a_scale_gives_the_severity_from_its_limit_on(share: float, severity: str | None) -> None:
    assert Scale("odd", low=0.01, medium=0.1, high=0.5).severity(share) == severity


def test_a_scale_may_end_early() -> None:
    assert Scale("odd", low=0.01).severity(1.0) == "low"


class TestResult:
    @pytest.fixture
    def result(self, read: Read) -> Findings:
        return find_findings(read(write_log(**BAD), name="engine.log"))

    def test_the_table_has_a_row_a_finding_and_notes_for_all_but_remarks(self, result: Findings) -> None:
        (section,) = sections_of(result)
        assert section.title == "What to look at first"
        assert section.frame.height == len(result.findings)
        told = sum(finding.severity != "info" for finding in result.findings)
        assert [note.startswith(f"{n}. ") for n, note in enumerate(section.notes, 1)] == [True] * told + [False]
        assert section.notes[0].startswith("1. 31.7 % of decode's wall time is outside GPU work")
        assert "\nNext: " in section.notes[0]

    def test_json_has_all_under_the_declared_keys(self, result: Findings) -> None:
        data = result.as_json()
        keys = ["rule", "severity", "title", "evidence", "size_ns", "share", "next", "explained_by"]
        keys += ["idle_ns", "parts"]
        assert [list(finding) for finding in data["findings"]] == [keys] * len(result.findings)
        assert all(finding["evidence"] and finding["next"] for finding in data["findings"])

    def test_the_frame_is_the_same(self, result: Findings) -> None:
        assert result.to_polars().to_dicts() == result.as_json()["findings"]

    def test_it_prints(self, result: Findings, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("COLUMNS", "200")
        page = render_terminal(result, is_terminal=False)
        assert "What to look at first" in page
        assert "host_gap" in page

    def test_none_is_a_table_too(self) -> None:
        result = find_findings(trace_of())
        assert (result.findings, result.to_polars().height) == ((), 0)
        assert "none" in render_terminal(result, is_terminal=False)


class TestParts:
    @pytest.fixture
    def result(self, monkeypatch: pytest.MonkeyPatch) -> Findings:
        rules = [said(*each) for each in (("high", 9), ("medium", 8), ("low", 7), ("info", 6))]
        monkeypatch.setattr(engine, "known_rules", lambda: {rule.name: rule for rule in rules})
        return find_findings(trace_of())

    def test_the_head_says_what_it_leaves_out(self, result: Findings) -> None:
        head = result.head(1)
        assert [finding.rule for finding in head.findings] == ["high-9"]
        assert (head.as_json()["left_out"], result.as_json()["left_out"], result.head(9).left_out) == (3, 0, 0)
        assert "3 more are not listed." in render_terminal(head, is_terminal=False)

    @pytest.mark.parametrize(("severity", "count"), [("high", 1), ("medium", 2), ("low", 3), ("info", 4)])
    def test_those_of_a_severity_are_the_graver_too(self, result: Findings, severity: Severity, count: int) -> None:
        assert len(result.at_least(severity)) == count

    def test_the_first_say_how_many_more_there_are_and_who_lists_them(self, result: Findings) -> None:
        section = first_findings(result, 2)
        assert section.frame["rule"].to_list() == ["high-9", "medium-8"]
        assert section.notes[-2:] == (
            "2 more, and all evidence: inferometer findings by hand",
            "4 rules looked at no rows.",
        )
        assert len(first_findings(result, 4).notes) == 4, "nothing more, and info needs no note"

    def test_a_row_of_the_table_holds_all_that_is_said(self, read: Read) -> None:
        result = find_findings(read(write_log(**BAD), name="engine.log"))
        section = table_of(result)
        row = section.frame.row(0, named=True)
        assert (row["number"], row["rule"]) == (1, result.findings[0].rule)
        assert row["evidence"] == " ".join(result.findings[0].evidence)
        assert row["next"] == result.findings[0].next
        assert render_csv(result).startswith("Number,Severity,Rule,Finding,Time (ns),Share (%),Evidence,")

    def test_only_the_rules_that_are_named_are_asked(self, result: Findings) -> None:
        only = find_findings(trace_of(), rules=("low-7", "info-6"))
        assert [finding.rule for finding in only.findings] == ["low-7", "info-6"]
        with pytest.raises(UnknownName, match='unknown rule "low-8"'):
            find_findings(trace_of(), rules=("low-8",))


def finding(rule: str, severity: str, size_ns: int | None) -> Finding:
    return Finding(rule=rule, severity=severity, title=rule, evidence=(), size_ns=size_ns, next="y")  # type: ignore[arg-type]


class TestCauses:
    @pytest.mark.parametrize(
        ("found", "order"),
        [
            (  # the cause stands first, though what it causes is graver and longer
                [("idle_device", "high", 100), ("sync_points", "medium", 60)],
                [("sync_points", None), ("idle_device", "sync_points")],
            ),
            (  # with less than half of the time there is another cause
                [("idle_device", "high", 100), ("sync_points", "medium", 49)],
                [("idle_device", None), ("sync_points", None)],
            ),
            (  # the group stands where its gravest member would
                [("split_k_reductions", "medium", 500), ("host_gap", "high", 100), ("launch_bound", "low", 90)],
                [("launch_bound", None), ("host_gap", "launch_bound"), ("split_k_reductions", None)],
            ),
            (  # a cause may have a cause
                [("host_gap", "high", 100), ("launch_bound", "high", 90), ("graph_breaks", "medium", 80)],
                [("graph_breaks", None), ("host_gap", "launch_bound"), ("launch_bound", "graph_breaks")],
            ),
            (  # what has no time, or asks for nothing, takes no part
                [("idle_device", "high", 100), ("sync_points", "info", 100), ("launch_bound", "medium", None)],
                [("idle_device", None), ("launch_bound", None), ("sync_points", None)],
            ),
        ],
    )
    def test_a_cause_stands_before_what_it_explains(
        self, found: list[tuple[str, str, int | None]], order: list[tuple[str, str | None]]
    ) -> None:
        for arranged in (found, found[::-1]):
            explained = explain([finding(*each) for each in arranged])
            assert [(each.rule, each.explained_by) for each in explained] == order

    def test_what_is_explained_is_not_among_the_first(self) -> None:
        pair = explain([finding("idle_device", "high", 100), finding("sync_points", "medium", 60)])
        nothing = Examined(rules=2, rows={}, devices=0, window_ns=None, idle_ns=None, explained_ns=None)
        section = first_findings(Findings("x", tuple(pair), Losses(), nothing, pl.DataFrame()), 5)
        assert section.frame["rule"].to_list() == ["sync_points"]
        assert section.notes[-2].startswith("1 more")

    def test_what_is_lost_in_another_row_of_the_budget_is_not_explained(self) -> None:
        waits = replace(finding("sync_points", "medium", 90), parts=("idle.sync",))
        host, queued = (
            replace(finding("idle_device", "high", 100), parts=(part,)) for part in ("idle.sync", "idle.graph")
        )
        assert [each.explained_by for each in explain([waits, host, queued])] == [None, "sync_points", None]

    def test_no_cause_is_its_own_effect(self) -> None:
        def below(rule: str) -> set[str]:
            return {rule}.union(*(below(effect) for effect in EXPLAINS.get(rule, ())))

        for cause, effects in EXPLAINS.items():
            assert all(cause not in below(effect) for effect in effects)

    def test_every_name_is_a_rules(self) -> None:
        names = {*EXPLAINS, *(effect for effects in EXPLAINS.values() for effect in effects)}
        assert names <= set(known_rules())


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
        found = [word for word in words if re.search(rf"(?<![\d._]){word}(?![\d_])", text)]  # 1.4826 is another number
        assert found == [], path.name


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


def test_a_first_look_at_very_many_launches_leaves_the_rules_about_them_out_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trace = inferometer.open(Path(__file__).parents[2] / "samples" / "decode.json.gz")
    assert first_look.first_look(trace).findings.findings
    monkeypatch.setattr(first_look, "MOST_LAUNCHES", 100)
    launches = LaunchEvidence(trace)
    look = first_look.first_look(trace, launches=launches)
    assert not {"attribution", "steps", "gaps"} & vars(launches).keys()  # nobody asked, neither rules nor the summary
    assert first_look.first_look(trace).as_json() == look.as_json()
    assert look.findings.findings == ()
    assert "for 786 of them" in remarks_of(look)[-1]
    assert any("is idle" in remark for remark in remarks_of(look))
