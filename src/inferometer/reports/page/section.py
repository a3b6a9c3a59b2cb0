"""What a module of `sections/` declares, and how all are found."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import chain

from inferometer.errors import InferometerError, UnknownName
from inferometer.registry import collect
from inferometer.reports.page.blocks import Block
from inferometer.reports.page.look import PageData


@dataclass(frozen=True)
class PageSection:
    """One section.

    Attributes:
        name: As progress shows it, and `after` of another one.
        build: Gives the block, or None where it has no place in this page.
        after: The section that this one follows; empty: it begins the page.
        of_one_run: Of a page of two runs it shows the base alone, and its title says so.
    """

    name: str
    build: Callable[[PageData], Block | None]
    after: str = ""
    of_one_run: bool = False


def page_sections() -> tuple[PageSection, ...]:
    """All sections, in order.

    Raises:
        UnknownName: One follows a section that isn't there.
    """
    found: dict[str, PageSection] = collect("inferometer.reports.page.sections", "SECTION")
    return in_order({section.name: section for section in found.values()})


def in_order(sections: Mapping[str, PageSection]) -> tuple[PageSection, ...]:
    """Each behind the one that it follows. Of several behind the same one, those with the fewest followers come first.

    So a section of another package stands right behind the one that it names.

    Raises:
        UnknownName: One follows a section that isn't there.
        InferometerError: Some follow each other in a circle.
    """
    followers: dict[str, list[PageSection]] = {}
    for section in sections.values():
        if section.after and section.after not in sections:
            raise UnknownName("section", section.after, list(sections))
        followers.setdefault(section.after, []).append(section)

    def with_followers(section: PageSection) -> list[PageSection]:
        behind = sorted(
            map(with_followers, followers.get(section.name, [])), key=lambda some: (len(some), some[0].name)
        )
        return [section, *chain.from_iterable(behind)]

    first = sorted(followers.get("", []), key=lambda section: section.name)
    ordered = [*chain.from_iterable(map(with_followers, first))]
    if len(ordered) < len(sections):
        circle = sorted(set(sections) - {section.name for section in ordered})
        raise InferometerError(f"sections of the page: expected an order, found a circle: {', '.join(circle)}")
    return tuple(ordered)


def build_blocks(look: PageData, *, on_progress: Callable[[str], None] | None = None) -> list[Block]:
    """The blocks of all sections that have a place on this page, in order.

    Of two runs, sections that show one say that it is the base.

    Args:
        look: What the page is about.
        on_progress: Called with the name of each section before it is made.
    """
    blocks = []
    for section in page_sections():
        if on_progress is not None:
            on_progress(section.name)
        block = section.build(look)
        if block is not None:
            of_base = look.candidate is not None and section.of_one_run
            blocks.append(replace(block, title=f"{block.title} (base)") if of_base else block)
    return blocks
