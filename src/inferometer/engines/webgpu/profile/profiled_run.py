"""One answer of the engine, with all that is known of how it was made: what profile, store and log report.

Each rate and time has one definition, here. Times are ns of the submissions' clock.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from inferometer.engines.webgpu.model_spec import ModelSpec
from inferometer.engines.webgpu.program import Pass, Program
from inferometer.engines.webgpu.run.adapter_rates import AdapterRates
from inferometer.engines.webgpu.run.executor import Adapter, LoadedModel, LoadPhase, Request, Submission
from inferometer.engines.webgpu.run.local_runner import answer_tokens

StepPhase = Literal["prefill", "decode", "mixed"]


@dataclass(frozen=True, kw_only=True)
class ProfiledRun:
    """What a run of one request was, and how it went.

    Attributes:
        loaded: The program, why it has these kernels, and what the kernel path asked for.
        adapter: What ran it.
        request: What was asked for.
        submissions: Every submit of the answer in order.
        load: How long getting ready took, on the same clock.
        started_ns: When the question came, on the same clock; None: when the first submit was recorded.
        spec: Dimensions of the model, where they are reported.
        prompt: The question as text, where there is one.
        tokenizer: What makes text into tokens, `tokenizer.json`, and how many of them it has.
        harness: Who ran it: `browser`, `wgpu`, `numpy`; the tag of its log lines.
        failure: What it failed with, where it did: what is here is what there was until then.
        rates: What was measured on the adapter, where it was.
    """

    loaded: LoadedModel
    adapter: Adapter
    request: Request
    submissions: Sequence[Submission]
    load: Sequence[LoadPhase] = ()
    started_ns: int | None = None
    spec: ModelSpec | None = None
    prompt: str | None = None
    tokenizer: tuple[str, int] | None = None
    harness: str = "wgpu"
    failure: str | None = None
    rates: AdapterRates | None = None

    @property
    def program(self) -> Program:
        """What ran."""
        return self.loaded.program

    @cached_property
    def request_ns(self) -> int:
        """When the request began."""
        if self.started_ns is not None:
            return self.started_ns
        return self.submissions[0].start_ns if self.submissions else self.zero_ns

    @cached_property
    def zero_ns(self) -> int:
        """The moment that logs and stores count from: when loading began, or the request where that isn't known."""
        starts = [phase.start_ns for phase in self.load]
        starts += [] if self.started_ns is None else [self.started_ns]
        return min([*starts, *(submission.start_ns for submission in self.submissions)], default=0)

    @cached_property
    def tokens(self) -> tuple[int, ...]:
        """The answer: what was sampled, up to a stop token and at most as many as were asked for."""
        return answer_tokens(self.submissions, self.request.stop)[0][: self.request.new_tokens]

    @cached_property
    def kept(self) -> tuple[int, ...]:
        """How many tokens of each submission are part of the answer."""
        left, found = len(self.tokens), []
        for submission in self.submissions:
            found.append(min(left, len(submission.tokens)))
            left -= found[-1]
        return tuple(found)

    @cached_property
    def ttft_ns(self) -> int | None:
        """Time to first token: from the request's beginning to the first token on the host. None: there is none."""
        first = next((one for one, kept in zip(self.submissions, self.kept, strict=True) if kept), None)
        return None if first is None else end_of(first) - self.request_ns

    @cached_property
    def prefill_ns(self) -> int:
        """Walls of the submissions that read the prompt."""
        return sum(one.wall_ns for one in self.submissions if step_phase(one) != "decode")

    @cached_property
    def prefill_tokens(self) -> int:
        """Tokens of the prompt that were read: not those that the cache had."""
        return sum(prefill_tokens(one) for one in self.submissions)

    @cached_property
    def decode_ns(self) -> int:
        """The sum of walls of the decode submissions: what the host does between two of them is not in it."""
        return sum(one.wall_ns for one in self.submissions if step_phase(one) == "decode")

    @cached_property
    def decode_tokens(self) -> int:
        """Tokens of the answer that decode submissions gave: those after the first, which the prefill gives."""
        return sum(self._kept_in_decode)

    @property
    def prefill_tokens_per_s(self) -> float | None:
        """Prompt tokens that were read over `prefill_ns`."""
        return rate(self.prefill_tokens, self.prefill_ns)

    @property
    def decode_tokens_per_s(self) -> float | None:
        """The decode rate: tokens after the first over the sum of walls of the decode submissions."""
        return rate(self.decode_tokens, self.decode_ns)

    @property
    def tokens_per_s(self) -> float | None:
        """All tokens of the answer over the whole time, that to the first token included."""
        return rate(len(self.tokens), self.total_ns)

    @cached_property
    def total_ns(self) -> int:
        """From the beginning of the request to the last token on the host."""
        return max((end_of(one) for one in self.submissions), default=self.request_ns) - self.request_ns

    @cached_property
    def token_ns(self) -> tuple[float, ...]:
        """For each token after the first, its part of its submission's wall: tokens of one come together."""
        walls = (one.wall_ns for one in self.submissions)
        shares = zip(walls, self._kept_in_decode, strict=True)
        return tuple(wall / kept for wall, kept in shares for _ in range(kept))

    @cached_property
    def load_ns(self) -> int | None:
        """From the first part of getting ready to the end of the last one."""
        if not self.load:
            return None
        return max(one.start_ns + one.dur_ns for one in self.load) - min(one.start_ns for one in self.load)

    @property
    def _kept_in_decode(self) -> list[int]:
        pairs = zip(self.submissions, self.kept, strict=True)
        return [kept if step_phase(one) == "decode" else 0 for one, kept in pairs]


def pass_phase(one: Pass) -> Literal["prefill", "decode"]:
    """The phase that a pass's time counts to: its head belongs to what is before it."""
    return "prefill" if "prefill" in one.phases else "decode"


def step_phase(submission: Submission) -> StepPhase:
    """The phase of a step, which is a submit."""
    phases = {pass_phase(one) for one in submission.passes}
    return "mixed" if len(phases) == 2 else phases.pop() if phases else "decode"


def prefill_tokens(submission: Submission) -> int:
    """Prompt tokens that a submit read."""
    return sum(one.tokens for one in submission.passes if "prefill" in one.phases)


def decode_passes(submission: Submission) -> int:
    """Decode steps of a submit, those after a stop token too: the device ran them."""
    return sum("decode" in one.phases for one in submission.passes)


def end_of(submission: Submission) -> int:
    """When its tokens were on the host."""
    return submission.start_ns + submission.wall_ns


def rate(count: int, time_ns: int) -> float | None:
    """A second's count; None of nothing."""
    return count * 1e9 / time_ns if count and time_ns else None
