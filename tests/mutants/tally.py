"""What became of a module's mutants, and the verdicts on survivors that somebody looked at."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tests.mutants.running import Outcome
from tests.mutants.subjects import Subject

Verdict = Literal["equivalent", "left"]
"""`equivalent`: no test could notice. `left`: one could, and none does, for the reason given; it counts as survived."""

VERDICTS = Path(__file__).parent / "verdicts.toml"


def read_verdicts(subject: Subject) -> dict[str, Verdict]:
    """The verdict on each change of the module; every one has a reason."""
    verdicts: dict[str, Verdict] = {}
    for entry in tomllib.loads(VERDICTS.read_text("utf-8")).get(subject.module, []):
        if not entry["why"]:
            raise ValueError(f"{VERDICTS}: {subject.module}: expected a reason for {entry['changes']}")
        verdicts |= dict.fromkeys(entry["changes"], entry["verdict"])
    return verdicts


@dataclass
class Tally:
    """Counts of one module. `equivalent` ones were not run."""

    module: str
    mutants: int
    equivalent: int = 0
    killed: int = 0
    timed_out: int = 0
    survived: int = 0
    stale: int = 0

    def add(self, outcome: Outcome) -> None:
        """Count one."""
        self.killed += outcome == "killed"
        self.timed_out += outcome == "timed out"
        self.survived += outcome == "survived"

    @property
    def untried(self) -> int:
        """Those for which there was no time."""
        return self.mutants - self.equivalent - self.killed - self.timed_out - self.survived

    @property
    def killed_share(self) -> float:
        """Of those that were tried; what ran too long has been noticed."""
        tried = self.killed + self.timed_out + self.survived
        return (self.killed + self.timed_out) / tried if tried else 0.0

    def is_enough(self, least: float) -> bool:
        """Whether the tests bite, and the verdicts are of today."""
        return self.killed_share >= least and not self.untried and not self.stale

    @staticmethod
    def heading() -> str:
        """Names of the columns of `str(tally)`."""
        counts = f"{'equivalent':>11}{'killed':>7}{'too long':>9}{'survived':>9}{'untried':>8}"
        return f"{'module':<50}{'mutants':>8}{counts}"

    def __str__(self) -> str:
        counts = f"{self.equivalent:>11}{self.killed:>7}{self.timed_out:>9}{self.survived:>9}{self.untried:>8}"
        return f"{self.module:<50}{self.mutants:>8}{counts}  {self.killed_share:.1%}"
