"""A fault's place and false findings are reported rightly, and the cases are what they are called."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from benchmarks.findings_truth import (
    HEALTHY,
    PLANTED,
    Case,
    Found,
    bars,
    false_findings,
    healthy_table,
    main,
    place_of,
    planted_table,
    run_case,
)
from tools.kineto_maker import Options
from tools.kineto_maker.faults import FAULTS

from inferometer.findings.finding import Finding, Severity

LATE = Options(steps=4, layers=1, prefill_every=0, lean=True, stack=False, fault="host-late")


def finding(rule: str, severity: Severity = "low") -> Finding:
    return Finding(rule=rule, severity=severity, title=f"{rule} is so", evidence=(), share=0.125, next="y")


def found(place: int | None, *findings: Finding) -> Found:
    told = tuple({"place": n, **each.as_json()} for n, each in enumerate(findings, start=1))
    return Found("a trace", "casts", "casts_and_copies", place, told, 10, 0.5)


@pytest.mark.parametrize(
    ("findings", "place"),
    [
        ([finding("other"), finding("right"), finding("right")], 2),
        ([finding("other")], None),
        ([finding("right", "info")], None),
        ([finding("right", "info"), finding("right")], 2),
        ([], None),
    ],
)
def test_the_place_is_that_of_the_rules_first_finding(findings: list[Finding], place: int | None) -> None:
    assert place_of("right", findings) == place


def test_info_is_no_false_finding() -> None:
    assert false_findings(found(None, finding("a", "info"), finding("b"))) == ["b (low, 12.5 %): b is so"]


def test_tables_and_bars_say_what_was_reached() -> None:
    each = [found(1, finding("casts_and_copies")), found(2), found(3), found(None)]
    assert [one.verdict for one in each] == ["first", "second", "third", "not found"]
    assert len(planted_table(each)) == len(healthy_table(each)) == 2 + len(each)
    planted, healthy = bars(each, each[:1])
    assert "2 of 4 traces (50 %), in all of their traces 0 of 1 faults; at least 90 %: NOT met" in planted
    assert "in 1 healthy traces: 1; at most 1: met" in healthy
    assert bars([], []) == []


def test_every_fault_is_planted_in_several_traces_and_ten_are_healthy() -> None:
    for fault in FAULTS:
        assert len({case.name for case in PLANTED if case.fault == fault}) >= 3
    assert len(HEALTHY) == 10
    assert {case.fault for case in HEALTHY} == {"none"}


def test_a_fault_of_two_ranks_has_two_files() -> None:
    ranks = [case for case in PLANTED if case.fault == "slow-rank"]
    assert {tuple(options.rank for options in case.traces) for case in ranks} == {(0, 1)}


def test_a_late_host_is_found_and_the_same_run_without_it_has_nothing_of_it() -> None:
    late = run_case(Case("late", (LATE,)))
    assert (late.place, late.rule, late.launches) == (1, "idle_device", 4 * 33)
    calm = run_case(Case("calm", (replace(LATE, fault="none"),)))
    assert (calm.place, calm.rule) == (None, None)
    assert "idle_device" not in {each["rule"] for each in calm.findings}


@pytest.mark.parametrize(
    ("only", "kind", "case", "heading"),
    [
        ("8B, Nsight", "healthy", "8B, Nsight Systems", "| healthy trace |"),
        ("eager, 1B", "planted", "eager, 1B model, 128 requests", "| fault | trace |"),
    ],
)
def test_the_command_prints_json_and_tables(
    only: str, kind: str, case: str, heading: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--only", only, "--layers", "2", "--misses"]) == 0
    out, err = capsys.readouterr()
    answers = json.loads(out)
    assert {name: [each["case"] for each in answers[name]] for name in ("healthy", "planted")} == {
        "healthy": [],
        "planted": [],
        kind: [case],
    }
    assert heading in err
