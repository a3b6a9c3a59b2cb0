"""The process that compiles: `python -m inferometer.bench.builds.worker JOB`, one for each architecture.

One each, as Triton keeps kernels in memory by the number of the device: a second architecture in the same process
would be answered with the code of the first. Nothing of a candidate is run in any other process of ours.
"""

import sys
import traceback
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec

from inferometer.backends import require_backend
from inferometer.bench.builds.cute_dsl import install, is_used
from inferometer.bench.builds.events import Ended, Events, Job, Lacking, Multiplied, Ready, Stopped
from inferometer.bench.builds.interception import Recorder, describe
from inferometer.bench.builds.limits import ARCHITECTURES, ArchitectureLimits
from inferometer.bench.builds.stub_driver import StubDriver, pretend_cuda
from inferometer.bench.contracts import contract_of, made_of
from inferometer.bench.process.calling import BadCandidate, Call, as_call
from inferometer.bench.process.candidate import call_of, load_module
from inferometer.bench.process.contract import Contract
from inferometer.errors import clean
from inferometer.operators import require_operator
from inferometer.operators.operator import Operator

_SEED = 0  # of the tensors: which ones makes no difference to what is compiled

DECLARED = "BUILDS"
"""A module-level list of a candidate that declares its kernels in place of having them launched; each a mapping:

- `kernel`: the `@triton.jit` function;
- `signature`: Triton's type of every argument by name, `constexpr` for those in `constants`;
- `constants`: their values by name;
- `divisible`: names of the arguments that 16 divides;
- anything else: options, as `num_warps`.
"""


def main() -> None:
    """Reads the job that the command line names, and writes events."""
    job = msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Job)
    events = Events(job.events)
    events.send(Ready())
    try:
        if job.backend is None:  # before PyTorch is loaded, which takes seconds
            compile(Path(job.candidate).read_bytes(), job.candidate, "exec")
        lacking = _lacking(ARCHITECTURES[job.architecture])
        if lacking is not None:
            events.send(lacking)
            return
        _build(job, events)
    except BadCandidate as problem:
        events.send(Stopped(clean(str(problem))))
    except (Exception, SystemExit) as error:  # noqa: BLE001  the edge to the candidate's code
        events.send(Stopped(_placed(error, job.candidate)))
    events.send(Ended())


def _build(job: Job, events: Events) -> None:
    import torch

    torch.set_num_threads(1)  # processes of other architectures run in parallel with it
    limits = ARCHITECTURES[job.architecture]
    operator = require_operator(job.operator)
    driver = StubDriver(limits)
    recorder = Recorder(limits, job.architecture, events, job.messages, driver)
    recorder.install()
    multiplied = pretend_cuda(limits)
    if job.backend is None:
        if limits.backend == "cuda" and is_used(Path(job.candidate).read_bytes()) and find_spec("cutlass"):
            install(limits, Path(job.events).with_name("cute"), recorder.note)
        module = load_module(Path(job.candidate))
        if hasattr(module, DECLARED):
            for declared in getattr(module, DECLARED):
                _compile_declared(declared, driver, recorder)
            return
        call = call_of(module, Contract(**contract_of(operator)))
    else:
        call = _call_of_backend(job.backend, operator)
    for recorder.case, args in enumerate(job.cases):
        tensors = operator.inputs(**args, seed=_SEED)
        multiplied.clear()
        call(tensors, args, made_of(operator, args))
        events.send(Multiplied(sorted(multiplied)))


def _call_of_backend(name: str, operator: Operator) -> Call:
    backend = require_backend(name)
    if backend.build is None:
        raise BadCandidate(f"the kernels of {name} aren't compiled here")
    return as_call(backend.build(operator.name), operator.settings)


def _lacking(limits: ArchitectureLimits) -> Lacking | None:
    """What of Triton isn't here, as its wheel has all."""
    try:
        from triton import knobs
        from triton.backends import backends
    except ImportError as error:
        hint = "pip install -U triton: 3.6 to 3.9 are known to do"
        return Lacking(f"this Triton can't be used: {describe(error)}", hint)

    wanted = {"cuda": "nvidia", "hip": "amd"}[limits.backend]
    if wanted not in backends:
        return Lacking(f"this Triton has no backend for {wanted}", "pip install triton")
    if limits.backend == "hip":
        return None
    for name in ("nvdisasm", "ptxas_blackwell" if limits.capability >= (10, 0) else "ptxas"):
        try:
            getattr(knobs.nvidia, name)
        except RuntimeError:
            hint = f"Triton's wheel brings it: pip install triton, or set TRITON_{name.upper()}_PATH"
            return Lacking(f"{name.replace('_', '-')} is not installed", hint)
    return None


def _compile_declared(declared: Mapping[str, Any], driver: StubDriver, recorder: Recorder) -> None:
    import triton
    from triton.compiler import ASTSource

    options = dict(declared)
    kernel, signature = options.pop("kernel"), options.pop("signature")
    constants, divisible = options.pop("constants", {}), options.pop("divisible", ())
    attributes = {(index,): [["tt.divisibility", 16]] for index, name in enumerate(signature) if name in divisible}
    source = ASTSource(fn=kernel, signature=signature, constexprs=constants, attrs=attributes)
    target = driver.get_current_target()
    call = lambda: triton.compile(source, target=target, options=options)  # noqa: E731
    recorder.compile(kernel.__name__, call, {**constants, **options})


def _placed(error: BaseException, candidate: str) -> str:
    """The error with the last line of the candidate's that led to it."""
    if isinstance(error, SyntaxError):
        return clean(f"{Path(candidate).name}:{error.lineno}: SyntaxError: {error.msg}")
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == candidate]
    place = f"{clean(Path(candidate).name)}:{lines[-1]}: " if lines else ""
    return f"{place}{describe(error)}"


if __name__ == "__main__":
    main()
