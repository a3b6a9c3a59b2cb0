"""Sections stand where they ask to, and a page of two runs says which show one."""

from functools import partial
from pathlib import Path

import pytest
from tests.traces import trace_of

import inferometer
from inferometer.errors import InferometerError, UnknownName
from inferometer.reports.page import section
from inferometer.reports.page.blocks import Block
from inferometer.reports.page.look import PageData, RunData
from inferometer.reports.page.section import PageSection, RunSection, in_order, page_sections

SAMPLE = Path(__file__).parents[3] / "samples" / "decode.json.gz"


def order(**after: str) -> list[str]:
    sections = {name: PageSection(name, lambda look: None, after=place) for name, place in after.items()}
    return [section.name for section in in_order(sections)]


def _block(name: str, _: PageData) -> Block:
    return Block(name, name)


def test_our_sections_begin_with_the_facts_and_end_with_the_notes() -> None:
    names = [section.name for section in page_sections()]
    assert (names[0], names[-1]) == ("facts", "notes")
    assert names.index("findings") < names.index("timeline") < names.index("kernels") < names.index("bounds")


def test_a_section_of_another_package_stands_right_behind_the_one_that_it_names() -> None:
    assert order(a="", b="a", c="b", d="c", own="b") == ["a", "b", "own", "c", "d"]


def test_two_behind_the_same_one_stand_by_name() -> None:
    assert order(a="", z="a", y="a") == ["a", "y", "z"]


def test_a_section_may_begin_the_page() -> None:
    assert order(facts="", verdict="facts", early="") == ["early", "facts", "verdict"]


def test_a_large_section_is_made_last_and_stands_where_it_asks_to(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    sections = [PageSection(name, partial(_block, name), is_large=name == "b") for name in "abc"]
    monkeypatch.setattr(section, "page_sections", lambda: tuple(sections))
    blocks = section.build_blocks(PageData(trace_of([])), on_progress=made.append)
    assert (made, [block.name for block in blocks]) == (["a", "c", "b"], ["a", "b", "c"])


def test_who_launched_what_is_let_go_behind_the_last_section_that_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    held: dict[str, bool] = {}

    def build(name: str, run: RunData) -> None:
        assert name not in "bd" or run.attribution is not None
        held[name] = "attribution" in vars(run) or "attribution" in vars(run.launches)

    sections = [RunSection(name, partial(build, name), is_of_callers=name in "bd") for name in "abcde"]
    monkeypatch.setattr(section, "page_sections", lambda: tuple(sections))
    look = PageData(inferometer.open(SAMPLE))
    section.build_blocks(look)
    assert held == {"a": False, "b": True, "c": True, "d": True, "e": False}
    assert look.base.attribution is not None  # asked for again, it is made again


def test_a_section_behind_one_that_is_not_there_is_refused_with_the_names_that_are() -> None:
    with pytest.raises(UnknownName, match='unknown section "kernel"') as found:
        order(kernels="", own="kernel")
    assert found.value.known[0] == "kernels"


def test_a_circle_is_named() -> None:
    with pytest.raises(InferometerError, match="found a circle: b, c"):
        order(a="", b="c", c="b")
