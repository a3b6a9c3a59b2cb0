"""The table of recorded faults: what counts as right, and that the page holds what was answered."""

from pathlib import Path
from typing import Any

import pytest
from benchmarks.recorded_faults import Answer, faults_table, missed, nulls_table, page, read_answers, summary

ROOT = Path(__file__).parents[2]
RESULTS = sorted((ROOT / "benchmarks" / "results").glob("recorded_faults-*.json"))
TRUTH = {
    "fault": "eager", "done": "attention in three steps", "verdicts": ["software change"], "causes": ["disk"],
    "names": "softmax", "cores": 2, "others_cores": {"normal": 0.1, "fault": 0.2},
}  # fmt: skip


def answer(verdict: str, why: str = "", cause: str | None = None, **fields: Any) -> Answer:
    truth = TRUTH | {key: fields.pop(key) for key in ("fault", "others_cores", "verdicts") if key in fields}
    rest: dict[str, Any] = {"ratio": 1.2, "interval": (1.1, 1.3), "failed": True}
    return Answer("pair", truth, verdict, why, cause, **rest | fields)


@pytest.mark.parametrize(
    ("found", "judged"),
    [
        (answer("software change", "matmul became softmax"), "right"),
        (answer("software change", "something else"), "wrong"),
        (answer("cause named", cause="disk"), "right"),
        (answer("cause named", cause="network"), "wrong"),
        (answer("cause named", cause="cpu_contention"), "wrong"),
        (answer("cause named", cause="cpu_contention", others_cores={"normal": 0.0, "fault": 0.3}), "right"),
        (answer("host time", "between a and b"), "unnamed"),
        (answer("cause not measured"), "unnamed"),
        (answer("too few samples"), "unnamed"),
        (answer("no difference"), "unnamed"),
        (answer("no difference", verdicts=["no difference"]), "right"),
    ],
)
def test_what_counts_as_right(found: Answer, judged: str) -> None:
    assert found.judged == judged


@pytest.mark.parametrize(
    ("verdict", "others", "alarm"),
    [
        ("cause named", 0.1, True),
        ("software change", 0.1, True),
        ("host time", 0.1, True),
        ("no difference", 0.1, False),
        ("improvement", 0.1, False),
        ("cause named", 0.6, False),
    ],
)
def test_a_false_alarm_is_something_named_in_two_normal_runs(verdict: str, others: float, alarm: bool) -> None:
    found = answer(verdict, fault="none", others_cores={"normal": 0.1, "fault": others})
    assert found.is_false_alarm == alarm
    assert found.is_null == (others < 0.5)


def test_a_longer_step_that_check_passes_is_told() -> None:
    found = answer("no difference", "as long as before", failed=False)
    assert found.slipped_through
    assert not answer("no difference", failed=False, ratio=1.04).slipped_through
    assert not answer("no difference", failed=False, interval=(0.9, 1.5)).slipped_through
    assert [*missed([found])] == ["- pair: no difference. as long as before `--check` passes it."]
    assert "1 of 1 pairs with a fault right or unnamed, 0 wrong; 0 false alarms in 0 pairs" in summary([found])


def test_the_tables_count_each_pair_once() -> None:
    answers = [answer("software change", "softmax"), answer("cause named", cause="network"), answer("x", fault="none")]
    found = "cause named: network 1, software change 1"
    assert faults_table(answers)[2] == f"| eager | attention in three steps | 2 | 1.20 to 1.20 | 1 | 0 | 1 | {found} |"
    assert nulls_table(answers)[2] == "| 1 | 1.20 to 1.20 | 0 | x 1 |"


@pytest.mark.skipif(not RESULTS, reason="no answers are kept")
def test_the_page_holds_the_newest_answers() -> None:
    text = (ROOT / "docs" / "recorded-faults.md").read_text("utf-8")
    answers = read_answers(RESULTS[-1])
    assert "\n".join(page(answers)) in text
    assert RESULTS[-1].name in text
