"""Problems of KernelBench: a file with a class `Model`, `get_inputs()` and `get_init_inputs()`; `ModelNew` is tried.

Source: https://github.com/ScalingIntelligence/KernelBench, levels 1 and 2, read 2026-11-25. As there, both models are
made right after the same seed, so that their weights are the same where they are made in the same order. Inputs are
drawn by the problem's own code from our seeds, in the reference's process.
"""

import ast
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inferometer.bench.problems.adapters import adapt_problem
from inferometer.bench.problems.foreign_operator import ForeignOperator, no_cost, no_reference, only_written
from inferometer.bench.problems.jobs import ProblemJob, encode_job, named_inputs
from inferometer.bench.problems.packages import Packaged, pack
from inferometer.bench.problems.reference import Reference
from inferometer.errors import FormatError, clean
from inferometer.side_files import read_side_file

if TYPE_CHECKING:
    from torch import Tensor

MODEL, CANDIDATE = "Model", "ModelNew"
SETTINGS = ("kinds", "model_seed", "want")
_SEED_BITS = 31
_HINT = "Give a problem of KernelBench: a file with a class Model, get_inputs() and get_init_inputs()."


def is_problem(path: Path) -> bool:
    """Whether a Python file is one, by its text."""
    return path.suffix == ".py" and b"get_inputs" in read_side_file(path)


def read_problem(path: Path) -> str:
    """Its text.

    Raises:
        InputError: It can't be read.
        FormatError: It isn't one: what is missing.
    """
    text = read_side_file(path, hint=_HINT).decode("utf-8", "replace")
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        line = f":{error.lineno}" if isinstance(error, SyntaxError) else ""
        raise FormatError(f"{path}{line}: expected Python, found: {clean(str(error)):.200}", hint=_HINT) from error
    names = {each.name for each in tree.body if isinstance(each, ast.ClassDef | ast.FunctionDef)}
    missing = [name for name in (MODEL, "get_inputs", "get_init_inputs") if name not in names]
    if missing:
        raise FormatError(f"{path}: expected {', '.join(missing)}, found none", hint=_HINT)
    return text


def name_of(path: Path) -> str:
    """What the problem is called: its file."""
    return re.sub(r"[^A-Za-z0-9_.+-]+", "_", path.stem)[:120] or "problem"


def pack_model(path: Path, problem: Path, name: str, folder: Path) -> Packaged:
    """A file with `ModelNew` as a candidate.

    Raises:
        InputError: It can't be read.
    """
    text = read_side_file(path, hint="Give a Python file with a class ModelNew.").decode("utf-8", "replace")
    end = adapt_problem(name, entry=CANDIDATE, file=path.name, problem=str(problem.resolve()))
    return pack(clean(path.name), {path.name: text}, end, folder, package="model")


def pack_problem(text: str, path: Path, name: str, folder: Path) -> Path:
    """The file of a problem's `Model`, to be called in a process of its own."""
    folder.mkdir(parents=True)
    file = folder / "reference.py"
    file.write_text(text + adapt_problem(name, entry=MODEL, file=path.name, copies=True), "utf-8")
    return file


def make_operator(
    path: Path, name: str, job: Path, reference: Reference, device: str
) -> tuple[ForeignOperator, tuple[tuple[str, Mapping[str, Any]], ...]]:
    """The operator, and its only shape. The problem is asked once, as only its code shows what it takes and gives.

    Raises:
        InputError: Its code fails.
    """
    import torch

    job.write_bytes(encode_job(ProblemJob(str(path.resolve()))))
    seed = secrets.randbits(_SEED_BITS)

    def draw(given: int) -> "tuple[Tensor, ...]":
        args = {"kinds": [], "model_seed": seed, "want": "inputs"}
        return reference.ask(operator, {"seed": torch.tensor(given)}, args)

    def inputs(*, seed: int, device: str = "cpu", **_: object) -> "dict[str, Tensor]":
        return named_inputs(draw(seed)[1:], device)

    def ask(tensors: "Mapping[str, Tensor]", args: Mapping[str, Any]) -> "dict[str, Tensor]":
        return {f"output{place}": each for place, each in enumerate(reference.ask(operator, tensors, args))}

    operator = ForeignOperator(
        name=name, summary=f"The problem {name} of KernelBench.", dims={}, inputs=inputs, reference=no_reference,
        outputs=("output0",), cost=no_cost, work=only_written(lambda args: args["output_bytes"]), tiny=(),
        settings=SETTINGS, job=job, ask=ask,
    )  # fmt: skip
    kinds, *tensors = draw(0)
    shape = "; ".join(f"{str(each.dtype).removeprefix('torch.')} {list(each.shape)}" for each in tensors)
    args = {"kinds": kinds.tolist(), "model_seed": seed, "want": "answer"}
    answers = ask(named_inputs(tensors, device), args).values()
    size = sum(each.numel() * each.element_size() for each in answers)
    return operator, ((f"its inputs: {shape}", {**args, "output_bytes": size}),)
