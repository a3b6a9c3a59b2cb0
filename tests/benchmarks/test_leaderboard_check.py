"""The simulation of `leaderboard --check`: its outcomes are what the guide quotes, and they meet the bars they say."""

from pathlib import Path

import pytest
from benchmarks.leaderboard_check import (
    BEGIN,
    CASES,
    END,
    LEAST_FOUND,
    MOST_FALSE,
    Outcome,
    draw_pair,
    main,
    read_outcomes,
    shapes_of,
    table,
    with_table,
    write_outcomes,
)

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "leaderboard_check.json"
PAGE = ROOT / "docs" / "guide" / "which-kernel-is-best.md"


def test_the_guide_quotes_the_outcomes() -> None:
    assert with_table(PAGE.read_text("utf-8"), read_outcomes(RESULTS)) == PAGE.read_text("utf-8")


def test_outcomes_are_of_all_cases_and_the_first_meets_its_bars_over_a_thousand_pairs() -> None:
    outcomes = read_outcomes(RESULTS)
    assert tuple(each.case for each in outcomes) == CASES
    first = outcomes[0]
    assert (first.unchanged, first.case.size, first.case.base) == (1000, 0.01, True)
    assert first.false_share <= MOST_FALSE
    assert first.found_share >= LEAST_FOUND


def test_what_misses_a_bar_is_bold(tmp_path: Path) -> None:
    outcomes = [Outcome(CASES[0], 100, 5, 50, 48), Outcome(CASES[1], 100, 6, 50, 47)]
    first, second = table(outcomes).splitlines()[2:4]
    assert first == "| normal noise and drift | 100 | 5.0 % | 50 | 96.0 % |"
    assert second == "| lognormal noise | 100 | **6.0 %** | 50 | **94.0 %** |"
    kept = tmp_path / "out.json"
    kept.write_text(write_outcomes(outcomes), "utf-8")
    assert read_outcomes(kept) == outcomes
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    assert with_table(page, outcomes) == f"before\n{BEGIN}\n\n{table(outcomes)}\n\n{END}\nafter\n"
    with pytest.raises(SystemExit, match="expected the lines"):
        with_table("no marks", outcomes)


def test_a_seed_draws_the_same_pair_and_the_planted_operator_takes_longer() -> None:
    case = CASES[0]
    shapes = shapes_of(case)
    one, again = (draw_pair(case, shapes, 5, planted=True) for _ in range(2))
    assert one.after.tobytes() == again.after.tobytes()
    ratio = one.after[:, 0] / one.before[:, 0]
    assert ratio[shapes.numbers == one.chosen].mean() == pytest.approx(1.05, abs=0.03)
    assert ratio[shapes.numbers != one.chosen].mean() == pytest.approx(1, abs=0.01)


def test_fewer_than_one_pair_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--runs", "0"])
    assert "--runs, --others: expected 1 or more, found 0, 1000" in capsys.readouterr().err
