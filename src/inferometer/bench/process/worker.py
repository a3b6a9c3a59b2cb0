"""The candidate's process: loads candidates, calls them as it is asked to, and writes what came of it.

`python -m inferometer.bench.process.worker REPLIES` with the number of a file that replies go to, a line of JSON each;
requests come on standard input. There are two kinds of session, and neither ever holds an answer:

- answers: one candidate gets inputs that others drew, one case at a time, and never a seed. Memory is poisoned.
- times: candidates take turns. Inputs are drawn here, right before each call, from seeds that come with the request;
  outputs stay here until the other side, which knows what is right, picks some.
"""

import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from inferometer.bench.process.candidate import BadCandidate
from inferometer.bench.process.course import Course
from inferometer.bench.process.guard import arm
from inferometer.bench.process.lanes import BadAnswer, ReadyCandidate, load_lane
from inferometer.bench.process.poison import poison
from inferometer.bench.process.tampering import Seal, seal
from inferometer.bench.results import REFUSED
from inferometer.errors import Unavailable

_MESSAGE = 2_000  # characters of an error

Answer = Callable[[dict[str, Any]], dict[str, Any]]


def main() -> int:
    """Answer requests until there are no more."""
    with os.fdopen(int(sys.argv[1]), "w", buffering=1) as replies:
        answer = _attempt(_open, json.loads(sys.stdin.readline()), replies)
        if answer is None:
            return 1
        for line in sys.stdin:
            _attempt(answer, json.loads(line), replies)
    return 0


def _attempt(do: Callable[[dict[str, Any]], Any], request: dict[str, Any], replies: TextIO) -> Any:
    """What came of it, having replied; None where it went wrong."""
    try:
        found = do(request)
    except BaseException as error:  # noqa: BLE001  the edge to code that isn't ours
        reply: dict[str, Any] = {"error": _reason(error), "lane": getattr(error, "lane", None)}
        found = None
    else:
        reply = found if isinstance(found, dict) else {}
    replies.write(json.dumps(reply) + "\n")
    return found


def _open(request: dict[str, Any]) -> Answer:
    """Load what was asked for. Ours comes first, then a seal on it, then code that isn't ours."""
    import torch

    torch.set_num_threads(request["threads"])
    _limit_memory(torch, request["memory_bytes"], request["device"])
    course = Course.of(request) if request["timed"] else None
    if course is None:
        poison(torch)
    about = (request["operator"], request["settings"], request["updates"])
    ours = [load_lane(each, *about) for each in request["lanes"] if each["file"] is None]
    sealed = seal()
    files = [each for each in request["lanes"] if each["file"] is not None]
    for each in files:
        arm(each["file"])
    lanes = [*ours, *(load_lane(each, *about) for each in files)]
    _refuse_broken(sealed)
    if course is None:
        return lambda asked: _answer(lanes[0], asked, sealed)
    course.begin(lanes, sealed)
    return course.answer


def _answer(lane: ReadyCandidate, request: dict[str, Any], sealed: Seal) -> dict[str, Any]:
    """One case: inputs from a file, outputs and what became of the inputs to a file."""
    import torch

    tensors = torch.load(request["inputs"], weights_only=True)
    with torch.no_grad():
        found = lane.call(tensors, request["args"])
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    outputs = lane.accept(found, tensors)
    torch.save({"outputs": outputs, "inputs": tensors}, request["outputs"])
    _refuse_broken(sealed)
    return {}


def _refuse_broken(sealed: Seal) -> None:
    broken = sealed.broken()
    if broken:
        raise BadAnswer(f"it replaced {', '.join(broken[:3])}: what measures and compares must stay as it is")


def _limit_memory(torch: Any, limit_bytes: int | None, device: str) -> None:
    """Of the GPU's memory where it runs there, or else of what the process may hold."""
    if not limit_bytes:
        return
    if device != "cpu":
        whole = torch.cuda.get_device_properties(device).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, limit_bytes / whole), device)
        return
    import resource

    resource.setrlimit(resource.RLIMIT_DATA, (limit_bytes, limit_bytes))


def _reason(error: BaseException) -> str:
    """Ours as it is; a refusal of a backend as such; any other with the line of the candidate that it is from."""
    if isinstance(error, Unavailable):
        return f"{REFUSED}{error.message}"
    if isinstance(error, BadCandidate | BadAnswer):
        return str(error)
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if "inferometer" not in frame.filename]
    where = f" (line {own[-1].lineno} of {Path(own[-1].filename).name})" if own else ""
    return f"{type(error).__name__}: {error}{where}"[:_MESSAGE]


if __name__ == "__main__":
    sys.exit(main())
