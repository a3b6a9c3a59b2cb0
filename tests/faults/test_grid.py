"""The grid of synthetic pairs: frozen, split without a look at results, and wide enough."""

import hashlib
from collections import Counter

from tests.faults.case import HARDWARE_FAULTS, SEVERITIES, Case
from tests.faults.grid import CASES

FROZEN = "6e6d18498fea8e8d"


def test_names_seeds_and_fields_are_frozen() -> None:
    """A change here changes what was promised before the method's thresholds were set."""
    text = "\n".join(f"{case.seed} {case.split} {case!r}" for case in CASES)
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == FROZEN


def test_every_name_and_seed_is_used_once() -> None:
    assert len({case.name for case in CASES}) == len({case.seed for case in CASES}) == len(CASES)


def test_every_class_and_severity_is_in_both_splits() -> None:
    found = {(case.split, case.faults[0], case.severity) for case in CASES if case.name.startswith("fault/")}
    assert found == {(s, f, v) for s in ("development", "held_out") for f in HARDWARE_FAULTS for v in SEVERITIES}


def test_the_splits_are_about_as_large() -> None:
    shares = Counter(case.split for case in CASES)
    assert 0.4 < shares["held_out"] / len(CASES) < 0.6


def test_a_fault_in_sight_is_to_be_named_and_one_out_of_sight_is_not() -> None:
    seen = Case("x", ("disk",))
    assert seen.classes == {"disk"}
    assert seen.verdicts == {"cause named"}
    unseen = Case("x", ("disk",), cause_recorded=False)
    assert not unseen.classes
    assert unseen.verdicts == {"cause not measured", "no difference"}


def test_few_samples_may_be_said() -> None:
    assert Case("x", ("disk",), ticks=(5, 9)).verdicts == {"cause named", "too few samples"}
    assert Case("x", cycles=(5, 9)).verdicts == {"no difference", "too few samples"}


def test_a_null_and_a_software_change_name_no_cause() -> None:
    for faults, verdict in (((), "no difference"), (("fused_kernel",), "software change")):
        assert not Case("x", faults).classes
        assert Case("x", faults).verdicts == {verdict}


def test_a_pair_that_got_better_names_no_cause() -> None:
    better = Case("x", ("disk",), swapped=True)
    assert not better.classes
    assert "cause named" not in better.verdicts
