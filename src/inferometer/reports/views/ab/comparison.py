"""An A/B by call path as people read it."""

from inferometer.analyses.ab.comparison import PathComparison
from inferometer.reports.views.ab.remarks import ab_facts, ab_remarks
from inferometer.reports.views.ab.sections import ab_sections
from inferometer.reports.views.ab.table import every_path
from inferometer.reports.views.view import View


def _in_json(found: PathComparison) -> dict[str, list[str]]:
    return {"remarks": list(ab_remarks(found))}


VIEW = View(facts=ab_facts, sections=ab_sections, remarks=ab_remarks, in_json=_in_json, table=every_path)
