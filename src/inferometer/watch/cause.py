"""What was found of the cause of a slowdown: plain data, so that a watcher need not import the comparison."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Why:
    """What `compare` says of the normal and the slow window, in its words.

    `metric` and `device`: of the cause that it names, None where it names none.
    """

    verdict: str
    outcome: str
    sentence: str
    metric: str | None
    device: str | None

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> "Why":
        """What `as_json` gave."""
        return cls(found["verdict"], found["outcome"], found["why"], found["metric"], found["device"])

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        return {
            "verdict": self.verdict,
            "outcome": self.outcome,
            "why": self.sentence,
            "metric": self.metric,
            "device": self.device,
        }
