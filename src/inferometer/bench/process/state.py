"""What must be in a candidate's process after each stage as it was before: functions that take part, modes, hooks."""

import sys
from dataclasses import dataclass

from inferometer.bench.process.contract import BadAnswer
from inferometer.bench.process.left_on import LeftOn
from inferometer.bench.process.tampering import Seal, seal

_OURS = "inferometer.bench.process."


@dataclass(frozen=True)
class State:
    """As it was before the candidate was loaded."""

    sealed: Seal
    modes: LeftOn

    @classmethod
    def now(cls) -> "State":
        """With our own modules that are loaded."""
        ours = {name: module for name, module in sys.modules.items() if name.startswith(_OURS)}
        main = sys.modules.get("__main__")
        return cls(seal({**ours, **({"__main__": main} if main is not None else {})}), LeftOn.of())

    def odd(self) -> list[str]:
        """What is otherwise now."""
        found = []
        if broken := self.sealed.broken():
            found.append(f"it replaced {', '.join(broken[:3])}: what measures and compares must stay as it is")
        if left := self.modes.found():
            found.append(f"it left {', '.join(left[:3])} on: later work would be done there")
        return found

    def refuse(self) -> None:
        """Refuse it.

        Raises:
            BadAnswer: Something is otherwise.
        """
        if odd := self.odd():
            raise BadAnswer(odd[0])
