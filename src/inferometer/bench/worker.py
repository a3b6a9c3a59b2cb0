"""The candidate's process: loads it, calls it for each case it is sent, and writes what came of it.

`python -m inferometer.bench.worker REPLIES` with the number of a file that replies go to, a line of JSON each; requests
come on standard input. It gets inputs only, one case at a time, and never an answer or a seed. Memory that torch hands
out is filled with NaN (integers: their largest value), so that what a kernel leaves unwritten can't be right by chance.
"""

import json
import os
import resource
import sys
import time
import traceback
from pathlib import Path
from typing import Any, TextIO

from inferometer.bench.candidate import BadCandidate, Call, load_candidate
from inferometer.operators import require_operator

_MESSAGE = 2_000  # characters of an error


def main() -> int:
    """Answer requests until there are no more."""
    with os.fdopen(int(sys.argv[1]), "w", buffering=1) as replies:
        first = json.loads(sys.stdin.readline())
        call = _load(first, replies)
        if call is None:
            return 1
        for line in sys.stdin:
            _answer(call, json.loads(line), replies)
    return 0


def _load(request: dict[str, Any], replies: TextIO) -> Call | None:
    try:
        import torch

        torch.set_num_threads(request["threads"])
        _poison(torch)
        if request["memory_bytes"]:
            resource.setrlimit(resource.RLIMIT_AS, (request["memory_bytes"],) * 2)
        path = Path(request["candidate"]) if request["candidate"] else None
        call = load_candidate(path, require_operator(request["operator"]))
    except BadCandidate as error:
        _reply(replies, error=str(error))
    except BaseException as error:  # noqa: BLE001  the edge to code that isn't ours
        _reply(replies, error=_said(error))
    else:
        _reply(replies)
        return call
    return None


def _answer(call: Call, request: dict[str, Any], replies: TextIO) -> None:
    import torch

    try:
        tensors = torch.load(request["inputs"], weights_only=True)
        began = time.perf_counter_ns()
        with torch.no_grad():
            found = call(tensors, request["args"])
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        took = time.perf_counter_ns() - began
        outputs = list(found) if isinstance(found, tuple | list) else [found]
        odd = next((type(each).__name__ for each in outputs if type(each) is not torch.Tensor), None)
        if odd is not None:
            _reply(replies, error=f"want plain tensors, found {odd}")
            return
        torch.save({"outputs": outputs, "inputs": tensors}, request["outputs"])
    except BaseException as error:  # noqa: BLE001
        _reply(replies, error=_said(error))
    else:
        _reply(replies, ns=took)


def _reply(replies: TextIO, **said: Any) -> None:
    replies.write(json.dumps(said) + "\n")


def _said(error: BaseException) -> str:
    """The error with the line of the candidate that it is from."""
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if "inferometer" not in frame.filename]
    where = f" (line {own[-1].lineno} of {Path(own[-1].filename).name})" if own else ""
    return f"{type(error).__name__}: {error}{where}"[:_MESSAGE]


def _poison(torch: Any) -> None:
    """New memory is full of NaN, or of the largest integer."""

    def filled(make: Any) -> Any:
        def poisoned(*args: Any, **kwargs: Any) -> Any:
            found = make(*args, **kwargs)
            if found.dtype.is_floating_point:
                return found.fill_(float("nan")) if found.element_size() > 1 else _fill_bytes(torch, found)
            return found.fill_(True if found.dtype == torch.bool else torch.iinfo(found.dtype).max)

        return poisoned

    for name in ("empty", "empty_like", "empty_strided", "empty_permuted"):
        setattr(torch, name, filled(getattr(torch, name)))
    for name in ("new_empty", "new_empty_strided"):
        setattr(torch.Tensor, name, filled(getattr(torch.Tensor, name)))


def _fill_bytes(torch: Any, found: Any) -> Any:
    """fp8 types lack `fill_` on some devices; 0x80 is NaN in fnuz, 0x7f in the others."""
    found.view(torch.uint8).fill_(0x80 if "fnuz" in str(found.dtype) else 0x7F)
    return found


if __name__ == "__main__":
    sys.exit(main())
