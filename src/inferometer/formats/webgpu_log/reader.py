"""Reads a log line by line: every line to `log` or, rows of reports, to `totals`; selections and steps besides.

A last line without its ending may have been cut anywhere: of it only what is sure to be whole is read.
"""

from typing import TYPE_CHECKING, Any

from inferometer.errors import FormatError
from inferometer.formats.text_lines import read_lines, without_ending
from inferometer.formats.webgpu_log.columns import DEVICE, LogColumns, TotalsColumns
from inferometer.formats.webgpu_log.lines import Parts, Splitter
from inferometer.formats.webgpu_log.messages import read_message
from inferometer.formats.webgpu_log.quantities import whole_fields
from inferometer.formats.webgpu_log.reports import (
    TOTAL,
    CheckedTotals,
    Report,
    Tables,
    Title,
    is_head,
    read_title,
    take_line,
)
from inferometer.formats.webgpu_log.run import LoggedStep, Run
from inferometer.formats.webgpu_log.runs import Runs
from inferometer.formats.webgpu_log.steps import StepColumns
from inferometer.formats.webgpu_log.tables import is_ruler, looks_like_row
from inferometer.trace.facts import Device, Facts

if TYPE_CHECKING:
    from inferometer.formats.source import Source
    from inferometer.trace.builder import TraceBuilder

_MOST_OPEN = 16
_LONGEST_PROMPT = 64  # lines
_LONGEST_FIELD = 200  # characters of an example


def read(source: "Source", out: "TraceBuilder") -> Facts:
    """Read all of it.

    Raises:
        FormatError: No line is one of this engine's.
    """
    reader = _Reader(out)
    with source.open() as stream:
        for number, line in read_lines(stream, out.losses, longest=source.limits.event_bytes):
            reader.take(number, line)
    if stream.damage:
        out.losses.count("broken_compression", example=stream.damage)
    reader.finish()
    if not reader.known:
        raise FormatError(
            f"{source.name}: expected lines of a WebGPU engine's log ([browser:log] [190.3ms][Loader] …), "
            f"found none in {reader.lines:,} lines",
            hint="Save the whole output of the run, with the profile reports.",
        )
    return reader.facts(source.name)


class _Reader:
    """Where the reading stands: runs, open reports, and the rows that wait to be handed over."""

    def __init__(self, out: "TraceBuilder") -> None:
        self.out = out
        self.lines = self.known = 0
        self.runs = Runs()
        self._splitter = Splitter()
        self._tables = Tables()
        self._open: list[tuple[Run, Report]] = []
        self._log = LogColumns(out)
        self._totals = TotalsColumns(out)
        self._checked = CheckedTotals()
        self._selections = 0
        self._prompt: tuple[Run, int] | None = None

    def take(self, number: int, line: str) -> None:
        """One line with its ending."""
        self.lines = number
        if self._take_row(line):
            return
        text = without_ending(line)
        if not text or text.isspace():
            self._blank()
            return
        ended = line.endswith("\n")
        if not ended:
            self.out.losses.count("unended_line", example=f"line {number}")
        parts = self._splitter.split(text)
        if parts is None or (parts.module is None and not parts.is_stamped):
            self._take_plain(number, text, parts, ended=ended)
            return
        kind, fields = read_message(parts)
        if not parts.is_stamped and kind is None:
            self._take_plain(number, text, None, ended=ended)
            return
        self.known += 1
        self._prompt = None
        if not ended:
            fields = whole_fields(kind, fields, parts.text)
        run = self.runs.of(parts, kind, fields, number)
        run.note(kind, fields, parts.time_ns)
        if kind == "profile":
            fields = self._take_profile(run, parts, number) if ended else {}
        elif kind == "selection":
            self._take_selection(fields, parts.time_ns, number)
        elif kind == "metrics" and fields.keys() == {"prompt"} and not parts.text.rstrip().endswith('"'):
            self._prompt = run, number
        elif kind is None:
            self.out.losses.count("unknown_line", example=_example(number, text))
        self._log.add(number, text, kind, parts, fields)

    def _take_row(self, line: str) -> bool:
        """The short way for most lines of a log: a row of the one report that is open."""
        if len(self._open) != 1 or "[" in line or "\x1b" in line or self._splitter.has_outer:
            return False
        report = self._open[0][1]
        row = report.table.read(line) if report.table is not None and line.endswith("\n") else None
        if row is None or row[0].casefold() == TOTAL:
            return False
        report.add(row)
        return True

    def finish(self) -> None:
        """Close what is open, hand over all that waited for the end, and say what is missing."""
        while self._open:
            self._close(len(self._open) - 1)
        self._totals.flush()
        self._log.flush()
        self.runs.merge_strays()
        steps = StepColumns()
        several = len(self.runs.all) > 1
        for run in self.runs:
            steps.add_run(run, run.number if several else None)
            if not run.is_finished:
                self.out.losses.count("unfinished_run", example=run.model)
        count = len(steps.columns["step"])
        if self.out.wants("steps"):
            self.out.losses.see("steps", count)
            self.out.add("steps", count, steps.columns)
        self.out.losses.count("ambiguous_run", self.runs.ambiguous, example=f"line {self.runs.first_ambiguous}")

    def facts(self, name: str) -> Facts:
        """What the lines say of the engine, the first run's above those of all."""
        runs = self.runs.all
        metrics = runs[0].as_metrics() if runs else {}
        notes = []
        if len(runs) > 1:
            metrics["runs"] = [{**({"model": run.model} if run.model else {}), **run.as_metrics()} for run in runs]
            notes.append(f"The log holds {len(runs)} runs: sections of totals, processes of steps.")
        if self.runs.ambiguous:
            notes.append(
                f"{self.runs.ambiguous:,} lines may be of several runs, the first is line {self.runs.first_ambiguous}: "
                "each was given to the run whose clock is nearest."
            )
        device = next((run.device for run in runs if run.device), None)
        return Facts(
            format="webgpu-log",
            source=name,
            framework="WebGPU",
            model=next((run.model for run in runs if run.model), None),
            devices=(Device(device=DEVICE, name=device),),
            engine_metrics=metrics,
            notes=tuple(notes),
            printed_totals=self._checked.summed() if len(runs) == 1 else None,
        )

    def _blank(self) -> None:
        for _, report in self._open:
            report.end()

    def _take_plain(self, number: int, text: str, parts: Parts | None, *, ended: bool) -> None:
        """A line without a stamp: of the open report, of a prompt, or free text."""
        plain = parts.text if parts else text
        if not plain.strip():
            self._blank()
            return
        if self._open or (table := self._tables.find(plain) if ended else None) is not None:
            if not self._open:
                self._begin(self.runs.latest(number), Report(Title(), number, table=table))
                self._log.add(number, text, "profile", parts, {})
                return
            if self._take_of_report(number, text, plain, parts, ended=ended):
                return
        if self._prompt is not None:
            run, first = self._prompt
            prompt = run.printed.get("prompt")
            ends = plain.rstrip().endswith('"')
            if isinstance(prompt, str) and ended:
                run.printed["prompt"] = prompt + "\n" + plain.rstrip().removesuffix('"')
            self._prompt = None if ends or number - first >= _LONGEST_PROMPT else self._prompt
            self._log.add(number, text, "metrics", parts, {})
        elif is_ruler(plain):
            self._log.add(number, text, "profile", parts, {})
        elif looks_like_row(plain):
            self._count_row(number)
            self._log.add(number, text, "profile", parts, {})
        else:
            self.out.losses.count("unknown_line", example=_example(number, text))
            self._log.add(number, text, None, parts, {})

    def _take_of_report(self, number: int, text: str, plain: str, parts: Parts | None, *, ended: bool) -> bool:
        """Whether the line is of the report opened last, or of that of its owner."""
        owner = parts.owner if parts else None
        at = len(self._open) - 1
        if owner is not None:
            at = next((i for i in range(at, -1, -1) if self._open[i][1].owner == owner), at)
        _, report = self._open[at]
        taken = take_line(report, plain, self._tables, ended=ended)
        if taken == "row":
            if len(self._open) > 1 and owner is None:
                self.runs.doubt(number)
            return True
        if taken == "other":
            return False
        if taken == "broken":
            self._count_row(number)
        fields = {"total_ns": report.total_ns} if taken == "total" and report.total_ns is not None else {}
        self._log.add(number, text, "profile", parts, fields)
        if taken == "total":
            for _, earlier in self._open[:at]:
                earlier.is_overtaken = True
            self._close(at)
        return True

    def _count_row(self, number: int) -> None:
        if self.out.wants("totals"):
            self.out.losses.see("totals")
            self.out.losses.count("unreadable_row", category="totals", example=f"line {number}")

    def _take_profile(self, run: Run, parts: Parts, number: int) -> dict[str, Any]:
        """A title, or the line that opens a report."""
        if not is_head(parts.text):
            run.title = read_title(parts.text, parts.time_ns)
            return _title_fields(run.title)
        title, run.title = run.title, None
        if title is None:
            title = read_title(parts.text, parts.time_ns)
        for i in range(len(self._open) - 1, -1, -1):
            if self._open[i][0] is run:
                self._close(i)
        self._begin(run, Report(title, number, parts.owner))
        return {"step": len(run.steps)}

    def _begin(self, run: Run, report: Report) -> None:
        for i in range(len(self._open) - 1, -1, -1):
            if self._open[i][1].is_overtaken:
                self._close(i)
        if len(self._open) >= _MOST_OPEN:
            self._close(0)
        self._open.append((run, report))

    def _take_selection(self, fields: dict[str, Any], time_ns: int | None, number: int) -> None:
        if not self.out.wants("selections"):
            return
        self.out.losses.see("selections")
        if "op" not in fields:
            self.out.losses.count("unreadable_row", category="selections", example=f"line {number}")
            return
        columns = {name: [fields.get(name)] for name in ("op", "variant", "reason")}
        self.out.add("selections", 1, {**columns, "time_ns": [time_ns]})

    def _close(self, at: int) -> None:
        run, report = self._open.pop(at)
        if report.same_as(run.last_report):
            if self.out.wants("totals"):
                n = len(report.labels)
                self.out.losses.see("totals", n)
                self.out.losses.count("repeated_row", n, category="totals", example=f"line {report.line}")
            return
        run.last_report = report
        title = report.title
        self._totals.add(self.runs.number(run), len(run.steps), report)
        self._checked.add(report)
        place = (len(run.perfs), title.context, title.wall_ns)
        run.steps.append(LoggedStep(title.phase, title.tokens, title.time_ns, report.busy_ns, *place))


def _title_fields(title: Title) -> dict[str, Any]:
    fields: dict[str, Any] = {"title": title.text}
    if title.phase:
        fields["phase"] = title.phase
    stated = {"tokens": title.tokens, "context": title.context, "wall_ns": title.wall_ns}
    return fields | {key: value for key, value in stated.items() if value is not None}


def _example(number: int, text: str) -> str:
    return f"line {number}: {text[:_LONGEST_FIELD]}"
