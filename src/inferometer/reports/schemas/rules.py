"""`rules`: the rules that make findings, and their thresholds."""

from typing import Annotated

from inferometer.reports.schemas.fields import Document, Part, says
from inferometer.reports.schemas.findings import ChangedThreshold


class Rule(Part):
    """One rule."""

    name: Annotated[str, says("As `findings --rule` takes it.")]
    about: Annotated[str, says("What it finds, in words.")]
    thresholds: Annotated[list[ChangedThreshold], says("What it judges by; empty where a finding needs no share.")]


class Rules(Document):
    """The rules, by name."""

    rules: list[Rule]


DOCUMENT = Rules
