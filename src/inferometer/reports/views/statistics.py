"""The columns of tables that show statistics of durations."""

from inferometer.reports.views.layout import Field


def statistics_fields(count: str, name: Field) -> tuple[Field, ...]:
    """As Nsight Systems titles them; `count` is the title of the counts, `name` the field that names the rows."""
    return (
        Field("share", "Time", "share"),
        Field("total_ns", "Total Time", "ns"),
        Field("count", count, "count", spare=1),
        Field("mean_ns", "Avg", "ns", spare=2),
        Field("median_ns", "Med", "ns", spare=5),
        Field("min_ns", "Min", "ns", spare=4),
        Field("max_ns", "Max", "ns", spare=3),
        Field("stddev_ns", "StdDev", "ns", spare=6),
        name,
    )
