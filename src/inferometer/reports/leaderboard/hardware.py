"""What each platform can do, with its sources, and the headline rows on it: a tab each."""

from collections.abc import Mapping

from msgspec.structs import replace

from inferometer.analyses.hardware.devices import describe_device
from inferometer.analyses.operators.leaderboard import Leaderboard, Platform
from inferometer.reports.page.blocks import Block, Facts, Grid, Tab, Tabs, Words
from inferometer.reports.views.layout import Field, Kind
from inferometer.reports.views.leaderboard import headline_section
from inferometer.reports.views.view import facts_of, remarks_of, sections_of

_TITLE = "Hardware"
_KINDS: Mapping[str, Kind] = {
    "fact": "name",
    "source": "text",
}  # here a row is about the fact, and the whole source is seen


def build_hardware(board: Leaderboard) -> Block:
    """Peaks and headline rows."""
    return Block("hardware", _TITLE, [Tabs("Device", [_tab(platform) for platform in board.platforms])])


def _tab(platform: Platform) -> Tab:
    sheet = describe_device(platform.device)
    (values,) = sections_of(sheet)
    fields = [_shown(field) for field in values.fields]
    return Tab(
        platform.device.name,
        [
            Facts([(label, text) for label, text in facts_of(sheet) if label != "Names"]),
            *(Words(remark, "note") for remark in remarks_of(sheet)),
            Grid(replace(values, title="Peaks and bandwidths", fields=fields), sums=()),
            Grid(replace(headline_section(platform), title="Headline rows"), sums=()),
        ],
    )


def _shown(field: Field) -> Field:
    return replace(field, kind=_KINDS.get(field.column, field.kind))
