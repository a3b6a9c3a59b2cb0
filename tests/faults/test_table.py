"""The table of results counts right and wrong answers as they are."""

from types import SimpleNamespace
from typing import Any

from benchmarks.faults import faults_table, judge, misses, nulls_table, others_table
from tests.faults.case import Case


def answer(verdict: str, *classes: str) -> Any:
    causes = [SimpleNamespace(metric="m", device="host", cause_class=name) for name in classes]
    return lambda base, candidate: SimpleNamespace(verdict=verdict, causes=causes)


def test_answers_are_counted_by_class_and_severity() -> None:
    cases = [Case(f"fault/disk/medium/{i}", ("disk",), extended=True, cycles=(5, 5)) for i in range(4)]
    answers = [
        answer("cause named", "disk", "network"),
        answer("cause named", "network", "disk"),
        answer("cause not measured", "disk"),
        answer("no difference"),
    ]
    outcomes = [judge(case, said) for case, said in zip(cases, answers, strict=True)]
    row = "| 4 | 50 % (2/4) | 1 | 1 | cause not measured 1, no difference 1 |"
    assert faults_table(outcomes)[2:] == [f"| disk | medium {row}", f"| all | medium {row}"]
    assert [line.split(":")[0] for line in misses(outcomes)] == [f"- {case.name}" for case in cases[1:]]


def test_a_cause_named_in_a_null_is_a_false_alarm() -> None:
    alarm = judge(Case("null/small/0"), answer("cause named", "disk"))
    quiet = judge(Case("null/small/1"), answer("no difference", "disk"))
    assert nulls_table([alarm, quiet])[2] == "| small | 2 | 50 % (1/2) | no difference 1 |"


def test_a_wrong_cause_of_a_swapped_pair_is_counted() -> None:
    swapped = Case("swapped/disk", ("disk",), swapped=True)
    outcomes = [judge(swapped, answer("improvement", "disk")), judge(swapped, answer("cause named", "disk"))]
    expected = "| swapped | 2 | 50 % (1/2) | 1 | improvement 1, cause named 1 |"
    assert others_table(outcomes)[2] == expected
