"""Counts of what was lost or mended: their order, their sums, their way to JSON and back."""

import json

import pytest

from inferometer.trace.losses import KINDS, Kind, Losses


def example() -> Losses:
    losses = Losses({"launches", "ops"})
    losses.see("kernel", 5)
    losses.see("cpu_op", 2)
    losses.count("without_duration", 2, category="kernel", example="first")
    losses.count("without_duration", category="kernel", example="second")
    losses.count("without_duration", category="cpu_op")
    losses.count("control_character", 9)
    losses.count("broken_compression", example="at byte 7")
    return losses


def test_the_gravest_come_first_then_the_most_frequent() -> None:
    assert [(loss.name, loss.category, loss.count) for loss in example()] == [
        ("without_duration", "kernel", 3),
        ("broken_compression", None, 1),
        ("without_duration", "cpu_op", 1),
        ("control_character", None, 9),
    ]


def test_the_first_example_is_kept() -> None:
    assert [loss.example for loss in example()] == ["first", "at byte 7", None, None]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("two\nlines\r\n\tand  spaces", "two lines and spaces"),
        ("\x1b[2Jcleared\u202e", r"\x1b[2Jcleared\u202e"),
        ("x" * 120, "x" * 120),
        ("x" * 121, "x" * 119 + "…"),
        ("HF_HOME=/cache HF_TOKEN=hf_madeUpForThisTest0", "HF_HOME=/cache HF_TOKEN=***"),
        ("at hf_" + "AbCdEfGhIj" * 3 + "Kl12: expected }", "at ***: expected }"),
        ("Authorization: Bearer made.up.for.this", "Authorization: Bearer ***"),
        ("https://me:synthetic@host/x", "https://***@host/x"),
        ("token_embedding_kernel<float>: 1,600 ns", "token_embedding_kernel<float>: 1,600 ns"),
        ("max_tokens: 5", "max_tokens: 5"),
    ],
)
def test_an_example_is_one_short_line_without_secrets(text: str, shown: str) -> None:
    losses = Losses()
    losses.count("trailing_data", example=text)
    assert [loss.example for loss in losses] == [shown]
    assert [loss.example for loss in Losses.from_dict(losses.as_dict())] == [shown]


def test_a_secret_that_is_cut_in_two_is_hidden() -> None:
    losses = Losses()
    losses.count("trailing_data", example="x" * 100 + " hf_" + "AbCdEfGhIj" * 3 + "Kl12")
    assert [loss.example for loss in losses] == ["x" * 100 + " ***"]


def test_totals_by_name_and_by_category() -> None:
    losses = example()
    assert (losses.total(), losses.total("without_duration"), losses.total(category="kernel")) == (14, 4, 3)
    assert losses.total("without_duration", category="cpu_op") == 1
    assert losses.total("unknown_phase") == 0


def test_dropped_events_are_those_without_a_row() -> None:
    losses = example()
    assert (losses.dropped(), losses.dropped("kernel"), losses.dropped("python_function")) == (4, 3, 0)


def test_nothing_lost_is_nothing_counted() -> None:
    losses = Losses()
    losses.count("truncated", 0)
    losses.count("truncated", -1)
    assert len(losses) == 0
    assert list(losses) == []


def test_a_name_that_nobody_declared_is_a_bug() -> None:
    with pytest.raises(KeyError):
        Losses().count("no_such_loss")


def test_another_package_may_bring_its_own_kind() -> None:
    losses = Losses()
    losses.count("odd_clock", kind=Kind("odd_clock", "warning", "The clock runs backwards.", dropped=True))
    assert losses.dropped() == 1


def test_plain_data_and_back_is_the_same() -> None:
    losses = example()
    again = Losses.from_dict(json.loads(json.dumps(losses.as_dict())))
    assert again == losses
    assert again.as_dict() == losses.as_dict()
    assert (again.scope, again.seen) == (losses.scope, losses.seen)


def test_a_name_of_a_later_version_keeps_its_severity_and_its_drops() -> None:
    data = example().as_dict()
    later = {
        "name": "from_the_future",
        "severity": "info",
        "count": 40,
        "dropped": True,
        "category": "kernel",
        "example": None,
    }
    again = Losses.from_dict(data | {"entries": [*data["entries"], later]})
    assert later in again.as_dict()["entries"]
    assert again.dropped("kernel") == 43
    assert {loss.meaning for loss in again if loss.name == later["name"]} == {""}


def test_what_a_store_of_before_calls_an_error_is_a_warning() -> None:
    entry = {"severity": "error", "count": 1, "dropped": True, "category": None, "example": None}
    data = {"scope": [], "events": {}, "entries": [{"name": name, **entry} for name in ("unreadable_event", "gone")]}
    assert {loss.severity for loss in Losses.from_dict(data)} == {"warning"}


def test_counts_differ_when_anything_differs() -> None:
    other = example()
    other.see("kernel")
    assert other != example()
    assert example() != "losses"


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_kind_says_what_it_means(kind: Kind) -> None:
    assert kind.meaning.endswith(".")
    assert kind.severity in ("info", "warning")
