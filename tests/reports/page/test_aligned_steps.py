"""Steps of two runs on the page: the numbers next to them, the data of the viewer, and the viewer in a browser."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.analyses.compare.run_traces import GEMM, LAYER, kernel_run, timed_run
from tests.reports.page.browser import Tab, find_chromium
from tests.reports.page.comparisons import look, parts, words
from tests.traces import trace_of

import inferometer
from inferometer import Trace
from inferometer.analyses.compare.shown_steps import ShownRun, corresponding, shown_steps
from inferometer.reports.page.blocks import Block, Facts, StepLines
from inferometer.reports.page.document import render_page
from inferometer.reports.page.look import PageData
from inferometer.reports.page.sections import aligned_steps
from inferometer.reports.page.text import render_text
from inferometer.units import format_duration

SAMPLES = Path(__file__).parents[3] / "samples"
EVIL = "</script><script>hacked = 1</script><img src=x onerror='hacked = 1'>\u202e"
RUN = kernel_run()
SLOW = kernel_run([(name, dur * 2 if name == GEMM else dur) for name, dur in LAYER], seed=1)
needs_chromium = pytest.mark.skipif(find_chromium() is None, reason="needs chromium or google-chrome on PATH")


def built(base: Trace, candidate: Trace) -> Block:
    block = aligned_steps.build(look(base, candidate)[0])
    assert block is not None
    return block


def lines(block: Block) -> StepLines:
    (found,) = parts(block, StepLines)
    return found


def unpacked(side: dict[str, Any], place: int) -> list[tuple[str, int, int, str | None, int, int]]:
    """The boxes of a step, as the analysis has them."""
    step, ends, boxes = side["steps"][place], dict[int, int](), []
    for at in range(0, len(step["boxes"]), 4):
        stream, gap, dur, kernel = step["boxes"][at : at + 4]
        start = ends.get(stream, 0) + gap
        ends[stream] = start + dur
        launches, summed = step["merged"].get(str(at // 4), (1, dur))
        name = None if kernel < 0 else side["kernels"][kernel][1]
        boxes.append((step["streams"][stream], start, dur, name, launches, summed))
    return boxes


@pytest.mark.parametrize(
    "pair", [("decode.json.gz", "decode_fixed.json.gz"), ("h200/kineto_eager.json.gz", "h200/kineto_graph.json.gz")]
)
def test_the_data_of_the_page_are_the_boxes_of_the_steps(pair: tuple[str, str]) -> None:
    base, candidate = (inferometer.open(SAMPLES / name) for name in pair)
    page, found = look(base, candidate)
    block = aligned_steps.build(page)
    shown = shown_steps(base, candidate, found)
    assert block is not None
    assert shown is not None
    for side, run in zip(lines(block).data["sides"], (shown.base, shown.candidate), strict=True):
        assert len(side["steps"]) == len(run.steps)
        for place, step in enumerate(run.steps):
            own = [
                (s, start, dur, None if k is None else k[:500], n, ns) for s, start, dur, k, n, ns in step.boxes.rows()
            ]
            assert unpacked(side, place) == own
            assert side["steps"][place]["dur"] == step.dur_ns


def numbers(run: ShownRun, place: int) -> str:
    step = run.steps[place]
    times = f"{format_duration(step.dur_ns)} (step {step.number}), idle for {format_duration(step.idle_ns)} of it"
    return f"{times}, {step.boxes.height} launches"


def test_the_numbers_are_those_of_the_steps_and_say_what_corresponds() -> None:
    base, candidate = (inferometer.open(SAMPLES / name) for name in ("decode.json.gz", "decode_fixed.json.gz"))
    page, found = look(base, candidate)
    block = aligned_steps.build(page)
    shown = shown_steps(base, candidate, found)
    assert block is not None
    assert shown is not None
    runs = (shown.base, shown.candidate)
    (facts,) = parts(block, Facts)
    for line, kind in zip(facts.lines, ("median", "slowest", "fastest"), strict=True):
        assert line == (f"{kind.capitalize()} step", *(numbers(run, getattr(run, kind)) for run in runs))
    steps = [run.steps[run.median] for run in runs]
    times = " and ".join(
        f"{format_duration(s.dur_ns)} in the {w}" for s, w in zip(steps, ("base", "candidate"), strict=True)
    )
    pairs = len(corresponding(steps[0], steps[1], shown.groups))
    assert lines(block).alt == (
        f"Drawn at first: the median steps, {times}. Of 131 launches in the base and 129 in the candidate, {pairs} "
        "correspond to one of the other."
    )
    assert pairs == 128


def test_equal_runs_correspond_wholly() -> None:
    assert lines(built(RUN, RUN)).alt.endswith("Each of their 21 launches corresponds to one of the other.")


def test_runs_that_cannot_be_compared_are_drawn_and_say_so() -> None:
    other = kernel_run([(f"other_{name}_{i}", dur) for i, (name, dur) in enumerate([*LAYER, *LAYER])], [], marked=False)
    block = built(kernel_run(marked=False), other)
    assert "correspond to one" not in lines(block).alt
    assert words(block, "note")[-1].endswith("they stand below each other as recorded, and no launches correspond.")


def test_a_recording_without_steps_is_called_that() -> None:
    pair = [kernel_run(marked=False, steps=1, layers=1, seed=seed) for seed in (0, 1)]
    block = built(*pair)
    assert block.title == "Both recordings on one time axis"
    assert not parts(block, Facts)
    assert lines(block).alt.startswith("Drawn at first: the recordings, ")


def test_what_lacks_launches_says_so_and_one_run_has_no_section() -> None:
    timed = timed_run({"gemm": ("gpu:0", 4, 100_000)})
    assert built(timed, timed).lacking.startswith("Single launches in both runs")
    sums = trace_of(totals=[{"kernel": "gemm", "count": 10, "total_ns": 1_000_000, "section": 0}])
    assert built(sums, sums).lacking
    assert aligned_steps.build(PageData(RUN)) is None


def test_markdown_has_the_sentence() -> None:
    block = built(RUN, SLOW)
    assert lines(block).alt in render_text([block], title="t")


@pytest.fixture
def shown(tab: Tab, tmp_path: Path) -> Any:
    def show(base: Trace, candidate: Trace, **window: Any) -> StepLines:
        block, path = built(base, candidate), tmp_path / "page.html"
        path.write_text(render_page([block], title="two").html, "utf-8")
        tab.open(path, **window)
        tab.wait("document.querySelector('.step-lines canvas') !== null")
        return lines(block)

    return show


SAID = "document.querySelector('.step-lines .said').textContent"
SELECTS = "[...document.querySelectorAll('.step-lines select')]"
CANVAS = "document.querySelector('.step-lines canvas')"
HAS_COLOR = (
    "(([red, green, blue]) => {{ const c = document.querySelector('.step-lines canvas');"
    " const copy = Object.assign(document.createElement('canvas'), {{ width: c.width, height: c.height }});"
    " const brush = copy.getContext('2d', {{ willReadFrequently: true }}); brush.drawImage(c, 0, 0);"
    " const seen = brush.getImageData(0, 0, c.width, c.height).data;"
    " return seen.some((v, i) => i % 4 === 0 && v === red && seen[i + 1] === green && seen[i + 2] === blue); }})([{}])"
)
INK = f"{CANVAS}.getContext('2d').getImageData(0, 0, 1000, 200).data.some((v) => v > 0)"


@needs_chromium
def test_a_browser_ties_what_the_analysis_ties(tab: Tab, shown: Any) -> None:
    base, candidate = (inferometer.open(SAMPLES / name) for name in ("decode.json.gz", "decode_fixed.json.gz"))
    shown(base, candidate)
    assert tab.run(SAID) == "The difference is -5.009 ms: 131 and 129 launches, of which 128 correspond."
    assert tab.run(INK)
    assert tab.problems == []


@needs_chromium
def test_steps_are_chosen_by_name_and_by_number(tab: Tab, shown: Any) -> None:
    data = shown(RUN, SLOW).data
    slowest = [side["steps"][side["slowest"]]["dur"] for side in data["sides"]]
    tab.run("[...document.querySelectorAll('.step-lines button')].find(b => b.textContent === 'Both slowest').click()")
    said = tab.run(SAID)
    assert said.startswith(f"The difference is +{format_duration(slowest[1] - slowest[0])}: ")
    assert tab.run(f"{SELECTS}.map(s => s.selectedIndex)") == [side["slowest"] for side in data["sides"]]
    tab.run(f"{SELECTS}[0].focus()")
    tab.run(f"(s => {{ s.selectedIndex = 2; s.onchange(); }})({SELECTS}[0])")
    change = slowest[1] - data["sides"][0]["steps"][2]["dur"]
    assert tab.run(SAID).startswith(f"The difference is +{format_duration(change)}: ")


@needs_chromium
def test_the_keyboard_goes_from_launch_to_launch_and_to_the_one_that_corresponds(tab: Tab, shown: Any) -> None:
    data = shown(RUN, SLOW).data
    boxes = [sorted(unpacked(side, side["median"]), key=lambda box: box[1]) for side in data["sides"]]
    tab.run("document.querySelector('.step-lines canvas').focus()")
    tab.press("ArrowRight", 39)
    for _ in range(2):
        tab.press("ArrowRight", 39)
    base, candidate = boxes[0][2], boxes[1][2]
    assert base[3] == candidate[3] == GEMM
    stream = base[0]
    own = f"Base, stream {stream}: {GEMM}, {format_duration(base[2])} at {format_duration(base[1])}."
    other = f"Candidate: {format_duration(candidate[2])} at {format_duration(candidate[1])}."
    assert tab.run(SAID) == f"{own} {other} The change is +{format_duration(candidate[2] - base[2])}."
    tab.press("ArrowDown", 40)
    assert tab.run(SAID).startswith(f"Candidate, stream {stream}: {GEMM}, {format_duration(candidate[2])}")
    tab.press("+", 187, "+")
    tab.press("Escape", 27)
    assert tab.run(SAID).startswith("The difference is ")


@needs_chromium
def test_paper_has_the_lines_as_wide_as_it_is_and_in_light_colours(tab: Tab, shown: Any) -> None:
    tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    shown(RUN, SLOW)
    width = tab.run(f"{CANVAS}.width")
    tab.run("dispatchEvent(new Event('beforeprint')), 0")
    assert tab.run(f"{CANVAS}.width") == 680
    assert (tab.run(HAS_COLOR.format("26, 29, 35")), tab.run(HAS_COLOR.format("232, 234, 238"))) == (True, False)
    tab.run("dispatchEvent(new Event('afterprint')), 0")
    assert (tab.run(HAS_COLOR.format("26, 29, 35")), tab.run(HAS_COLOR.format("232, 234, 238"))) == (False, True)
    assert tab.run(f"{CANVAS}.width") == width


@needs_chromium
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_names_of_a_hostile_file_are_text_on_a_phone(tab: Tab, shown: Any, theme: str) -> None:
    tab.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
    shown(*(kernel_run([*LAYER, (EVIL, 9_000)], seed=seed, stream=0) for seed in (0, 1)), width=390, mobile=True)
    tab.run("document.querySelector('.step-lines canvas').focus()")
    for _ in range(6):
        tab.press("ArrowRight", 39)
    assert "</script><script>hacked = 1" in tab.run(SAID)
    assert tab.run("typeof hacked") == "undefined"
    assert tab.run("document.querySelectorAll('img').length") == 0
    assert tab.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    assert tab.problems == []


def test_the_data_cannot_end_their_script() -> None:
    pair = [kernel_run([*LAYER, (EVIL, 9_000)], seed=seed) for seed in (0, 1)]
    html = render_page([built(*pair)], title="t").html
    (text,) = re.findall(r'<script type="application/json" id="chart-1-data">(.*?)</script>', html, re.DOTALL)
    assert [side["head"] for side in json.loads(text)["sides"]] == ["Base", "Candidate"]
