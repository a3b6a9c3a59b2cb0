"""Every planted fault is named first or second by its rule, and a healthy run by none; small traces, one a fault."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tools.kineto_maker import Options, write_trace
from tools.kineto_maker.faults import FAULTS, Fault

import inferometer
from inferometer.findings.engine import find_findings, known_rules
from inferometer.findings.finding import Finding
from inferometer.findings.rule import NEEDED

BASE = Options(steps=16, layers=8, prefill_every=5, mode="graph", batch=64, lean=True, marks="vllm")


def found(folder: Path, options: Options) -> tuple[Finding, ...]:
    paths = [folder / f"rank{rank}.json" for rank in range(options.world)]
    for rank, path in enumerate(paths):
        with path.open("wb") as file:
            write_trace(replace(options, rank=rank), file)
    with inferometer.open(folder if len(paths) > 1 else paths[0], NEEDED) as trace:
        return find_findings(trace).findings


def grave(findings: tuple[Finding, ...]) -> Iterator[str]:
    return (finding.rule for finding in findings if finding.severity != "info")


def test_every_rule_of_a_fault_is_known() -> None:
    assert {planted.rule for planted in FAULTS.values()} <= set(known_rules())


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_first_or_second(fault: Fault, tmp_path: Path) -> None:
    planted = FAULTS[fault]
    batches = (64, 32) if planted.batches > 1 else ()
    options = replace(BASE, mode=planted.modes[-1], world=planted.world, lockstep=True, batches=batches, fault=fault)
    findings = found(tmp_path, options)
    assert planted.rule in list(grave(findings))[:2], [finding.title for finding in findings]


def test_a_healthy_run_has_nothing_above_info(tmp_path: Path) -> None:
    assert list(grave(found(tmp_path, BASE))) == []


def test_two_healthy_ranks_have_only_what_tensor_parallelism_exposes(tmp_path: Path) -> None:
    findings = found(tmp_path, replace(BASE, world=2, lockstep=True))
    assert [(it.rule, it.severity) for it in findings if it.severity != "info"] == [("exposed_collectives", "low")]
