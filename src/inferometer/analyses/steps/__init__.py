"""How long are an engine's steps, how do they grow with context, and which of them are out of line?

`table.step_table` is the way in, and says which file does what. `sources` finds recorded and marked steps,
`found` those that nothing marks, `printed` those of a log. `serving` sets a benchmark next to the steps.

`analyses/steps/table.py` is the table of steps: `sources.py` finds them (recorded, or marks of engines and profilers,
whose names `engine_marks.py` reads: a row a form), `class_times.py` the time of each class of kernels in each, and
when the device idled, `disturbances.py` says which are out of line with the others, `growth.py` fits lines over the
context. `printed.py` says whose steps an engine's printed sums are: a section is a run of its log, counted anew
within each rank. Where nothing marks steps, `analyses/steps/found` finds them in the order of kernels: main streams,
layers, an anchor that comes once per step, boundaries between pairs of roles, and how alike the parts are as
confidence. `launch_bound.py` says what of a step waited for launches, `outliers.py` what was different in a disturbed
one, adding up to its excess, `drift.py` what drifts. `formats/serving_results` reads what load generators wrote;
`analyses/steps/serving` sets it next to the steps, with parts that add up to the latency, or refuse. For an engine's
log and the operator calls of its model, `model/roles.py` says which calls a label stands for, each call belonging to
one class at most, and what no class claims is listed; `model/pass_work.py` says what they take in the passes that the
steps made; `model/measured_rows.py` sets the measured time of each class next to that work, `model/bounds.py` bounds
it. Measured times and modelled bytes stay in separate columns.
"""
