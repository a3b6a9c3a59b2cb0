"""What the commands say in words of real traces, and a person's verdict on it.

    python -m benchmarks.real_sentences                 the bars, and what has no verdict yet
    python -m benchmarks.real_sentences --unjudged      the latter as TOML, to be judged and added to the file

Asked are `findings` (a finding with its evidence and next step is one text), the remarks of `summary`, `timeline`,
`calls` and `steps`, and `groups` (the notes of a group are one text), of each capture in shared/data/traces. The
verdicts are in `real_verdicts.toml`: `true`, `misleading` or `false`, with the reason, for exactly this text; a text
that changes has to be judged again. Numbers in texts are recomputed by tests/truth. Each trace has its largest loss
there, too, and the rules whose finding names it, of which one has to stand first or second.
"""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import inferometer
from inferometer.analyses.groups.groups import find_groups
from inferometer.analyses.result import Result
from inferometer.analyses.steps.table import step_table
from inferometer.analyses.tables.calls import call_table
from inferometer.analyses.timeline.timeline import find_timeline
from inferometer.errors import InputError
from inferometer.findings.engine import find_findings
from inferometer.findings.finding import Finding
from inferometer.findings.first_look import first_look
from inferometer.reports.views.view import remarks_of, sections_of
from inferometer.trace.trace import Trace

ROOT: Final = Path(__file__).parents[1]
VERDICTS: Final = Path(__file__).with_name("real_verdicts.toml")
TRACES: Final = ROOT.parent / "shared" / "data" / "traces" / "kineto"
KINDS: Final = ("true", "misleading", "false")
MOST_MISLEADING: Final = 0.05
HIGH_ENOUGH: Final = 2

_REMARKS: Final[dict[str, Callable[[Trace], Result]]] = {
    "summary": first_look,
    "timeline": find_timeline,
    "calls": call_table,
    "steps": step_table,
}


@dataclass(frozen=True, slots=True)
class Said:
    """A text that a command prints of a trace; `rule` of a finding, "" of other texts."""

    trace: str
    command: str
    rule: str
    text: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a person found on reading it next to the trace."""

    said: Said
    verdict: str
    reason: str


@dataclass(frozen=True, slots=True)
class Loss:
    """The largest loss of a trace, and the rules of which one should name it; none where there is nothing to name."""

    trace: str
    what: str
    rules: tuple[str, ...]


def captures() -> list[Path]:
    """The traces; none where the checkout has no shared folder next to it."""
    return sorted(TRACES.glob("*.json.gz"))


def said_of(path: Path) -> Iterator[Said]:
    """All that is reported of one trace."""
    name = path.name.removesuffix(".json.gz")
    with inferometer.open(path) as trace:
        for finding in find_findings(trace).findings:
            yield Said(name, "findings", finding.rule, text_of(finding))
        for command, ask in _REMARKS.items():
            for remark in _remarks(ask, trace):
                yield Said(name, command, "", remark)
        groups = find_groups(trace)
        for section in sections_of(groups):
            if section.notes:
                yield Said(name, "groups", "", "\n".join([section.title, *section.notes]))
        yield from (Said(name, "groups", "", remark) for remark in remarks_of(groups))


def text_of(finding: Finding) -> str:
    """All that a finding says, a sentence a line."""
    return "\n".join([finding.title, *finding.evidence, f"Next: {finding.next}"])


def read_verdicts() -> tuple[list[Verdict], list[Loss]]:
    """What the file holds.

    Raises:
        ValueError: A verdict is none of `KINDS`, or has no reason.
    """
    data = tomllib.loads(VERDICTS.read_text("utf-8"))
    verdicts = [_verdict(row) for row in data.get("said", ())]
    return verdicts, [Loss(row["trace"], row["what"], tuple(row["rules"])) for row in data.get("largest_loss", ())]


def bars(said: Sequence[Said], verdicts: Iterable[Verdict], losses: Iterable[Loss]) -> tuple[list[str], bool]:
    """What was reached, in words, and whether it is enough."""
    known = {verdict.said: verdict for verdict in verdicts}
    judged = [known[each] for each in said if each in known]
    lines, good = [], True
    for command in sorted({each.command for each in said}):
        own = [each for each in judged if each.said.command == command]
        asked = sum(each.command == command for each in said)
        counts = {kind: sum(each.verdict == kind for each in own) for kind in KINDS}
        share = counts["misleading"] / asked
        met = counts["false"] == 0 and share <= MOST_MISLEADING and len(own) == asked
        good &= met
        lines.append(
            f"{command}: {asked} texts, {counts['true']} true, {counts['misleading']} misleading "
            f"({100 * share:.1f} %), {counts['false']} false, {asked - len(own)} without a verdict: "
            f"{'met' if met else 'NOT met'}."
        )
    for loss in losses:
        place = place_of(loss, said)
        met = not loss.rules or (place is not None and place <= HIGH_ENOUGH)
        good &= met
        if not met:
            lines.append(f"{loss.trace}: {loss.what} is not among the first {HIGH_ENOUGH} findings.")
    lines.append(f"Largest loss first or second where there is one: {'met' if good else 'see above'}.")
    return lines, good


def judge() -> tuple[list[str], bool]:
    """`bars` of all captures; none, and good, where the checkout has no shared folder next to it."""
    paths = captures()
    if not paths:
        return [f"No captures in {TRACES.relative_to(ROOT.parent)}: no sentence about real traces was read."], True
    return bars([each for path in paths for each in said_of(path)], *read_verdicts())


def place_of(loss: Loss, said: Iterable[Said]) -> int | None:
    """The place of the first finding that names it, from 1."""
    rules = [each.rule for each in said if (each.trace, each.command) == (loss.trace, "findings")]
    return next((place for place, rule in enumerate(rules, start=1) if rule in loss.rules), None)


def unjudged(said: Iterable[Said], verdicts: Iterable[Verdict]) -> list[Said]:
    """Texts without a verdict."""
    known = {verdict.said for verdict in verdicts}
    return [each for each in said if each not in known]


def gone(said: Iterable[Said], verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Verdicts on texts that are no longer printed."""
    now = set(said)
    return [verdict for verdict in verdicts if verdict.said not in now]


def as_toml(each: Said, verdict: str = "", reason: str = "") -> str:
    """A row of the file."""
    rule = f'rule = "{each.rule}"\n' if each.rule else ""
    text = each.text.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    return (
        f'[[said]]\ntrace = "{each.trace}"\ncommand = "{each.command}"\n{rule}text = """\n{text}"""\n'
        f'verdict = "{verdict}"\nreason = "{reason}"\n'
    )


def _remarks(ask: Callable[[Trace], Result], trace: Trace) -> Sequence[str]:
    try:
        return remarks_of(ask(trace))
    except InputError as error:  # no steps, for one: the answer is the error's text
        return (str(error).replace(trace.facts.source, Path(trace.facts.source).name),)


def _verdict(row: dict[str, Any]) -> Verdict:
    if row["verdict"] not in KINDS or not row["reason"]:
        raise ValueError(f"{VERDICTS.name}: {row['trace']}, {row['command']}: expected a verdict with a reason")
    return Verdict(Said(row["trace"], row["command"], row.get("rule", ""), row["text"]), row["verdict"], row["reason"])


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--unjudged", action="store_true", help="print what has no verdict, as TOML")
    options = parser.parse_args(arguments)
    if options.unjudged:
        said = [each for path in captures() for each in said_of(path)]
        print("\n".join(as_toml(each) for each in unjudged(said, read_verdicts()[0])))
        return 0
    lines, good = judge()
    print("\n".join(lines))
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
