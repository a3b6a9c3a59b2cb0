"""A result as a piece of HTML for notebooks: plain tables, everything from the file escaped."""

from inferometer.analyses.result import Result
from inferometer.reports.base import cell, is_right, loss_lines, shown_fields
from inferometer.reports.views.view import facts_of, remarks_of, sections_of

_ROWS = 200
_TEMPLATE = """<div class="inferometer">
{%- for label, text in facts %}<div><b>{{ label }}</b>: {{ text }}</div>{% endfor %}
{%- for remark in remarks %}<p>{{ remark }}</p>{% endfor %}
{%- for section in sections %}
<table><caption>{{ section.title }}</caption>
<thead><tr>
{%- for title, right in section.head %}
<th{% if right %} style="text-align:right"{% endif %}>{{ title }}</th>
{%- endfor %}
</tr></thead>
<tbody>
{%- for row in section.rows %}
<tr>{% for text, right in row %}<td{% if right %} style="text-align:right"{% endif %}>{{ text }}</td>{% endfor %}</tr>
{%- endfor %}
</tbody></table>
{%- if section.more %}<p>{{ section.more }} more rows</p>{% endif %}
{%- endfor %}
{%- if losses %}<ul>{% for line in losses %}<li>{{ line }}</li>{% endfor %}</ul>{% endif %}
</div>
"""


def render_html(result: Result) -> str:
    """A `<div>`; at most 200 rows per table, and how many more there are."""
    from jinja2 import Environment

    sections = []
    for section in sections_of(result):
        fields = shown_fields(section)
        rows = [
            [(cell(field, row[field.column]), is_right(field)) for field in fields]
            for row in section.frame.head(_ROWS).iter_rows(named=True)
        ]
        head = [(field.title, is_right(field)) for field in fields]
        more = max(0, section.frame.height - _ROWS)
        sections.append({"title": section.title, "head": head, "rows": rows, "more": more})
    template = Environment(autoescape=True).from_string(_TEMPLATE)
    return template.render(
        facts=facts_of(result), remarks=remarks_of(result), sections=sections, losses=loss_lines(result.losses)
    )
