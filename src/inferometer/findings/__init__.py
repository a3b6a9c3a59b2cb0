"""What to look at first: one file per rule in `rules`, each declares `RULE`. `engine.find_findings` asks them all.

`findings/engine.py` asks every rule of the folder about each run of a trace, and sorts what they found by severity,
then by the time at stake. A rule is a file that declares a `RULE`: a name and a function from `Evidence` to findings.
`Evidence` is the trace of one run and what the analyses make of it (steps, growth, bounds), each made when a rule
first asks. A rule that needs what a source doesn't record is silent, so all rules look at all traces.
`evidence/launch_evidence.py` is what they may ask of single launches: who launched them, gaps and their causes,
steps. `causes.py` says which finding names the cause of which: a synchronisation in every layer makes the device idle
and launches late, and only the first says what to change. Modules of `evidence` are what several rules share.

Idle time is accounted for. `evidence/idle_kinds.py` gives each gap one kind; `launch_bound` speaks of one of them,
`idle_device` of the others (`evidence/idle_host.py`, `evidence/idle_queue.py`), and each states its `idle_ns`.
`examined.py` sets their sum next to the idle time of `timeline`, so what no finding accounts for is printed, too.
`analyses/timeline/host_activity.py` parts the gaps by what the launching thread did, `evidence/host_path.py` finds
the frames that were open for most of them; both are exact overlaps. `analyses/timeline/budget.py` makes the table
that adds up to the device's window; a finding names the rows that it speaks of (`parts`).

No sentence stands on its generator alone: `tests/truth` recomputes what is printed of real traces from their JSON, in
plain Python that shares no code with the analyses, and `benchmarks/real_verdicts.toml` has a person's verdict on each
text.

Severity follows size: a rule has a `Scale` of shares, which a user may set to others (`thresholds.py`), and the page of
findings is made from the words that give its reasons. Rules know no labels: what a kernel is, they ask `names`, and
what its role takes elsewhere in the run, the steps. What a log calls its device is never taken for a chip. A finding's
`size_ns` is time spent; what could be saved stands in the evidence, next to the rate or the part that it is measured
against.
"""
