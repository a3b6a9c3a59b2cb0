"""The published comparison as Markdown: cell by cell that of the seed, and harmless whatever a file says."""

import csv
import io
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest
from tests.latencyprism_files import perf_row, write_run
from tests.reports.conftest import HOSTILE

import inferometer
from inferometer.analyses.latencyprism.comparison import NEEDED, Published, published
from inferometer.reports.delimited import render_csv
from inferometer.reports.published import render_published
from inferometer.reports.terminal import render_terminal

SCENARIO = "Processed\\SGLang\\cpu_frequency_reduction"
ONE = [("10.0", "1.0"), ("12.0", "2.0"), ("14.0", "6.0")]
TWO = [("40.0", "3.0"), ("41.0", "9.0")]


def run_at(folder: Path, values: Sequence[tuple[str, str]], **others: str) -> Path:
    rows = [
        perf_row(cycle=i, beta_pct=beta, mu_pct=mu, anchor_dur_us=f"{1000 + i}.25", **others)
        for i, (beta, mu) in enumerate(values)
    ]
    return write_run(folder, rows)


def compared(base: Path, candidate: Path, **options: str) -> Published:
    return published(inferometer.open(base, NEEDED), inferometer.open(candidate, NEEDED), **options)  # type: ignore[arg-type]


@pytest.fixture
def small(tmp_path: Path) -> Published:
    return compared(run_at(tmp_path / "slow/normal", ONE), run_at(tmp_path / "slow/abnormal", TWO), scenario="slow")


@pytest.fixture(scope="module")
def of_seed(shared_data: Path) -> Published:
    folder = shared_data / "latencyprism/SGLang/cpu_frequency_reduction"
    return compared(folder / "normal", folder / "abnormal", scenario=SCENARIO)


@pytest.fixture(scope="module")
def seed(seeds: Path) -> str:
    (path,) = seeds.glob("001_*.txt")
    return path.read_text("utf-8")


def lines_that_begin(text: str, start: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(start)]


def tables_of(text: str) -> list[list[str]]:
    """The lines of each table; of the last, by score and name, since equal scores stand in any order."""
    tables = [found.splitlines() for found in re.findall(r"(?:^\|.*(?:\n|$))+", text, re.MULTILINE)]
    head, body = tables[-1][:2], tables[-1][2:]
    return [*tables[:-1], [*head, *sorted(body)]]


def numbers_in(text: str) -> list[str]:
    """Numbers in the key findings, in order."""
    findings = text.partition("### Key Findings:")[2].partition("*Note")[0]
    return re.findall(r"(?<![\w.])[-+]?\d+\.\d+", findings)


def test_a_small_report(small: Published, golden: Callable[[str, str], None]) -> None:
    golden("published.md", render_published(small))


def test_runs_that_are_alike_have_no_findings(tmp_path: Path) -> None:
    run = run_at(tmp_path / "a", ONE)
    text = render_published(compared(run, run))
    assert "No row of the comparison of `base_pid_7` with `candidate_pid_7` has a Suspicion Score above 10." in text
    assert "### Key Findings:\n- None." in text


def test_several_pairs_are_reports_one_below_the_other(tmp_path: Path) -> None:
    rows = [perf_row(pid=pid, cycle=cycle) for pid in (1, 2) for cycle in (1, 2)]
    run = write_run(tmp_path, rows)
    text = render_published(compared(run, run))
    assert len(lines_that_begin(text, "# Strict Performance Comparison")) == 2
    assert text.count("## 5. Legend") == 2


def test_nothing_from_a_file_breaks_a_table_or_drives_a_terminal(tmp_path: Path) -> None:
    runs = []
    for name, beta in (("a", 1), ("b", 50)):
        rows = [
            perf_row(
                cycle=cycle, function_name=text or "x", metric_name=text or "x", beta_pct=beta + cycle, mu_pct=cycle
            )
            for text in HOSTILE
            for cycle in (1, 2)
        ]
        runs.append(write_run(tmp_path / name, rows))
    text = render_published(compared(*runs))
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\u2066]", text)
    for table in tables_of(text):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table}) == 1


def test_the_csv_has_the_published_titles_and_every_digit(small: Published) -> None:
    (row,) = csv.DictReader(io.StringIO(render_csv(small)))
    assert row["Function Name"] == "oncpu"
    assert float(row["β_normal_pid_7(%)"]) == 12.0
    assert float(row["Suspicion Score"]) == small.comparisons[0].table["score"][0]


def test_the_json_is_plain_and_null_where_a_test_says_nothing(tmp_path: Path) -> None:
    run = run_at(tmp_path / "a", [("1.0", "1.0")] * 2)
    data = json.loads(msgspec.json.encode(compared(run, run).as_json()))
    (found,) = data["comparisons"]
    assert found["table"][0]["p-value(β)"] is None
    assert found["base"] == {"label": "base_pid_7", "process": 7, "cycles": 2, "mean_cycle_us": 1000.75}
    assert found["cycle_ranks"][0] == {"rank": 1, "base_us": 1001.25, "candidate_us": 1001.25}


def test_it_prints_on_a_terminal_too(small: Published) -> None:
    assert "Published comparison" in render_terminal(small, is_terminal=False)


def test_the_headings_are_the_seeds(of_seed: Published, seed: str) -> None:
    assert lines_that_begin(render_published(of_seed), "#") == lines_that_begin(seed, "#")


def test_the_tables_are_the_seeds_to_the_last_space(of_seed: Published, seed: str) -> None:
    ours, theirs = tables_of(render_published(of_seed)), tables_of(seed)
    assert [len(table) for table in theirs] == [4, 240, 266]
    assert ours == theirs


def test_the_numbers_of_the_findings_are_the_seeds(of_seed: Published, seed: str) -> None:
    assert numbers_in(render_published(of_seed)) == numbers_in(seed)
    assert len(numbers_in(seed)) == 26


def test_the_words_are_our_own(of_seed: Published, seed: str) -> None:
    prose = [
        line for line in seed.splitlines() if len(line) > 60 and not line.startswith(("|", "#", "- **`", "    - **`"))
    ]
    assert len(prose) > 10
    assert not set(prose) & set(render_published(of_seed).splitlines())
