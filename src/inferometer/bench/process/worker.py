"""The candidate's process: loads one candidate, calls it as it is asked to, and writes what came of it.

`python -m inferometer.bench.process.worker REPLIES REPORTS INPUTS OUTPUTS` with the numbers of files: replies go to
the first, a line of JSON each, what the guard reports to the second, and the others are memory that is shared. Requests
come on standard input. There are two kinds of session, and neither ever holds an answer:

- answers: it gets inputs that others drew, one case at a time, and never a seed. Memory is poisoned.
- times: rounds of calls (`course.py`).
"""

import json
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from inferometer.bench.process.calling import BadCandidate
from inferometer.bench.process.contract import BadAnswer, Contract
from inferometer.bench.process.course import Course
from inferometer.bench.process.guard import arm
from inferometer.bench.process.interpreter import mend_interpreter
from inferometer.bench.process.lanes import ReadyCandidate, load_lane
from inferometer.bench.process.poison import poison
from inferometer.bench.process.state import State
from inferometer.bench.process.views import TooLarge
from inferometer.bench.results import REFUSED
from inferometer.errors import Unavailable

_MESSAGE = 2_000  # characters of an error
_PACKAGE = str(Path(__file__).parents[2]) + os.sep

Answer = Callable[[dict[str, Any]], dict[str, Any]]


def main() -> int:
    """Answer requests until there are no more."""
    number, *others = map(int, sys.argv[1:5])
    with os.fdopen(number, "w", buffering=1) as replies:
        opened = _attempt(lambda request: _open(request, *others), json.loads(sys.stdin.readline()), replies)
        if opened is None:
            return 1
        for line in sys.stdin:
            _attempt(opened, json.loads(line), replies)
    return 0


def _attempt(do: Callable[[dict[str, Any]], Any], request: dict[str, Any], replies: TextIO) -> Any:
    """What came of it, having replied; None where it went wrong."""
    try:
        found = do(request)
    except BaseException as error:  # noqa: BLE001  the edge to code that isn't ours
        reply: dict[str, Any] = {"error": _reason(error)}
        found = None
    else:
        reply = found if isinstance(found, dict) else {}
    replies.write(json.dumps(reply) + "\n")
    return found


def _open(request: dict[str, Any], reports: int, inputs: int, outputs: int) -> Answer:
    """Load what was asked for. Ours comes first, then a seal on it, then code that isn't ours."""
    import torch

    torch.set_num_threads(request["threads"])
    _limit_memory(torch, request["memory_bytes"], request["device"])
    course = Course.of(request, (inputs, outputs)) if request["timed"] else None
    if course is None:
        poison(torch)
    file, write = request["lane"]["file"], os.write
    noted = set[str]() if file is None else mend_interpreter()  # backends mind the interpreter themselves
    state = State.now()
    if file is not None:
        arm(file, lambda line: write(reports, line))
    lane = load_lane(request["lane"], Contract(**request["contract"]))
    state.refuse()
    if course is None:
        return lambda asked: _answer(lane, asked, state) | {"interpreted": sorted(noted)}
    course.begin(lane, state)
    return course.answer


def _answer(lane: ReadyCandidate, request: dict[str, Any], state: State) -> dict[str, Any]:
    """One case: inputs from a file, outputs and what became of the inputs to a file."""
    import torch

    tensors = torch.load(request["inputs"], weights_only=True)
    with torch.no_grad():
        found = lane.call(tensors, request["args"], request["made"])
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    outputs = lane.accept(found, tensors)
    torch.save({"outputs": outputs, "inputs": tensors}, request["outputs"])
    state.refuse()
    return {}


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
    if isinstance(error, BadCandidate | BadAnswer | TooLarge):
        return str(error)
    if isinstance(error, SyntaxError):  # its text has the place; the frames are those of the import
        return f"SyntaxError: {error}"[:_MESSAGE]
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith((_PACKAGE, "<frozen "))]
    where = f" (line {own[-1].lineno} of {Path(own[-1].filename).name})" if own else ""
    return f"{type(error).__name__}: {error}{where}"[:_MESSAGE]


if __name__ == "__main__":
    sys.exit(main())
