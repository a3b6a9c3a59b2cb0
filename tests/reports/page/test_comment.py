"""Two runs as a comment: the verdict first, sixty lines to see, the rest folded, all of it small and harmless."""

import re
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from tests.analyses.compare.run_traces import GEMM, LAYER, kernel_run
from tests.analyses.compare.test_slower import around, run_of
from tests.reports.conftest import HOSTILE

import inferometer
from inferometer import Trace
from inferometer.analyses.compare.comparison import Comparison, compare
from inferometer.reports.page.blocks import Block, Grid
from inferometer.reports.page.comment import render_comment
from inferometer.reports.page.look import PageData
from inferometer.reports.page.section import build_blocks
from inferometer.reports.views.layout import Field, Section

SAMPLES = Path(__file__).resolve().parents[3] / "samples"
PAIRS = {
    "cause": ("recorded/disk/normal.ifm", "recorded/disk/fault.ifm", "Slower"),
    "same": ("recorded/none/normal.ifm", "recorded/none/fault.ifm", "No difference"),
    "faster": ("h200/kineto_eager.json.gz", "h200/kineto_graph.json.gz", "Faster"),
    "other device": ("decode.json.gz", "h200/kineto_graph.json.gz", "Not comparable"),
    "functions timed by cycle": ("slow/normal", "slow/abnormal", "Slower"),
}


def opened(name: str) -> tuple[Trace, Trace]:
    base, candidate, _ = PAIRS[name]
    return inferometer.open(SAMPLES / base), inferometer.open(SAMPLES / candidate)


def seen(text: str) -> list[str]:
    """The lines before anything is unfolded: of what is folded, what it is folded behind."""
    unfolded = re.sub(r"(?ms)^<details>\n(<summary>.*?</summary>)$.*?^</details>$", r"\1", text)
    assert "details>" not in unfolded
    return unfolded.splitlines()


@pytest.fixture(scope="module", params=PAIRS)
def page(request: pytest.FixtureRequest) -> tuple[str, Comparison, str]:
    look = PageData(*opened(request.param))
    assert look.comparison is not None
    return (
        render_comment(look.comparison, build_blocks(look, is_beside=False), title="t"),
        look.comparison,
        PAIRS[request.param][2],
    )


def test_sixty_lines_are_seen_and_the_whole_fits_into_a_comment(page: tuple[str, Comparison, str]) -> None:
    text, _, _ = page
    assert len(seen(text)) <= 60
    assert len(text.encode()) <= 60_000


def test_verdict_reasons_and_table_come_first(page: tuple[str, Comparison, str]) -> None:
    text, found, outcome = page
    title, verdict, reasons, heading, *_ = text.split("\n\n")
    assert title == "# t"
    assert verdict.startswith(f"**{outcome}: ")
    assert 1 <= len(reasons.splitlines()) <= 5
    assert reasons.startswith(f"- **{found.verdict.capitalize()}**: ")
    assert heading.startswith("### ")


def test_each_fold_has_an_empty_line_where_markdown_needs_one(page: tuple[str, Comparison, str]) -> None:
    text, _, _ = page
    folds = text.count("<details>")
    assert folds >= 3
    assert text.count("</summary>\n\n") == text.count("\n\n<details>\n<summary>") == folds
    assert len(re.findall(r"\n\n</details>\n", text)) == folds


@pytest.mark.parametrize("name", ["cause", "same"])
def test_the_verdict_says_of_marked_steps_what_their_times_say(name: str) -> None:
    """The recorded steps themselves, added up here: their ratio lies in the interval, and the times have its ratio."""
    runs = opened(name)
    text = render_comment(compare(*runs), [], title="t")
    match = re.search(r"(\d\.\d+) times .* \(95 %: (\S+) to (\S+)\), (\S+) ms -\\> (\S+) ms", text.splitlines()[2])
    assert match is not None
    ratio, low, high, before, after = map(float, match.groups())
    means = [run.steps.filter(pl.col("phase") == "decode").select(pl.col("dur_ns").mean()).collect() for run in runs]
    raw = means[1].item() / means[0].item()
    assert low <= raw <= high
    assert ratio == pytest.approx(raw, abs=0.015)
    assert ratio == pytest.approx(after / before, abs=0.001)


@pytest.mark.parametrize(
    ("candidate", "outcome"),
    [
        (around(100, seed=1), "no difference"),
        (around(106, seed=1), "slower"),
        (around(90, seed=1), "faster"),
        (around(106, spread=0.1, seed=1), "can't tell"),  # the mean may be longer by chance
        ([*around(100, steps=50, seed=1), *[160.0] * 10], "can't tell"),  # a few steps are longer
        ([100.0], "can't tell"),
    ],
)
def test_it_is_never_surer_than_the_comparison(candidate: list[float], outcome: str) -> None:
    found = compare(run_of(around(100)), run_of(candidate))
    assert found.outcome == outcome
    assert found.as_json()["outcome"] == outcome
    assert render_comment(found, [], title="t").splitlines()[2].startswith(f"**{outcome.capitalize()}: ")
    assert ("The step is slower" in found.judged.why) == (outcome == "slower")
    assert ("The step is faster" in found.judged.why) == (outcome == "faster")


def test_a_changed_function_in_a_step_as_long_as_before_is_no_clear_difference() -> None:
    """A kernel is renamed and longer by a hundredth of the step."""
    layer = [("other_kernel", 20_500) if name == GEMM else (name, dur_ns) for name, dur_ns in LAYER]
    found = compare(kernel_run(noise=0.001, steps=40), kernel_run(layer, noise=0.001, steps=40, seed=1))
    assert (found.verdict, found.outcome) == ("software change", "no clear difference")


def test_a_real_run_with_a_cause_in_a_step_as_long_as_before_says_both(shared_data: Path) -> None:
    """One of eight GPUs is slow, and the host had time to spare: 1.022 times, from 1.002 on."""
    runs = [shared_data / "latencyprism" / "vLLM" / "gpu_instability" / run for run in ("normal", "abnormal")]
    text = render_comment(compare(*map(inferometer.open, runs)), [], title="t")
    _, verdict, reasons, *_ = text.split("\n\n")
    assert verdict.startswith(
        "**No clear difference: 1.022 times the base's mean time of a step (95 %: 1.002 to 1.042)"
    )
    assert "not clearly by more than runs of one program differ" in reasons
    assert "gpu\\_frequency on gpu:3 went from 1,155 to 210 MHz" in reasons


def test_a_ratio_of_divided_times_says_so() -> None:
    """Whole runs of one kind of layer, twice as many of them in the candidate, and nothing marks a step."""
    base, candidate = (kernel_run(head=[], layers=layers, steps=1, marked=False) for layers in (30, 60))
    found = compare(base, candidate)
    assert found.changes.repair is not None
    assert found.changes.repair.kind == "normalised"
    assert "time of a whole recording, the candidate's divided by 2 (" in render_comment(found, [], title="t")


def block(name: str, rows: int = 1, kernel: str = "gemm") -> Block:
    frame = pl.DataFrame({"count": list(range(rows)), "kernel": [kernel] * rows})
    fields = (Field("count", "Instances", "count"), Field("kernel", "Kernel", "name"))
    return Block(name, f"About {name}", [Grid(Section("Kernels", fields, frame))])


@pytest.fixture
def comparison() -> Comparison:
    return compare(kernel_run(seed=0), kernel_run(seed=1))


def test_sections_are_folded_by_what_they_are_about(comparison: Comparison) -> None:
    blocks = [
        block("facts"),
        block("kernels_base"),
        block("kernels_candidate"),
        Block("steps", "Steps", lacking="Marks."),
    ]
    text = render_comment(comparison, blocks, title="t")
    both, candidate, base, lacking = re.findall(r"(?ms)^<details>\n(.*?)^</details>", text)
    assert ("About facts" in both, "About kernels\\_candidate" in candidate, "About kernels\\_base" in base) == (
        True,
    ) * 3
    assert "- **Steps**: Marks." in lacking


def test_what_has_no_room_is_left_out_from_the_end_and_named(comparison: Comparison) -> None:
    blocks = [
        block("facts"),
        *(block(f"{i}_{side}", 5, "k" * 5_000) for i in range(120) for side in ("base", "candidate")),
    ]
    text = render_comment(comparison, blocks, title="t")
    assert len(text.encode()) <= 60_000
    assert len(seen(text)) <= 60
    *_, last = text.splitlines()
    assert last.startswith("Left out, since a comment has no room for it: About ")
    assert "## About facts" in text
    kept = len(re.findall(r"^## About", text, re.MULTILINE))
    assert 1 < kept < len(blocks)


def test_no_section_at_all_may_fit_and_the_verdict_still_does(comparison: Comparison) -> None:
    lacking = [Block(f"section_{i}", "x" * 100, lacking="y" * 100) for i in range(400)]
    text = render_comment(comparison, lacking, title="t" * 70_000)
    assert len(text.encode()) <= 60_000
    assert "<details>" not in text
    assert "more characters" in text.splitlines()[0]
    assert "no room for it: What this page can't show. " in text


@pytest.mark.parametrize(
    "name",
    [*HOSTILE, "@everyone", "f#12", "{lambda()#1}", "a/b!3", "x~bug", "GH-7", "https://evil.example", "/close", "$x$",
     "www.evil.example", "a|b`c`d\n/merge\n</details>", "user@evil.example"],
)  # fmt: skip
def test_no_name_of_a_file_is_markup_or_calls_anybody_up(name: str) -> None:
    """In the title and in the names of kernels, of which one is new."""
    found = compare(kernel_run(seed=0), kernel_run([*LAYER, (name, 9_000)], seed=1))
    text = render_comment(found, [block("facts", 3, name)], title=name)
    assert text.count("details>") == 2
    for line in (line for line in text.splitlines() if not line.endswith(("details>", "</summary>"))):
        words = line.replace("**", "").replace("<summary>", "").replace("&#8203;", "\u200b")
        assert not re.search(r"(?<!\\)(?:\\\\)*[<`*_~&\[\]{}$]", words)
        assert not re.search(r"[@!#~$&](?=\w)|\bG[HL]-\d|://|\bwww\.|^/", re.sub(r"\\(.)", r"\1", words))
        assert not set("\x1b\x9b\u202e\u2066\r\t") & set(line)
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert all(len({len(re.findall(r"(?<!\\)\|", row)) for row in table.splitlines()}) == 1 for table in tables)


def test_the_page_of_two_runs_is_this_one(golden: Callable[[str, str], None]) -> None:
    runs = opened("same")
    golden("comment.md", render_comment(compare(*runs), [], title="fault.ifm compared with normal.ifm"))
