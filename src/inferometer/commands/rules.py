"""`inferometer rules`: the rules that make findings, and the thresholds that they judge by."""

from typing import Any

from inferometer.commands.base import Output, asked_thresholds, command, output_options
from inferometer.reports.schemas.schema import Schema

SCHEMA = Schema("rules", 1)


@command(
    "rules",
    group="Tools",
    help="The rules that make findings, and the shares of time from which on one is low, medium or high.\n\n"
    "A settings file sets these thresholds under [thresholds], by the names that this lists.",
    example="inferometer rules",
)
@output_options("json")
def run(out: Output) -> None:
    rules = _rules_as_data()
    if out.form == "json":
        out.write_json(SCHEMA, {"rules": rules})
        return
    from inferometer.units import format_share

    for rule in rules:
        out.write(f"{rule['name']}\n  {rule['about']}\n")
        for each in rule["thresholds"]:
            own = "" if each["value"] == each["default"] else f", by default {format_share(each['default'])}"
            out.write(f"  {each['name']} = {each['value']:g}  ({format_share(each['value'])}{own})\n")


def _rules_as_data() -> list[dict[str, Any]]:
    import sys

    from inferometer.findings.engine import known_rules
    from inferometer.findings.thresholds import thresholds_of

    given = asked_thresholds()
    return [
        {
            "name": rule.name,
            "about": (sys.modules[rule.find.__module__].__doc__ or "").strip().split("\n", maxsplit=1)[0],
            "thresholds": [
                {"name": name, "value": given.get(name, default), "default": default}
                for name, default in thresholds_of([rule]).items()
            ],
        }
        for rule in known_rules().values()
    ]
