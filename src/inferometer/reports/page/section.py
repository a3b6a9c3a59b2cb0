"""What a module of `sections/` declares, and how all are found."""

from collections.abc import Callable, Mapping
from itertools import chain

import msgspec
from msgspec.structs import replace

from inferometer.errors import InferometerError, UnknownName
from inferometer.registry import collect
from inferometer.reports.page.beside import set_beside
from inferometer.reports.page.blocks import Block
from inferometer.reports.page.look import SIDES, PageData, RunData
from inferometer.reports.page.scales import share_scales


class PageSection(msgspec.Struct, frozen=True):
    """One section of the page.

    Attributes:
        name: As progress shows it, and `after` of another one.
        build: Gives the block, or None where it has no place in this page.
        after: The section that this one follows; empty: it begins the page.
        is_large: Its block takes so much memory until the page is written that it is made after all others.
        is_of_callers: It asks who launched what, which is let go once no further section does.
    """

    name: str
    build: Callable[[PageData], Block | None]
    after: str = ""
    is_large: bool = False
    is_of_callers: bool = False


class RunSection(msgspec.Struct, frozen=True):
    """One section about one run; a page of two runs has it of both. Attributes as of `PageSection`."""

    name: str
    build: Callable[[RunData], Block | None]
    after: str = ""
    is_large: bool = False
    is_of_callers: bool = False


AnySection = PageSection | RunSection


def page_sections() -> tuple[AnySection, ...]:
    """All sections, in order.

    Raises:
        UnknownName: One follows a section that isn't there.
    """
    found: dict[str, AnySection] = collect("inferometer.reports.page.sections", "SECTION")
    return in_order({section.name: section for section in found.values()})


def in_order(sections: Mapping[str, AnySection]) -> tuple[AnySection, ...]:
    """Each after the one that it follows. Of several after the same one, those with the fewest followers come first.

    So a section of another package stands right after the one that it names.

    Raises:
        UnknownName: One follows a section that isn't there.
        InferometerError: Some follow each other in a circle.
    """
    followers: dict[str, list[AnySection]] = {}
    for section in sections.values():
        if section.after and section.after not in sections:
            raise UnknownName("section", section.after, list(sections))
        followers.setdefault(section.after, []).append(section)

    def with_followers(section: AnySection) -> list[AnySection]:
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


def build_blocks(
    look: PageData, *, is_beside: bool = True, on_progress: Callable[[str], None] | None = None
) -> list[Block]:
    """The blocks of all sections that have a place on this page, in order.

    Args:
        look: What the page is about.
        is_beside: Of two runs, sections about one hold what there is of both. Else they stand there for the base and
            for the candidate, and say so.
        on_progress: Called with the name of each section before it is made.
    """
    sections, made = page_sections(), dict[str, list[Block]]()
    in_turn = sorted(sections, key=lambda each: each.is_large)
    of_callers = [each.name for each in in_turn if each.is_of_callers]
    for section in in_turn:
        if on_progress is not None:
            on_progress(section.name)
        made[section.name] = _blocks_of(section, look, is_beside=is_beside)
        if section.name in of_callers[-1:]:
            for run in look.runs:
                run.release()
    return [block for section in sections for block in made[section.name]]


def _blocks_of(section: AnySection, look: PageData, *, is_beside: bool) -> list[Block]:
    if isinstance(section, PageSection):
        built = [section.build(look)]
    else:
        built = [section.build(run) for run in look.runs]
        if len(built) > 1:
            built = [set_beside(*built)] if is_beside else _of_both(*built)
    return [block for block in built if block is not None]


def _of_both(base: Block | None, candidate: Block | None) -> list[Block | None]:
    """Each with its run in name and title; what both lack for the same reason is one."""
    if base and candidate and base.lacking and base.lacking == candidate.lacking:
        return [base]
    return [_of_side(block, side) for block, side in zip(share_scales(base, candidate), SIDES, strict=True)]


def _of_side(block: Block | None, side: str) -> Block | None:
    return block and replace(block, name=f"{block.name}_{side}", title=f"{block.title} ({side})")
