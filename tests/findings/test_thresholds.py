"""Thresholds of rules: what may be set, that findings follow, and that what differs is told."""

import sys
from pathlib import Path
from typing import Any

import pytest

import inferometer
from inferometer.errors import InputError
from inferometer.findings.engine import find_findings, known_rules
from inferometer.findings.finding import Scale, changed_thresholds
from inferometer.findings.thresholds import changed_of, check_thresholds, thresholds_of

DECLARED = {"a.low": 0.1, "a.medium": 0.2, "a.high": 0.4, "a.other.low": 0.05, "b.low": 0.0}
RULES = known_rules()


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_rule_declares_every_scale_of_its_module_under_its_name(rule: Any) -> None:
    module = sys.modules[rule.find.__module__]
    assert {id(each) for each in vars(module).values() if isinstance(each, Scale)} <= {id(each) for each in rule.scales}
    assert all(name.split(".")[0] == rule.name for name in thresholds_of([rule]))


def test_names_are_of_one_threshold_each() -> None:
    names = [name for rule in RULES.values() for scale in rule.scales for name in scale.thresholds]
    assert len(names) == len(set(names)) > 70
    assert thresholds_of(RULES.values())["idle_device.low"] == 0.12


def test_a_scale_judges_by_what_is_set_meanwhile() -> None:
    scale = Scale("a", low=0.1, medium=0.2)
    with changed_thresholds({"a.low": 0.15, "b.medium": 0.0}):
        assert [scale.severity(share) for share in (0.1, 0.15, 0.2)] == [None, "low", "medium"]
        assert scale.least == 0.15
    assert (scale.severity(0.1), scale.least) == ("low", 0.1)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"a.lo": 0.1}, "here: there is no threshold 'a.lo'; did you mean 'a.low'?\n  `inferometer rules` lists them."),
        ({"zzz": 0.1}, "here: there is no threshold 'zzz'\n"),
        ({"a.low": "0.1"}, "here: a.low: expected a share of time from 0 to 1, found '0.1'"),
        ({"a.low": True}, "here: a.low: expected a share of time from 0 to 1, found True"),
        ({"a.low": float("nan")}, "here: a.low: expected a share of time from 0 to 1, found nan"),
        ({"a.low": 12}, "here: a.low: expected a share of time from 0 to 1, found 12"),
        ({"a.low": -0.1}, "here: a.low: expected a share of time from 0 to 1, found -0.1"),
        ({"a.low": 0.3}, "here: a.low is 0.3, above a.medium, 0.2\n  Set a.medium, too."),
        ({"a.high": 0.1}, "here: a.medium is 0.2, above a.high, 0.1\n  Set a.medium, too."),
    ],
)
def test_what_cant_be_set_is_refused(given: dict[str, Any], error: str) -> None:
    with pytest.raises(InputError) as refused:
        check_thresholds(given, DECLARED, where="here")
    assert str(refused.value).startswith(error)


def test_what_is_set_to_the_rules_own_is_no_change() -> None:
    own = thresholds_of(RULES.values())
    assert changed_of(RULES.values(), own) == ()
    (changed,) = changed_of(RULES.values(), {**own, "idle_device.low": 0.2})
    assert (changed.name, changed.value, changed.default) == ("idle_device.low", 0.2, 0.12)


def test_findings_of_a_real_trace_follow_and_say_so(shared_data: Path) -> None:
    """The device of this trace is idle for 3.5 % of its time between launches: below the rule's own 12 %."""
    with inferometer.open(shared_data / "traces/kineto/h100_qwen1.5-0.5b.json.gz") as trace:
        usual = find_findings(trace)
        found = find_findings(trace, thresholds={"idle_device.low": 0.01, "casts_and_copies.medium": 0.19})
    assert "idle_device" not in {finding.rule for finding in usual.findings}
    assert usual.as_json()["thresholds"] == []
    idle = [finding for finding in found.findings if finding.rule == "idle_device"]
    assert idle
    for finding in idle:
        assert finding.severity == "low"
        assert finding.share is not None
        assert 0.01 <= finding.share < 0.12
        said = "Judged by thresholds of the settings: idle_device.low 1.0 % in place of 12.0 %."
        assert finding.evidence[-1] == said
    severities = [
        next(finding.severity for finding in each.findings if finding.rule == "casts_and_copies")
        for each in (usual, found)
    ]
    assert severities == ["medium", "low"]
    assert found.as_json()["thresholds"] == [
        {"name": "idle_device.low", "value": 0.01, "default": 0.12},
        {"name": "casts_and_copies.medium", "value": 0.19, "default": 0.08},
    ]
    others = [finding for finding in found.findings if finding.rule not in ("idle_device", "casts_and_copies")]
    assert not [finding for finding in others if "thresholds of the settings" in " ".join(finding.evidence)]
