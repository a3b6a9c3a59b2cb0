"""What tests ask of a page on two runs: its sections' parts by their kind."""

from typing import TypeVar

from inferometer import Trace
from inferometer.analyses.compare.comparison import Comparison
from inferometer.reports.page.blocks import Block, Chart, Words
from inferometer.reports.page.look import PageData

T = TypeVar("T")


def look(base: Trace, candidate: Trace) -> tuple[PageData, Comparison]:
    found = PageData(base, candidate)
    assert found.comparison is not None
    return found, found.comparison


def parts(block: Block | None, kind: type[T]) -> list[T]:
    assert block is not None
    assert not block.lacking, block.lacking
    return [part for part in block.parts if isinstance(part, kind)]


def chart(block: Block | None, title: str) -> Chart:
    return next(one for one in parts(block, Chart) if one.title == title)


def words(block: Block | None, kind: str) -> list[str]:
    return [one.text for one in parts(block, Words) if one.kind == kind]
