"""What each metric says about a slower run: a cause that may be outside the program, its effect, or mere context.

A cause has a class, the direction in which it harms, a severity in physical units, and the classes of functions that it
slows. Effects (the program's own use of a resource) follow the step time and never explain it. Metrics without a rule
are context: shown, never claimed.
"""

import re
from functools import lru_cache
from typing import Literal

import msgspec

CauseClass = Literal[
    "cpu_clock", "cpu_contention", "cpu_quota", "gpu_clock", "gpu_contention", "gpu_memory", "nvlink_traffic",
    "pcie_traffic", "network", "disk", "memory_pressure", "thermal",
]  # fmt: skip
Kind = Literal["cause", "effect", "context"]
Severity = Literal["drop", "usage", "fraction", "share", "full", "traffic", "temperature"]
Direction = Literal["up", "down"]
Waits = Literal["program", "threads"]


class MetricRole(msgspec.Struct, frozen=True):
    """`names`: the metric, whole, in lower case. `family`: metrics of one thing. `slows`: function classes.

    Of these `cpu` is ops whose device is the CPU itself. Load by others slows them where they have to wait for a
    processor: the run queue shows that. Next to an idle one it need not, so `others_cpu_usage` alone doesn't say it.

    Severity, 0 to 1, from the medians n (base) and a (candidate): `drop` 1 - a/n, `usage` (a - n) / 100 of a
    percentage, `fraction` a - n, `share` (a - n) of a capacity, `full` the same where a is nearly all of it, `traffic`
    by share of capacity and fold change (of the network by share alone), `temperature` as a part of what was left to
    the limit.

    `yields_to`: a class that makes the metric worse, too. Where that is certain, the metric is no sign of its own.
    `shown_by`: a metric that must have risen, too, where it was measured in both runs.

    `waits`: the metric is the part of the time in which the program could not run (`program`), or the part of the time
    that its threads ran or could in which they waited (`threads`): so long its steps may be for that reason, no longer.
    """

    names: str
    kind: Kind = "cause"
    cause_class: CauseClass | None = None
    harmful: Direction = "up"
    severity: Severity = "usage"
    slows: tuple[str, ...] = ()
    family: str = ""
    yields_to: CauseClass | None = None
    shown_by: str | None = None
    waits: Waits | None = None


OTHERS_CPU, OTHERS_GPU, RUN_QUEUE = "others_cpu_usage", "others_gpu_usage", "runq_share"
DISK_GROWTH = "disk_growth"
"""Derived: load by others is the whole less the process's own; the run queue's share of the time a thread could run."""


def _cause(
    names: str,
    cause_class: CauseClass,
    family: str,
    severity: Severity,
    slows: str,
    *,
    harmful: Direction = "up",
    yields_to: CauseClass | None = None,
    shown_by: str | None = None,
    waits: Waits | None = None,
) -> MetricRole:
    functions = tuple(slows.split())
    return MetricRole(names, "cause", cause_class, harmful, severity, functions, family, yields_to, shown_by, waits)


ROLES = (
    _cause(r"cpu_(?:frequency|clock)", "cpu_clock", "CPU clock", "drop", "host cpu waiting", harmful="down"),
    _cause(
        r"cpu_limited_.*|cpu_stopped", "cpu_quota", "limit of the CPU", "fraction", "host cpu waiting", waits="program"
    ),
    _cause(OTHERS_CPU, "cpu_contention", "CPU load by others", "usage", "host waiting", shown_by=RUN_QUEUE),
    _cause(
        *(RUN_QUEUE, "cpu_contention", "CPU load by others", "fraction", "host cpu"),
        yields_to="cpu_quota",
        waits="threads",
    ),
    _cause(r"gpu_(?:sm_|graphics_)?(?:frequency|clock)", "gpu_clock", "GPU clock", "drop", "compute", harmful="down"),
    _cause(r"(?:gpc|sm|sys) clock frequency.*", "gpu_clock", "GPU clock", "drop", "compute", harmful="down"),
    _cause(r"gpu_mem(?:ory)?_(?:frequency|clock)", "gpu_memory", "memory clock", "drop", "compute", harmful="down"),
    _cause(r"gpu_mem(?:ory)?_(?:used|usage)", "gpu_memory", "GPU memory in use", "full", ""),
    _cause(OTHERS_GPU, "gpu_contention", "GPU load by others", "usage", "compute"),
    _cause(r"gpu_(?:link|nvlink|xgmi)_.*|nvlink.*", "nvlink_traffic", "GPU links", "traffic", "collective transfer"),
    _cause(r"gpu_pcie_.*|pcie.*", "pcie_traffic", "PCIe", "traffic", "transfer"),
    _cause(r"(?:net|network|nic|rdma|ib)_.*", "network", "network", "traffic", "collective waiting"),
    _cause(r"disk_(?:util|busy|io_util).*", "disk", "disk", "usage", "waiting"),
    _cause(r"io_pressure.*", "disk", "disk", "fraction", "waiting"),
    _cause(rf"(?:others_)?disk_(?:read|write|io).*|{DISK_GROWTH}", "disk", "disk", "traffic", "waiting"),
    _cause(r"host_mem_usage", "memory_pressure", "host memory", "usage", "host waiting"),
    _cause(r"host_mem_available", "memory_pressure", "host memory", "drop", "host waiting", harmful="down"),
    _cause(r"memory_pressure.*", "memory_pressure", "host memory", "fraction", "host waiting"),
    _cause(r"(?:process|host)_mem_swap.*|swap_.*", "memory_pressure", "swap", "share", "host waiting"),
    _cause(r"(?:.*_)?temp(?:erature)?(?:_.*)?", "thermal", "temperature", "temperature", "compute"),
    MetricRole(r".*throttle_(?:sw_)?power_cap", "context"),  # many GPUs run at their power limit, however cool they are
    _cause(r".*throttle.*", "thermal", "throttling", "fraction", "compute"),
    MetricRole(r"(?:process|container)_.*|host_cpu_usage|.*power.*", "effect"),
    MetricRole(r"gpu_(?:sm_util|sm_occupancy|usage|utili[sz]ation).*", "effect"),
    MetricRole(r".*", "context"),
)


@lru_cache(maxsize=4_096)
def role_of_metric(metric: str) -> MetricRole:
    """The first rule that knows the metric."""
    name = metric.lower()
    return next(role for role in ROLES if re.fullmatch(role.names, name))
