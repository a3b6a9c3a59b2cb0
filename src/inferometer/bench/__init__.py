"""The evaluator: does a kernel build, is it right, is it fast.

A `BACKEND` (`backends/backend.py`) names its operators, says why it can't run here, and loads a kernel that is called
as the reference is. The backend `torch` has all of the catalogue in plain PyTorch: the base of timings, and what
tolerances are calibrated by (`bench/calibration.json`).

`bench/run.py` sends every candidate (`candidates.py`: backends, a candidate's file) through the stages.
`isolation.py` runs each in a process of its own, whose code is `bench/process`: `worker.py` loads and calls,
`guard.py` refuses and reports, `state.py` names what was replaced (`tampering.py`) or left on (`left_on.py`).
`correct.py` draws cases, sends inputs and compares what comes back (`comparison.py`) with the operator's reference,
which only this side computes. `fast.py` times what is right, with the base, in turns: `race.py` asks for rounds of
calls, stops when medians stand still, and picks answers to compare; `lineup.py` makes rounds of the calls of all
processes, times them on a CPU, and watches each process from outside (`outside.py`); `process/course.py` calls, on
a GPU with one of `process/timers.py`. With CUPTI a round is a profile that the Kineto reader reads
(`bench/profiles`), which also shows whose kernels ran. `conditions.py` watches the machine meanwhile, `samples.py`
makes medians, intervals and verdicts. All of it is a `Run` (`results.py`); `bench/ranking` scores and ranks runs,
`bench/exchange` speaks flashinfer-bench's form.

`bench/builds` calls a candidate under a pretended driver (`stub_driver.py`), compiles what it launches in a process
for each architecture, and reads registers and instructions from what the compilers say (`machine_code.py`); `gate.py`
judges.
"""
