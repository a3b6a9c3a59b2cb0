"""What a candidate's process wrote as its answer: tensors, read as such and never as code, and of bounded size.

It is a file of `torch.save`: a zip archive of one pickle and the bytes of each storage. A candidate could write
anything there. So sizes are checked first: packed bytes could grow without end, and a long pickle takes long. What is
read must be plain tensors, which is all that is compared: others raise where one looks at their sizes.
"""

import stat
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inferometer.errors import clean

if TYPE_CHECKING:
    from torch import Tensor

_LARGEST_PICKLE = 1 << 20  # bytes; that of three tensors has 500
_MOST_ENTRIES = 4_096


class UnreadableAnswer(Exception):
    """What is there is no answer; the message says why."""


@dataclass(frozen=True)
class Answer:
    """What a call gave: outputs in their order, and the inputs after it, where they were asked for."""

    outputs: "tuple[Tensor, ...]"
    inputs: "dict[str, Tensor]"


def read_answer(path: Path, most_bytes: int | None) -> Answer:
    """The answer in a file of `torch.save`.

    Args:
        path: The file.
        most_bytes: Bytes that it may hold; None: any number.

    Raises:
        UnreadableAnswer: There is none, or something else.
    """
    import torch

    try:
        status = path.lstat()
    except OSError as error:
        raise UnreadableAnswer("it wrote no outputs") from error
    if not stat.S_ISREG(status.st_mode):
        raise UnreadableAnswer("expected its outputs in a file, found something else")
    if most_bytes is not None and status.st_size > most_bytes:
        raise UnreadableAnswer(f"expected outputs of at most {most_bytes:,} bytes, found {status.st_size:,}")
    try:
        _check_archive(path, status.st_size)
        found = torch.load(path, weights_only=True)
        answer = Answer(tuple(found["outputs"]), dict(found["inputs"]))
    except UnreadableAnswer:
        raise
    except Exception as error:  # what it wrote may be anything
        raise UnreadableAnswer(f"its outputs can't be read back: {clean(str(error))[:200]}") from error
    _require_plain((*answer.outputs, *answer.inputs.values()))
    return answer


def _require_plain(found: Sequence[object]) -> None:
    import torch

    odd = next((type(each).__name__ for each in found if not isinstance(each, torch.Tensor)), None)
    if odd is not None:
        raise UnreadableAnswer(f"expected tensors in its outputs, found {clean(odd)}")
    tensors: Any = found
    if any(each.layout is not torch.strided or each.is_nested or each.is_meta for each in tensors):
        raise UnreadableAnswer("expected plain tensors in its outputs, found sparse or nested ones, or no data")


def _check_archive(path: Path, size: int) -> None:
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
    if len(entries) > _MOST_ENTRIES or sum(entry.file_size for entry in entries) > size:
        raise UnreadableAnswer("its outputs can't be read back: the file claims to hold more than it does")
    if any(entry.filename.endswith(".pkl") and entry.file_size > _LARGEST_PICKLE for entry in entries):
        raise UnreadableAnswer("its outputs can't be read back: the list of them is too long")
