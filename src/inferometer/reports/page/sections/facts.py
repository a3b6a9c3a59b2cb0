"""What the file says of itself: of two runs side by side."""

from inferometer.reports.page.blocks import Block, Facts
from inferometer.reports.page.look import PageData
from inferometer.reports.page.section import PageSection
from inferometer.reports.views.view import facts_of


def _build(look: PageData) -> Block:
    base = dict(facts_of(look.base.first))
    if look.candidate is None:
        return Block("facts", "Facts", [Facts(tuple(base.items()))])
    candidate = dict(facts_of(look.candidate.first))
    lines = [(label, base.get(label, ""), candidate.get(label, "")) for label in {**base, **candidate}]
    return Block("facts", "Facts", [Facts(tuple(lines), heads=("Base", "Candidate"))])


SECTION = PageSection("facts", _build)
