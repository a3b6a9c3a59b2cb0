"""The second thread: it computes log-probabilities and copies them to the host, while the engine's thread goes on.

It has frames, a module, ops, a stream and no marks of its own. Its work waits for nothing and nothing waits for it.
"""

from __future__ import annotations

from typing import Final

from . import aten
from .frames import builtin, function, module, small_calls
from .kernels import Kernels
from .nodes import FP32, SIDE_STREAM, Copy, Frame, Op, Tensor
from .options import Options

ROOTS: Final = (
    "threading.py(1002): _bootstrap",
    "threading.py(1045): _bootstrap_inner",
    "threading.py(982): run",
    "serving/logprobs.py(40): output_loop",
)
_ROUNDS: Final = 12
_CANDIDATES: Final = 4_096  # tokens of which it wants the probabilities


def side_program(options: Options, requests: int) -> tuple[Frame, ...]:
    """What the thread does while a step of so many requests runs: the same some times over."""
    probs_TV = Tensor((requests, _CANDIDATES), FP32)
    probs_bytes = 4 * requests * _CANDIDATES
    launch = Kernels(options).launch("softmax", (requests, 1, 1), moved_bytes=2 * probs_bytes, stream=SIDE_STREAM)
    inner = Op("aten::_log_softmax", (probs_TV, -1, False), (launch,))
    copy = aten.to(probs_TV._replace(dims=(requests, 8)), FP32, Copy("DtoH", 32 * requests, SIDE_STREAM))
    score = module(
        "LogProbs_0",
        "serving/logprobs.py(71): forward",
        *small_calls(3),
        builtin("log_softmax", Op("aten::log_softmax", (probs_TV, -1, None), (inner,)), of="type"),
        *small_calls(6, 3),
    )
    send = function("serving/logprobs.py(92): send", *small_calls(4), builtin("to", copy, of="Tensor"))
    return (score, send) * _ROUNDS
