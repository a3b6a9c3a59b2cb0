"""`findings`: what to look at first, with evidence."""

from typing import Annotated

from inferometer.reports.schemas.fields import DeviceName, Document, Losses, Part, Rank, Source, says


class Finding(Part):
    """What a rule found."""

    rule: Annotated[str, says("The rule, as the reference of findings has it.")]
    severity: Annotated[str, says("`high`, `medium`, `low` by how much time is at stake; `info` asks for nothing.")]
    title: Annotated[str, says("One line. Its words may change.")]
    evidence: Annotated[list[str], says("Sentences with numbers. Their words may change.")]
    size_ns: Annotated[int | None, says("Time of the run in what the title names, ns; null where it is no time.")]
    share: Annotated[float | None, says("That time of what it belongs to, 0 to 1.")]
    next: Annotated[str, says("One thing to do.")]
    explained_by: Annotated[str | None, says("The rule of another finding that names the cause of this one.")]
    idle_ns: Annotated[
        int | None,
        says("Idle time of devices that this finding alone accounts for, ns; null where it isn't about that."),
    ]
    parts: Annotated[list[str], says("Rows of the budget that it speaks of: `sort`, or `sort.name`.")]


class Examined(Part):
    """What rules looked at; times are sums over all devices."""

    rules: Annotated[int, says("How many rules were asked.")]
    rows: Annotated[dict[str, int], says("Rows of each table that was read.")]
    devices: Annotated[int, says("Devices with launches that were looked at.")]
    window_ns: Annotated[int | None, says("Windows of the devices, ns; null where no launches were looked at.")]
    idle_ns: Annotated[int | None, says("Of these idle, ns.")]
    explained_idle_ns: Annotated[int | None, says("Of these accounted for by findings, ns.")]
    unexplained_idle_ns: Annotated[int | None, says("Idle time that no finding is about, ns.")]


class BudgetRow(Part):
    """A part of a device's window; all rows of a device add up to its window."""

    rank: Rank
    device: DeviceName
    sort: Annotated[str, says("`compute`, `several` (families at once), `communication`, `copies` or `idle`.")]
    name: Annotated[str | None, says("The family of kernels, or the cause of idle time; null for other sorts.")]
    time_ns: Annotated[int, says("Its time, ns: no moment counts twice.")]
    share: Annotated[float | None, says("Of the window, 0 to 1; null for a window of 0 ns.")]
    count: Annotated[int | None, says("Launches of it, or idle gaps; null where several families ran at once.")]


class ChangedThreshold(Part):
    """A threshold of a rule, as it is set and as the rule has it."""

    name: Annotated[str, says("As `rules` lists it.")]
    value: Annotated[float, says("The share from which on a finding has that severity, 0 to 1.")]
    default: Annotated[float, says("The rule's own.")]


Thresholds = Annotated[list[ChangedThreshold], says("Those that differ from the rules' own; empty where none do.")]
FoundFirst = Annotated[list[Finding], says("The gravest first.")]
Budget = Annotated[list[BudgetRow], says("Where the devices' time went; empty without launches.")]


class Findings(Document):
    """What to look at first."""

    source: Source
    findings: FoundFirst
    examined: Examined
    thresholds: Thresholds
    device_time_budget: Budget
    left_out: Annotated[int, says("Findings that `--top` left out.")]
    losses: Losses


DOCUMENT = Findings
