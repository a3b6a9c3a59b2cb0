"""The reference of a foreign operator, asked in a guarded process of its own: it is somebody else's code."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from inferometer.bench.candidates import Candidate
from inferometer.bench.correct import Plan
from inferometer.bench.failures import CandidateFailed
from inferometer.bench.isolation import CandidateProcess
from inferometer.bench.session import Session
from inferometer.errors import InputError
from inferometer.operators.operator import Operator

if TYPE_CHECKING:
    from torch import Tensor

_PATIENCE = 10
"""Times a candidate's seconds: references are slow."""


class Reference:
    """A context manager; the process starts when it is first asked, and again where it ended.

    Args:
        name: The operator's.
        file: With a function of that name.
        plan: Where, within which limits, and whether in a sandbox: as candidates are.
    """

    def __init__(self, name: str, file: Path, plan: Plan) -> None:
        self.name = name
        self._candidate = Candidate("reference", file)
        self._plan = plan
        self._limits = replace(plan.limits, seconds=_PATIENCE * plan.limits.seconds)
        self._process: CandidateProcess | None = None

    def __enter__(self) -> "Reference":
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End its process; once is enough."""
        if self._process is not None:
            self._process.close()

    def ask(self, operator: Operator, tensors: "Mapping[str, Tensor]", args: Mapping[str, Any]) -> "tuple[Tensor, ...]":
        """Its outputs.

        Raises:
            InputError: It gave none: the message says why.
        """
        try:
            if self._process is None or not self._process.is_alive:
                session = Session(
                    operator, self._candidate, self._plan.device, limits=self._limits, sandbox=self._plan.sandbox
                )
                self._process = CandidateProcess(session)
            return self._process.answer(tensors, args).outputs
        except CandidateFailed as failed:
            raise InputError(f"{self.name}: its reference failed: {failed}") from failed
