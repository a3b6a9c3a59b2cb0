"""What a module of `sections/` declares, and how all are found."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from inferometer.registry import collect
from inferometer.reports.page.blocks import Block
from inferometer.reports.page.look import PageData

_OF_ONE_RUN = 40  # from this place on, sections are about the run, not about the pair


@dataclass(frozen=True)
class PageSection:
    """One section. `order`: where it stands; `build` gives it, or None where it has no place in this page."""

    name: str
    order: int
    build: Callable[[PageData], Block | None]


def page_sections() -> tuple[PageSection, ...]:
    """All sections, in order."""
    found: dict[str, PageSection] = collect("inferometer.reports.page.sections", "SECTION")
    return tuple(sorted(found.values(), key=lambda section: section.order))


def build_blocks(look: PageData, *, said: Callable[[str], None] | None = None) -> list[Block]:
    """The blocks of all sections that have a place on this page, in order.

    Of two runs, sections that show one say that it is the base.

    Args:
        look: What the page is about.
        said: Told the name of each section before it is made.
    """
    blocks = []
    for section in page_sections():
        if said is not None:
            said(section.name)
        block = section.build(look)
        if block is not None:
            of_base = look.candidate is not None and section.order >= _OF_ONE_RUN and section.name != "notes"
            blocks.append(replace(block, title=f"{block.title} (base)") if of_base else block)
    return blocks
