"""In the candidate's process: a kernel that is called, and what each of its answers must be before anyone looks inside.

An answer is plain tensors in memory of its own. Another type could compute when it is looked at; a view of an input
changes with it, and memory of the answer before would change that one.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from inferometer.bench.process.calling import Call, as_call
from inferometer.bench.process.candidate import load_candidate
from inferometer.bench.process.contract import BadAnswer, Contract, Made


class ReadyCandidate:
    """One candidate, ready to be called.

    Args:
        call: Tensors by name and arguments: what it returns.
        contract: Of the operator: it may return inputs that production updates in place.
    """

    def __init__(self, call: Call, contract: Contract) -> None:
        self._call, self._contract = call, contract
        self._before: list[Any] = []

    def call(self, tensors: Mapping[str, Any], args: Mapping[str, Any], made: Made = ()) -> Any:
        """What it returns; `made`: outputs whose memory it may ask for."""
        return self._call(tensors, args, made)

    def listed(self, found: Any, tensors: Mapping[str, Any]) -> list[Any]:
        """Outputs in the contract's order, as they are.

        Raises:
            BadAnswer: They can't be put in that order.
        """
        return self._contract.in_order(found, tensors)

    def accept(self, found: Any, tensors: Mapping[str, Any]) -> list[Any]:
        """The tensors of an answer; they are kept until the next one, so that its memory can't be the same by chance.

        Raises:
            BadAnswer: They aren't plain tensors of their own, in the contract's order.
        """
        import torch

        outputs = self.listed(found, tensors)
        odd = next((type(each).__name__ for each in outputs if type(each) is not torch.Tensor), None)
        if odd is not None:
            raise BadAnswer(f"expected plain tensors, found {odd}")
        self._refuse_shared(outputs, tensors)
        self._before = outputs
        return outputs

    def _refuse_shared(self, outputs: list[Any], tensors: Mapping[str, Any]) -> None:
        updated = self._contract.updates
        inputs = {_memory(each): name for name, each in tensors.items() if name not in updated and _memory(each)}
        before = {_memory(tensor) for tensor in self._before} - {0, *map(_memory, tensors.values())}
        for i, output in enumerate(outputs):
            if (name := inputs.get(_memory(output))) is not None:
                raise BadAnswer(f"output {i} lies in the memory of the input {name}: expected a tensor of its own")
            if _memory(output) in before:
                raise BadAnswer(
                    f"output {i} lies in the memory of the answer before it: expected a new tensor each call"
                )


def load_lane(request: Mapping[str, Any], contract: Contract) -> ReadyCandidate:
    """The candidate that a request names.

    Raises:
        Exception: What its code raises.
    """
    if request["file"] is not None:
        return ReadyCandidate(load_candidate(Path(request["file"]), contract), contract)
    from inferometer.backends import require_backend

    kernel = require_backend(request["name"]).load(contract.name)
    return ReadyCandidate(as_call(kernel, contract.settings), contract)


def _memory(tensor: Any) -> int:
    """Where a tensor's storage begins; 0 where it has none."""
    return int(tensor.untyped_storage().data_ptr())
