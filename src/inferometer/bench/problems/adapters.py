"""What is put after other people's code so that a process can call it: a function named as the operator.

What runs there is the text of the files in `in_process`, next to the candidate's code, and so knows nothing of this
package. It only passes tensors on, makes the memory of outputs where a kernel fills them, and puts outputs in order.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_IN_PROCESS = Path(__file__).with_name("in_process")
_BIND = """
globals()[{name!r}] = _make_call(__import__("json").loads({about!r}), globals())
"""

_REACH = """
import sys
sys.path[:0] = {folders!r}
"""


def adapt_definition(
    name: str,
    *,
    entry: str,
    file: str,
    inputs: Mapping[str, Sequence[str]],
    outputs: Sequence[tuple[str, Sequence[str], str]],
    sizes: Mapping[str, int],
    fills: bool = False,
    copies: bool = False,
    module: str = "",
    folders: Sequence[str] = (),
) -> str:
    """The end of a file whose function `entry` is called with a definition's inputs in their order.

    Args:
        name: What the process looks for.
        entry: Of the code's function.
        file: Where it should be, for errors.
        inputs: Axes of every input by name; none of a plain number.
        outputs: Names, axes and dtypes.
        sizes: Of the axes that are always the same.
        fills: It gets the outputs' memory after its inputs, and returns nothing.
        copies: What it returns may be a view of an input, or of another output.
        module: Where the function is, if it isn't in the same file.
        folders: Where that module and what it imports are.
    """
    about = {
        "entry": entry,
        "file": file,
        "inputs": list(inputs),
        "axes": {key: list(axes) for key, axes in inputs.items()},
        "outputs": [[key, list(axes), dtype] for key, axes, dtype in outputs],
        "sizes": dict(sizes),
        "fills": fills,
        "copies": copies,
        "module": module,
    }
    reach = _REACH.format(folders=list(folders)) if folders else ""
    return reach + _text_of("definition_call.py") + _BIND.format(name=name, about=json.dumps(about))


def adapt_problem(name: str, *, entry: str, file: str, problem: str = "", copies: bool = False) -> str:
    """The end of a file whose class `entry` is a model of KernelBench.

    `problem`: the file that makes inputs, where it is another one.
    """
    about: dict[str, Any] = {"entry": entry, "file": file, "problem": problem, "copies": copies}
    return _text_of("problem_call.py") + _BIND.format(name=name, about=json.dumps(about))


def _text_of(file: str) -> str:
    return f"\n\n{(_IN_PROCESS / file).read_text('utf-8')}\n"
