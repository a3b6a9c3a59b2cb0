"""Damage of any kind to any sample of every registered format: an answer with counted losses, or an `InputError`.

Hypothesis chooses the damage here and makes it smaller where something breaks; `python -m tests.fuzz` does many more.
"""

from contextlib import nullcontext, suppress
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.fuzz.case import damage_sample, run_case
from tests.fuzz.subjects import Subject, subjects, write

from inferometer.errors import InputError
from inferometer.formats.base import known_formats

every_subject = pytest.mark.parametrize("subject", subjects(), ids=lambda subject: subject.name)


def test_every_format_is_damaged() -> None:
    assert set(known_formats()) <= {subject.format for subject in subjects()}


@every_subject
def test_a_whole_sample_is_no_refusal(subject: Subject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Else each damage of it would be refused for another reason; but what stands in an output's way may refuse it."""
    if subject.name in ("chat-template", "tokenizer"):
        pytest.importorskip("tokenizers")
    for seed, sample in enumerate(subject.samples()):
        with suppress(InputError) if subject.name in ("output", "dataset") else nullcontext():
            subject.open(write(sample, tmp_path_factory.mktemp("whole")), Random(seed))


@every_subject
@given(rng=st.randoms(use_true_random=False))
@settings(examples(15), suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_any_damage_is_an_answer_or_an_input_error(subject: Subject, rng: Random) -> None:
    case = damage_sample(rng, subject)
    outcome = run_case(case, Random(1))
    assert outcome.kind != "defect", f"{case}\n{outcome.text}"
