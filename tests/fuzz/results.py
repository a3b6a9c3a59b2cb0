"""What a campaign found, counted by subject; its results file, and the page of docs that shows it."""

import datetime as dt
import json
import platform
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
from tests.fuzz.campaign import GROWTH_BYTES, SECONDS, Result

import inferometer

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "results" / "robustness.json"
PAGE = ROOT / "docs" / "robustness.md"
BEGIN, END = "<!-- figures: python -m tests.fuzz -->", "<!-- end of figures -->"
KINDS = ("answer", "answer with losses", "refusal", "defect")
_TITLES = ("Input", "Cases", "Answers", "with losses", "Refusals", "Defects", "Asked", "Longest", "Most memory")


@dataclass
class Tally:
    """Counts of a campaign. `examples`: of each different defect, the first case; `defective`: all, by subject."""

    kinds: Counter[tuple[str, str]] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)
    seconds: dict[str, float] = field(default_factory=dict)
    growth_bytes: dict[str, int] = field(default_factory=dict)
    panics: Counter[str] = field(default_factory=Counter)
    examples: dict[str, Result] = field(default_factory=dict)
    defective: dict[int, str] = field(default_factory=dict)

    def add(self, result: Result) -> bool:
        """Whether it is a defect that was not there before."""
        subject = result.subject
        self.kinds[subject, result.kind] += 1
        self.asked[subject] += result.asked is not None
        self.panics[subject] += result.panics > 0
        self.seconds[subject] = max(self.seconds.get(subject, 0.0), result.seconds)
        self.growth_bytes[subject] = max(self.growth_bytes.get(subject, 0), result.growth_bytes)
        if result.kind == "defect":
            self.defective[result.number] = result.where
        is_news = result.kind == "defect" and result.where not in self.examples
        if is_news:
            self.examples[result.where] = result
        return is_news

    @property
    def cases(self) -> int:
        """All of them."""
        return self.kinds.total()

    @property
    def defects(self) -> int:
        """Cases that ended in one, of which several may have the same cause."""
        return sum(n for (_, kind), n in self.kinds.items() if kind == "defect")

    def rows(self) -> list[dict[str, Any]]:
        """A row per subject, and one for all."""
        subjects = sorted({subject for subject, _ in self.kinds})
        rows: list[dict[str, Any]] = []
        for subject in subjects:
            counts = {kind: self.kinds[subject, kind] for kind in KINDS}
            more = {"asked": self.asked[subject], "panics": self.panics[subject]}
            most = {"seconds": round(self.seconds[subject], 3), "growth_bytes": self.growth_bytes[subject]}
            rows.append({"subject": subject, "cases": sum(counts.values()), **counts, **more, **most})
        total = {key: sum(row[key] for row in rows) for key in ("cases", *KINDS, "asked", "panics")}
        most = {key: max((row[key] for row in rows), default=0) for key in ("seconds", "growth_bytes")}
        return [*rows, {"subject": "all", **total, **most}]

    def table(self) -> str:
        """The rows in Markdown."""
        return table_of(self.rows())


def table_of(rows: list[dict[str, Any]]) -> str:
    """Rows of a tally in Markdown."""
    lines = [_TITLES, ["---", *["---:"] * (len(_TITLES) - 1)]]
    for row in rows:
        counts = [f"{row.get(key, 0):,}" for key in ("cases", *KINDS, "asked")]
        lines.append([row["subject"], *counts, f"{row['seconds']:.1f} s", f"{row['growth_bytes'] / 2**20:.0f} MiB"])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def write_results(tally: Tally, *, seed: int, seconds: float, processes: int) -> None:
    """The figures with what is needed to repeat them."""
    ours = inferometer.__version__
    about = {
        "command": f"python -m tests.fuzz --seed {seed}",
        "date": dt.datetime.now(dt.UTC).date().isoformat(),
        "seed": seed,
        "processes": processes,
        "seconds": round(seconds),
        "versions": {"inferometer": ours, "python": platform.python_version(), "polars": pl.__version__},
        "limits": {"seconds": SECONDS, "growth_bytes": GROWTH_BYTES},
        "rows": tally.rows(),
        "defects": {str(number): where for number, where in tally.defective.items()},
    }
    RESULTS.write_text(json.dumps(about, indent=1) + "\n", "utf-8")


def amend_results(found: Iterable[Result]) -> None:
    """Put what became of defective cases since in the place of what they were."""
    about = json.loads(RESULTS.read_text("utf-8"))
    *rows, total = about["rows"]
    row_of = {row["subject"]: row for row in rows}
    for result in found:
        for row in (row_of[result.subject], total):
            row["defect"] -= 1
            row[result.kind] = row.get(result.kind, 0) + 1
        if result.kind != "defect":
            about["mended"] = about.get("mended", 0) + 1
            del about["defects"][str(result.number)]
    RESULTS.write_text(json.dumps(about, indent=1) + "\n", "utf-8")


def defective_cases() -> list[int]:
    """Numbers of the cases that the results call defects."""
    return [int(number) for number in json.loads(RESULTS.read_text("utf-8"))["defects"]]


def figures() -> str:
    """The part of the page that the results make."""
    about = json.loads(RESULTS.read_text("utf-8"))
    versions = ", ".join(f"{name} {version}" for name, version in about["versions"].items())
    panics, mended, limits = about["rows"][-1]["panics"], about.get("mended", 0), about["limits"]
    processes = f"{about['processes']} process{'' if about['processes'] == 1 else 'es'}"
    again = f" Defects mended, and their cases run again: {mended}." if mended else ""
    return f"""\
{table_of(about["rows"])}

`{about["command"]}`, {about["date"]}, {processes}, {about["seconds"] / 60:.0f} minutes;
{versions}. A case may take {limits["seconds"]:g} s of the processor and {limits["growth_bytes"] >> 20} MiB.
In {panics:,} cases Polars printed a panic of its own before the file was refused.{again}"""


def write_page() -> None:
    """Put the figures of today's results into the page."""
    text = PAGE.read_text("utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    PAGE.write_text(f"{before}{BEGIN}\n\n{figures()}\n\n{END}{after}", "utf-8")
