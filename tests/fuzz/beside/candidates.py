"""Candidates of `bench`, for the campaign: their files, and the outputs that one may write itself.

Each `open_…` uses a damaged sample as its command does; it gives no trace. What it starts ends with it.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from random import Random

from inferometer.bench.answers import UnreadableAnswer, read_answer
from inferometer.bench.candidates import Candidate
from inferometer.errors import InputError
from inferometer.operators import require_operator

Files = Mapping[str, bytes]

_SHARE_RUN = 0.2  # of the candidates: torch takes two seconds to start
_OURS = """
import torch


def rms_norm(x, weight, *, eps):
    wide = x.float()
    scale = torch.rsqrt((wide * wide).mean(-1, keepdim=True) + eps)
    return (wide * scale * weight.float()).to(x.dtype)
"""
_TRITONS = """
import torch
import triton
import triton.language as tl


@triton.jit
def copy(x, y, n: tl.constexpr):
    at = tl.arange(0, n)
    tl.store(y + at, tl.load(x + at))


def rms_norm(x, weight, *, eps):
    return torch.nn.functional.rms_norm(x, weight.shape, weight, eps)
"""


@cache
def candidates() -> Sequence[Files]:
    """Files of candidates, and the files of outputs that one may write itself."""
    return [*({"mine.py": text.encode()} for text in (_OURS, _TRITONS)), *_answers()]


def _answers() -> list[Files]:
    if find_spec("torch") is None:
        return []
    import torch

    tensor, found = torch.ones(3, 4), list[Files]()
    for outputs in ((tensor,), (tensor.expand(5, 3, 4), tensor.to(torch.bfloat16), tensor > 0)):
        with BytesIO() as file:
            torch.save({"outputs": outputs, "inputs": {"x": tensor}}, file)
            found.append({"outputs": file.getvalue()})
    return found


def open_candidate(path: Path, rng: Random) -> None:
    """What is read of its file here; and of some, a call in its own process."""
    if path.name == "outputs":
        try:
            answer = read_answer(path, 1 << 20)
        except UnreadableAnswer as error:
            raise InputError(f"outputs: {error}") from error
        assert all(each.shape is not None for each in (*answer.outputs, *answer.inputs.values()))
        return
    candidate = Candidate("mine.py", path)
    assert isinstance(candidate.own_kernels, frozenset)
    assert candidate.as_record().sha256
    if rng.random() > _SHARE_RUN or find_spec("torch") is None:
        return
    import torch

    from inferometer.bench.failures import CandidateFailed
    from inferometer.bench.isolation import CandidateProcess
    from inferometer.bench.session import ProcessLimits, Session

    session = Session(require_operator("rms_norm"), candidate, limits=ProcessLimits(seconds=20))
    tensors = {"x": torch.ones(4, 64), "weight": torch.ones(64)}
    try:
        with CandidateProcess(session) as process:
            process.answer(tensors, {"token_count": 4, "hidden_size": 64, "eps": 1e-6})
    except CandidateFailed as error:
        raise InputError(f"mine.py: {error}") from error
