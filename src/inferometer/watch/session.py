"""One watch, from its first step to its end: steps go in, events come out, causes follow as they are found."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum

from inferometer.errors import InputError
from inferometer.trace.losses import Losses
from inferometer.trace.trace import Trace
from inferometer.watch.explaining import Explainer
from inferometer.watch.steps import WatchedStep
from inferometer.watch.watched import Account, Slowdown, Watched
from inferometer.watch.watcher import Change, Judged, Watcher

AGAIN_NS = 60 * 10**9
"""So long after an alarm the cause is looked for once more: of a longer slow time more can be said."""

_LAST_S = 60.0  # that open questions are waited for at the end


class What(StrEnum):
    """What happened."""

    ALARM = "alarm"
    WORSE = "worse"
    RECOVERED = "recovered"
    CAUSE = "cause"


@dataclass(frozen=True)
class Event:
    """Something that a person should know: `change` is what happened to steps, None where a cause was found.

    `number`: of the slowdown, from 0. `first_ns`: start of the first step of the watch.
    """

    what: What
    number: int
    slowdown: Slowdown
    change: Change | None
    first_ns: int


class Session:
    """Hands steps to a watcher, keeps account, and has causes looked for.

    Args:
        watcher: Judges steps.
        account: Of a watch that goes on.
        explainer: Looks for causes at each alarm, a minute later and at its end; None: nobody does.
        on_event: Called with each event.
        on_step: Called with each step that was judged.
    """

    def __init__(
        self,
        watcher: Watcher,
        account: Account | None = None,
        *,
        explainer: Explainer | None = None,
        on_event: Callable[[Event], object] | None = None,
        on_step: Callable[[Judged], object] | None = None,
    ) -> None:
        self.watcher, self.account = watcher, account or Account()
        self._explainer, self._on_event, self._on_step = explainer, on_event, on_step
        self._again: dict[int, int] = {}  # when to ask again, by the number of the slowdown

    def watch(self, steps: Iterable[WatchedStep]) -> None:
        """Judge steps, in order of time."""
        for step in steps:
            judged, change = self.watcher.add(step)
            number = self.account.add(judged, change)
            if self._on_step:
                self._on_step(judged)
            if number is not None and change is not None:
                self._tell(What(change.kind.value), number, change)
                self._again[number] = change.at_ns + AGAIN_NS
                self._ask(number)
        for number in [number for number, at_ns in self._again.items() if self.account.last_ns >= at_ns]:
            del self._again[number]
            self._ask(number)
        self.hear()

    def hear(self, wait_s: float = 0.0) -> None:
        """Take the causes that were found meanwhile."""
        for number, why in self._explainer.answers(wait_s) if self._explainer else ():
            if self.account.explain(number, why):
                self._tell(What.CAUSE, number, None)

    def finish(self) -> None:
        """Have the causes of what is still slow looked for a last time, and wait for all that is open."""
        if self._explainer is None:
            return
        for number, one in enumerate(self.account.slowdowns):
            if one.recovered is None:
                self._ask(number)
        while self._explainer.open_questions:
            before = self._explainer.open_questions
            self.hear(_LAST_S)
            if self._explainer.open_questions == before:
                return

    def explain(self, trace: Trace) -> None:
        """Find the cause of each slowdown in a trace that holds all of it."""
        from inferometer.watch.why import find_why

        for number in range(len(self.account.slowdowns)):
            self.account.explain(number, find_why(trace, *self.account.window(number)))

    def result(self, source: str, losses: Losses, *, unit: str = "step") -> Watched:
        """All of it.

        Raises:
            InputError: There were no steps.
        """
        if not self.account.steps:
            raise InputError(f"{source}: expected steps, found none until the watch ended")
        return self.account.result(self.watcher, source=source, unit=unit, losses=losses)

    def _ask(self, number: int) -> None:
        if self._explainer:
            self._explainer.ask(number, self.account.window(number))

    def _tell(self, what: What, number: int, change: Change | None) -> None:
        if self._on_event:
            first_ns = self.account.first_ns or 0
            self._on_event(Event(what, number, self.account.slowdowns[number], change, first_ns))
