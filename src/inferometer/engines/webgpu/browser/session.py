"""A page in a browser as a runner of programs: given a program, asked for answers, and listened to.

Python waits for the page in one place, `_wait`: it relays the page's log meanwhile, and notices when the page or its
browser is gone. What was given to `on_submission` until then stays.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from queue import Empty
from time import monotonic
from typing import Any, NoReturn, TypeVar

import msgspec

from inferometer.engines.webgpu.browser import messages
from inferometer.engines.webgpu.browser.bundle import WeightFile, describe_program
from inferometer.engines.webgpu.browser.chromium import Chromium
from inferometer.engines.webgpu.browser.server import PageServer, Posted
from inferometer.engines.webgpu.program import Program
from inferometer.engines.webgpu.run.executor import (
    Content,
    DeviceLost,
    LoadPhase,
    OnSubmission,
    OnText,
    Request,
    Submission,
)
from inferometer.engines.webgpu.run.limits import Sources, check_fit
from inferometer.engines.webgpu.run.local_runner import check_request
from inferometer.engines.webgpu.run.request_words import sampling_words
from inferometer.errors import InferometerError, Unavailable

_LOOK_S = 0.1
_GONE_S = 2.0
_STOP_S = 30.0
_SILENCE_S = 900.0
"""A submit of a large model on a CPU takes minutes; a page that is gone is noticed by its connection, not by this."""
_FAREWELL_S = 1.0

Form = TypeVar("Form", bound=msgspec.Struct)
Message = TypeVar("Message", messages.PageAdapter, messages.PageLoad, messages.PageResult)


@dataclass(frozen=True)
class Loaded:
    """Bytes of weights by part: what came from Python, and what the browser had kept."""

    fetched: Mapping[str, int]
    cached: Mapping[str, int]

    @property
    def fetched_bytes(self) -> int:
        """All that came from Python."""
        return sum(self.fetched.values())

    @property
    def cached_bytes(self) -> int:
        """All that the browser had."""
        return sum(self.cached.values())


class BrowserSession:
    """A `Runner`: see `executor`. Made by `opening.open_browser`.

    Attributes:
        adapter: What the page's device is.
        clock: How the page's times are brought to ours, and how far off that can be.
        loaded: Where the weights came from, after `load`.
        notes: What a reader of times must know.
    """

    def __init__(
        self,
        server: PageServer,
        chromium: Chromium | None,
        *,
        on_text: OnText,
        source: str,
        keeps: bool,
        adapter_s: float,
        sources: Sources,
    ) -> None:
        self._server = server
        self._chromium = chromium
        self._on_text = on_text
        self._source = source
        self._keeps = keeps
        self._sources = sources
        self._number = 0
        self._time_step = messages.TimeStep()
        self._closed = False
        self._lost: str | None = None
        self._program: Program | None = None
        self.loaded: Loaded | None = None
        page = self._wait_for_adapter(adapter_s)
        if page.error:
            raise Unavailable(
                f"the browser gives no device: {page.error}",
                hint="Chrome's page chrome://gpu tells more; on Linux a GPU needs its Vulkan driver.",
            )
        self.adapter = messages.adapter_of(page)
        self.clock = messages.find_clock(page.pings)
        self._resolution_ms = page.resolution
        self._on_text(
            f"[browser] {self.adapter.name}: {', '.join(sorted(self.adapter.features)) or 'no features of ours'}"
        )

    def __enter__(self) -> "BrowserSession":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def url(self) -> str:
        """The page's address; who knows it can talk to this session."""
        return self._server.url

    @property
    def browser_pid(self) -> int | None:
        """Of the Chromium that was started, and of its process group; None of the user's own browser."""
        return None if self._chromium is None else self._chromium.pid

    @property
    def notes(self) -> tuple[str, ...]:
        """Resolution of the page's clock, error of the shift to ours, and device times that are rounded or missing."""
        step_us, error_us = self._resolution_ms * 1e3, self.clock.error_ns / 1e3
        notes = [
            f"host times are the browser's: its clock steps by {step_us:.0f} µs, within {error_us:.0f} µs of Python's"
        ]
        if step_ns := self._time_step.coarse_ns():
            notes.append(f"device times are multiples of {step_ns} ns: shorter dispatches can't be distinguished")
        if "timestamp-query" not in self.adapter.features:
            notes.append("the browser's device has no timestamp-query: no dispatch is timed")
        return tuple(notes)

    def show_prompt(self, text: str) -> None:
        """Put a question on the page, above the answer to come."""
        self._server.show({"kind": "prompt", "text": text})

    def show_text(self, text: str) -> None:
        """Add text to the answer on the page."""
        self._server.show({"kind": "text", "text": text})

    def load(self, program: Program, contents: Mapping[str, Content], on_text: OnText) -> Sequence[LoadPhase]:
        """Make the page ready for this program; a later one takes the place of an earlier one.

        Raises:
            Unavailable: Too little memory, a limit or a feature is missing, or a kernel doesn't compile.
            DeviceLost: The page went away.
        """
        self._on_text = on_text
        check_fit(program, contents, self.adapter, self._sources)
        weights = WeightFile(program.buffers, contents)
        mark = weights.fingerprint(program, self._source) if self._keeps else ""
        self._program = None
        described = describe_program(program, weights, self._sources, fingerprint=mark, cached=self._keeps)
        self._server.publish(described, weights)
        try:
            load = self._wait(self._ask("load"), "load", messages.PageLoad, None)
        finally:
            weights.release()
        if self._server.failure is not None:
            raise self._server.failure
        if load.error:
            raise Unavailable(f"the browser can't load {program.name}: {load.error}")
        self._program = program
        self.loaded = Loaded(load.fetched, load.cached)
        return messages.phases_of(load, self.clock)

    def run(self, request: Request, on_submission: OnSubmission) -> Sequence[Submission]:
        """Every submit of the answer; see `Runner`. After an exception of `on_submission` the session goes on.

        Raises:
            InputError: The request doesn't fit the program; as of `local_runner.check_request`.
            DeviceLost: The page or its device went away, or reported an error; the submits until then were given.
        """
        if self._program is None:
            raise InferometerError("a runner was asked to run before it had a program")
        check_request(self._program, request)
        submissions: list[Submission] = []

        def take(page: messages.PageSubmission) -> None:
            self._time_step.add(page)
            submissions.append(messages.submission_of(page, self.clock))
            on_submission(submissions[-1])

        self._server.stopped = False
        words = [int(word) for word in sampling_words(request)]
        number = self._ask("run", request=asdict(request) | {"stop": sorted(request.stop), "sampling": words})
        with self._stopping(number):
            result = self._wait(number, "result", messages.PageResult, take)
        if result.error:
            if result.lost:
                self._lost = result.error
            raise DeviceLost(f"{self.adapter.name}: {result.error}", hint="What ran before is kept.")
        return submissions

    def close(self) -> None:
        """End the page's work, the server and the browser that was started."""
        if self._closed:
            return
        self._closed = True
        self._server.ask({"kind": "close"})
        try:
            self._relay()
            if self._chromium is not None:
                self._chromium.close()
            else:
                self._server.drain(_FAREWELL_S)
        finally:
            self._server.close()

    def _ask(self, kind: str, **more: Any) -> int:
        if self._closed or self._lost is not None:
            raise DeviceLost(self._lost or "the browser's session is closed")
        self._number += 1
        self._server.ask({"kind": kind, "id": self._number, **more})
        return self._number

    @contextmanager
    def _stopping(self, number: int) -> Iterator[None]:
        """When Python stops listening in the middle (Ctrl-C), the page stops after its current submit."""
        try:
            yield
        except DeviceLost:
            raise
        except BaseException:
            self._server.stopped = True
            try:
                self._wait(number, "result", messages.PageResult, lambda _: None, silence_s=_STOP_S)
            except DeviceLost as lost:
                self._lost = lost.message
            raise

    def _wait_for_adapter(self, limit_s: float) -> messages.PageAdapter:
        try:
            return self._wait(0, "adapter", messages.PageAdapter, None, silence_s=limit_s)
        except DeviceLost as error:
            last = self._chromium.last_lines() if self._chromium else []
            lines = [*([error.hint] if error.hint else []), *last]
            raise Unavailable(error.message, hint="\n".join(lines) or None) from None

    def _wait(
        self,
        number: int,
        kind: str,
        form: type[Message],
        take: Callable[[messages.PageSubmission], object] | None,
        *,
        silence_s: float = _SILENCE_S,
    ) -> Message:
        """The page's message of this kind and number; submits before it go to `take`, lines of its log are relayed."""
        until = monotonic() + silence_s
        while True:
            try:
                posted = self._server.inbox.get(timeout=_LOOK_S)
            except Empty:
                self._look(kind)
                if monotonic() > until:
                    self._lose(f"the page in the browser was silent for {silence_s:.0f} s while {kind} was awaited")
                continue
            until = monotonic() + silence_s
            if posted.kind == "log":
                self._relay_line(posted)
            elif posted.kind == "submission":
                submission = _decode(posted, messages.PageSubmission)
                if submission.id == number and take is not None:
                    take(submission)
            elif posted.kind == kind:
                message = _decode(posted, form)
                if isinstance(message, messages.PageAdapter) or message.id == number:
                    return message
            elif posted.kind == "adapter":
                self._other_page(posted)

    def _look(self, awaited: str) -> None:
        """Raise where nothing can come any more."""
        if self._chromium is not None and (ended := self._chromium.ended()):
            first, *rest = ended.split("\n")
            self._lose(f"the browser is gone: {first}", "\n".join(rest) or None)
        if self._server.gone_s() > _GONE_S:
            self._lose(f"the page in the browser was closed while {awaited} was awaited")
        if self._server.failure is not None and awaited != "load":
            raise self._server.failure

    def _lose(self, message: str, hint: str | None = None) -> NoReturn:
        self._lost = message
        raise DeviceLost(message, hint=hint)

    def _other_page(self, posted: Posted) -> None:
        """A page that was loaded again has none of the buffers, and a second one would answer for the first."""
        if _decode(posted, messages.PageAdapter).error:
            self._lose(f"the page in the browser failed: {_decode(posted, messages.PageAdapter).error}")
        self._lose("the page was opened a second time, or loaded again: its weights are gone")

    def _relay(self) -> None:
        """The lines of the log that came while nobody waited."""
        while True:
            try:
                posted = self._server.inbox.get_nowait()
            except Empty:
                return
            if posted.kind == "log":
                self._relay_line(posted)

    def _relay_line(self, posted: Posted) -> None:
        line = _decode(posted, messages.PageLog)
        self._on_text(f"[browser:{line.level}] [{line.time:.1f}ms][{line.module}] {line.text}")


def _decode(posted: Posted, form: type[Form]) -> Form:
    try:
        return msgspec.json.decode(posted.body, type=form)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InferometerError(f"the page's {posted.kind}: {error}") from error
