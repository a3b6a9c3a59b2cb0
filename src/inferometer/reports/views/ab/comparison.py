"""An A/B by call path as people read it."""

from inferometer.reports.schemas.schema import Schema
from inferometer.reports.views.ab.remarks import ab_facts, ab_remarks
from inferometer.reports.views.ab.sections import ab_sections
from inferometer.reports.views.ab.table import every_path
from inferometer.reports.views.view import View

VIEW = View(
    schema=Schema("ab", 1),
    facts=ab_facts,
    sections=ab_sections,
    remarks=ab_remarks,
    remarks_in_json=True,
    table=every_path,
)
