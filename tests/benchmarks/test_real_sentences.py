"""The verdicts on what commands say of real traces: how they are counted, and that every text has one.

Texts of the real traces need the shared captures. `python -m benchmarks.real_sentences` judges all commands.
"""

import tomllib
from functools import cache
from pathlib import Path

import pytest
from benchmarks import real_sentences
from benchmarks.real_sentences import (
    Loss,
    Said,
    Verdict,
    as_toml,
    bars,
    captures,
    gone,
    place_of,
    read_verdicts,
    said_of,
    unjudged,
)

JUDGED = ("calls", "findings", "groups", "steps", "summary", "timeline")

IDLE = Said("a", "findings", "idle_device", "It waits.")
CASTS = Said("a", "findings", "casts_and_copies", "It casts.")
STEP = Said("a", "steps", "", "A step takes 1 ms.")
WAITS, TAKES = (Verdict(said, "true", "recounted") for said in (IDLE, STEP))
NOT_MET = "steps: 1 texts, 0 true, {} misleading ({}), {} false, {} without a verdict: NOT met."


def test_the_bars_are_met_where_every_text_is_true() -> None:
    assert bars([STEP], [TAKES], []) == (
        [
            "steps: 1 texts, 1 true, 0 misleading (0.0 %), 0 false, 0 without a verdict: met.",
            "Largest loss first or second where there is one: met.",
        ],
        True,
    )


@pytest.mark.parametrize(
    ("verdicts", "line"),
    [
        ([Verdict(STEP, "false", "it takes 2 ms")], NOT_MET.format(0, "0.0 %", 1, 0)),
        ([Verdict(STEP, "misleading", "one step of two is empty")], NOT_MET.format(1, "100.0 %", 0, 0)),
        ([], NOT_MET.format(0, "0.0 %", 0, 1)),
    ],
)
def test_the_bars_are_not_met_by(verdicts: list[Verdict], line: str) -> None:
    lines, good = bars([STEP], verdicts, [])
    assert (lines[0], good) == (line, False)


def test_one_misleading_text_of_twenty_is_as_many_as_may_be() -> None:
    said = [Said("a", "steps", "", f"{number}") for number in range(20)]
    verdicts = [Verdict(each, "misleading" if each.text == "0" else "true", "read") for each in said]
    assert bars(said, verdicts, [])[1]
    assert not bars(said[:19], verdicts[:19], [])[1]


def test_the_place_of_a_loss_is_that_of_the_first_finding_that_names_it() -> None:
    said = [STEP, Said("b", "findings", "casts_and_copies", "It casts."), IDLE, CASTS]
    assert place_of(Loss("a", "casts", ("exposed_copies", "casts_and_copies")), said) == 2
    assert place_of(Loss("a", "launches", ("launch_bound",)), said) is None


@pytest.mark.parametrize(
    ("rules", "good"), [(("casts_and_copies",), True), (("launch_bound",), False), ((), True)], ids=str
)
def test_the_largest_loss_has_to_be_named_where_there_is_one(rules: tuple[str, ...], good: bool) -> None:
    verdicts = [WAITS, Verdict(CASTS, "true", "recounted")]
    lines, reached = bars([IDLE, CASTS], verdicts, [Loss("a", "casts", rules)])
    assert reached is good
    assert ("a: casts is not among the first 2 findings." in lines) is not good


def test_a_text_that_changes_has_to_be_judged_again() -> None:
    changed = Said("a", "steps", "", "A step takes 2 ms.")
    assert unjudged([IDLE, changed], [WAITS, TAKES]) == [changed]
    assert gone([IDLE, changed], [WAITS, TAKES]) == [TAKES]


@pytest.mark.parametrize("text", ["One.", 'Two "quoted"\nlines, \\ and """three""".', 'Ends with a quote"'])
def test_a_row_of_the_file_is_read_as_it_was_said(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = [Said("a", "findings", "idle_device", text), Said("a", "steps", "", text)]
    path = tmp_path / "verdicts.toml"
    path.write_text("\n".join(as_toml(each, "true", "recounted") for each in said), "utf-8")
    assert [row["text"] for row in tomllib.loads(path.read_text("utf-8"))["said"]] == [text, text]
    monkeypatch.setattr(real_sentences, "VERDICTS", path)
    assert read_verdicts() == ([Verdict(each, "true", "recounted") for each in said], [])


@pytest.mark.parametrize(("verdict", "reason"), [("true", ""), ("", "recounted"), ("fine", "recounted")])
def test_a_row_without_a_verdict_and_its_reason_is_an_error(
    verdict: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "verdicts.toml"
    path.write_text(as_toml(STEP, verdict, reason), "utf-8")
    monkeypatch.setattr(real_sentences, "VERDICTS", path)
    with pytest.raises(ValueError, match=r"a, steps: expected a verdict with a reason"):
        read_verdicts()


@cache
def every_text() -> list[Said]:
    return [each for path in captures() for each in said_of(path)]


@pytest.mark.parametrize("command", JUDGED)
def test_every_text_of_real_traces_is_judged_and_none_is_false(command: str, shared_data: Path) -> None:
    said = [each for each in every_text() if each.command == command]
    verdicts = [verdict for verdict in read_verdicts()[0] if verdict.said.command == command]
    assert said
    assert unjudged(said, verdicts) == []
    assert gone(said, verdicts) == []
    lines, good = bars(said, verdicts, [])
    assert good, lines


def test_the_largest_loss_of_every_real_trace_is_named_first_or_second(shared_data: Path) -> None:
    losses = read_verdicts()[1]
    assert {loss.trace for loss in losses} == {path.name.removesuffix(".json.gz") for path in captures()}
    places = {loss.trace: place_of(loss, every_text()) for loss in losses if loss.rules}
    assert {trace: place for trace, place in places.items() if place not in (1, 2)} == {}
