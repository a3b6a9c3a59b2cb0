"""All thresholds of a comparison, each with its reason. None was tuned to a file.

They were set from what the quantities mean, before the method met the labelled pairs of `tests/faults`.
"""

MIN_GROWTH = 0.005
"""Functions that grew by more than this part of a step are a change of software even where the step hides it."""

BURST = 0.2
"""Samples nearer to each other than this part of the usual time between ticks belong to one tick."""

FEWEST_TICKS = 4
"""Ticks in each run. How many it takes to tell a change follows from the test; neighbours in time are alike, which it
doesn't know, so two or three are none however many the other run has."""

MIN_EXPLAINED = 0.5
"""A wait that can account for less than this part of what a step takes longer isn't named as the cause."""

SAME_MEMORY_BYTES = 64 << 20
"""What a GPU with one tenant has in use is that process's memory and what an idle GPU has, within this: in published
recordings 6 and 9 MiB more, while the next GPU is off by 258 MiB."""

OWN_MEMORY_BYTES = 4 << 30
"""The same where no GPU is idle: contexts and libraries take about 1 GB, and other tenants of a model's GPU more."""

MIN_CYCLES = 5
"""Complete cycles in each run, for an interval of the step's ratio."""

ALPHA = 0.05
"""False discovery rate over the metrics of a comparison, and one less the confidence of intervals."""

MIN_SEVERITY = 0.05
"""Causes weaker than this are never claimed: a clock 5 % lower, 5 % of the host in use by others."""

MIN_SEVERITY_ALONE = 0.2
"""The same where no times say that anything slowed, or where samples are too few for a test."""

MIN_CHANGE = 0.03
"""A step or a class of functions is slower or faster where its ratio's interval lies wholly beyond 1 by this much.
Published normal runs of one set-up drift by up to 2.5 % between runs, which no interval of one run can know."""

CLEAR_CHANGE = 0.05
"""A mean step that is longer by more than this, twice the usual drift, is never called as long as before where its
interval excludes 1."""

FEW_CHANGE = 0.1
"""The same for runs of `MIN_CYCLES` steps or fewer, one of which may be out of line."""

MIN_SHARE = 1e-5
"""A class of functions with less of the step than this is not looked at."""

MIN_SOFTWARE = 0.5
"""Functions that changed explain a slower step as a change of software from this part of its change on."""

MIN_WORK = 0.25
"""The same of calls that are more in one ratio: they are certain, and whatever else slows a step slows them, too."""

AGREES, UNKNOWN, DISAGREES = 1.0, 0.6, 0.3
"""Weight of a cause by the functions that slowed: those that it would slow, none known, others."""

FULL = 0.98
"""Part of a GPU's memory in use from which on allocations may fail and be tried again; below, nothing waits for it."""

HOT_C = 70.0
"""Degrees Celsius below which no device slows down for heat."""

THROTTLING_C = 90.0
"""Degrees Celsius at which a device is taken to slow down where the file and `hardware/` don't say."""

ASYMPTOTIC = 25
"""Ticks a run from which the normal approximation of the rank test is good to a percent."""

TYPICAL = {
    "nvlink_traffic": (300e9, "a link of 300 GB/s (NVLink 3, one direction)"),
    "pcie_traffic": (31.5e9, "PCIe 4.0 x16, 31.5 GB/s a direction"),
    "network": (12.5e9, "a network of 100 Gbit/s"),
    "disk": (3.5e9, "a disk of 3.5 GB/s"),
}
"""Bytes per second by class of cause, assumed, and reported, where neither a file nor `hardware/` shows a capacity."""

RESAMPLES = 2_000
"""Bootstrap and permutation samples."""

SEED = 20_260_119
"""Of all resampling: the same input always gives the same answer."""

WHOLE_CYCLE = 0.9
"""A cycle with fewer calls than this part of the usual is partial: the recording began or ended in it."""

MAIN_DEVICE = 0.1
"""A device with fewer calls than this part of the busiest one's is a bystander: steps are not averaged over it."""

OTHER_UNIT = 1.25
"""Cycles whose calls differ by more than this factor, all alike, are another unit of work."""

SAME_CALLS = 0.1
"""Calls per step agree within this; two cycles of one engine differ by a call or two of hundreds."""

MIN_SHARED = 5
"""Functions in common from which on a missing ratio of calls says that the work differs."""

MOST = 0.5
"""More of the shared functions than this make a ratio of calls the common one, more of the marks a boundary."""

MORE_CALLS = 0.05
"""From here on a change of a function's time is put down to the number of its calls."""

NOT_REPEATED = 0.1
"""A change below this of a function seen once in a run, of unknown spread, is taken for noise."""

BLOCKS = 64
"""Stretches of launches that stand for cycles where a window holds none: enough to resample, and drift stays inside."""

UNITS = 512
"""Cycles resampled one by one; of more, neighbours are taken together."""

IN_ORDER = 100_000
"""Launches whose order is looked at, in stretches over the run: layers repeat, and names are few."""

LONGEST_GROUP = 8
"""Kernels in a row that may have become one; more is another program, not a fusion."""

SAME_PLACE = 0.8
"""Part of a kernel's calls that must be where the other's are for one to have taken its place."""

RELIABLE_STEPS = 0.75
"""Confidence from which on found steps are compared. Of the synthetic traces in `benchmarks/steps_truth.py`, those
whose kernels show their steps have 0.79 and more; below, nothing is known to be right, and 0.6 is
the least that is found."""

FEWEST_OF_PHASE = 2
"""Whole steps of a phase in each run, of fewer no phase is compared by itself: one step shows no spread."""
