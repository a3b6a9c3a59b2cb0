"""Runs an A/B: probe, check, warm-up, repetitions in turns, recordings; what was measured is kept, whatever happens.

In a repetition every arm runs without scopes (the time that users see) and with them (where it goes; a GPU is then held
until the host has queued what it does, see `device_hold`), in the opposite order; that is reversed each time, as is the
order of the two passes. Logits are looked at in both, operators' answers with scopes. Where logits are wrong that no
operator was seen to spoil, completions with scopes follow until one is.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl

from inferometer.analyses.ab.answers import find_faults
from inferometer.analyses.ab.comparison import compare_paths
from inferometer.analyses.ab.measurement import AGREEMENT, BUSY, CALLS, CONTROL, PathMeasurement
from inferometer.engines.ab.agreement import agreement
from inferometer.engines.ab.checking import OperatorCheck, OperatorErrors, check_operators
from inferometer.engines.ab.completion import (
    DECODE,
    PREFILL,
    Work,
    choose_tokens,
    collector_set_aside,
    on_gpu,
    without_collector,
)
from inferometer.engines.ab.control import run_pair
from inferometer.engines.ab.facts import cost_of_scopes, describe, end_of, load_notes, run_notes
from inferometer.engines.ab.failures import as_error, describe_failure
from inferometer.engines.ab.plan import Plan, make_prompt, named_apart, order_of
from inferometer.engines.ab.progress import Probe, Progress, TimeLeft, estimate
from inferometer.engines.ab.recording import allocations, plan_stores, record_arm
from inferometer.engines.ab.rows import (
    Repetition,
    calls_frame,
    calls_of,
    logits_frame,
    passes_frame,
    paths_of,
    short_waits,
    take_calls,
)
from inferometer.engines.ab.watching import AnswerWatch
from inferometer.engines.arms import BASE, Arm, are_interpreted, using
from inferometer.engines.engine import Engine
from inferometer.engines.paths import PathRecorder

Say = Callable[[Progress], None]
_CHECK, _LOGITS = "check of the operators", "comparison of logits"
_SEARCHES = 20


def measure_ab(
    engine: Engine,
    arms: Sequence[Arm],
    plan: Plan,
    *,
    prompt: Sequence[int] | None = None,
    stores: Path | None = None,
    force: bool = False,
    record: bool = True,
    on_progress: Say = lambda progress: None,
) -> PathMeasurement:
    """Run the same completion by every arm.

    The first arm's most probable tokens are what all arms go on with. The others' operators are checked on the first
    arm's inputs and their logits compared, all are warmed up and timed in turns, and each is recorded once.

    Args:
        engine: A model that is loaded.
        arms: The base first. Of two with one name, the second is called `NAME (2)`.
        plan: Sizes.
        prompt: Tokens of each sequence; None: random ones.
        stores: A folder for the recordings, one an arm. None: they aren't kept; then a CPU isn't recorded at all.
        force: Replace recordings that are there.
        record: Whether to record. Without it there is no device time of a path.
        on_progress: Called with what runs now; its `str` is that in a few words.

    Returns:
        What was measured. Where a backend raised, memory ran out, or the user interrupted it, `ended` says so, and
        whole repetitions are in it; `facts["interrupted"]` is true for the last.

    Raises:
        InputError: Something in the plan, the prompt or `stores` makes no sense; or an arm raised before a repetition
            was whole.
        Unavailable: The same, where memory ran out.
        KeyboardInterrupt: The same, where the user interrupted.
    """
    named = named_apart(arms)
    prompt_BT = make_prompt(engine, plan, prompt)
    places = plan_stores([arm.name for arm in named], stores, force=force) if record and stores is not None else None
    with collector_set_aside():
        run = _Run(engine, named, plan, prompt_BT, on_progress)
        run.attempt(run.choose, is_vital=True)
        run.attempt(partial(run.probe, is_recorded=record and (places is not None or on_gpu(engine.device))))
        for arm in named[1:]:
            run.attempt(partial(run.check, arm))
        run.attempt(run.compare_models)
        run.attempt(run.warm_up, is_vital=True)
        run.attempt(run.repeat, is_vital=True)
        run.attempt(run.search)
        run.attempt(run.control)
        if record:
            run.attempt(lambda: run.record(places))
    return run.measured()


class _Run:
    """One A/B and what it has come to: each part is kept when it is whole."""

    def __init__(self, engine: Engine, arms: Sequence[Arm], plan: Plan, prompt_BT: Any, on_progress: Say) -> None:
        self._engine, self._arms, self._plan, self._prompt_BT, self._on_progress = (
            engine,
            arms,
            plan,
            prompt_BT,
            on_progress,
        )
        self._notes = load_notes()
        self._facts = describe(engine, plan, prompt_BT.shape[1]) | cost_of_scopes(engine.device)
        self._errors = {arm.name: OperatorErrors(arm.name) for arm in arms}
        self._watches = {
            arm.name: AnswerWatch(arms[0], self._errors[arm.name], engine.device, plan.seed) for arm in arms
        }
        self._recorders = {name: PathRecorder(engine.device, watch=watch) for name, watch in self._watches.items()}
        self._kept: list[Repetition] = []
        self._busy = [pl.DataFrame(schema=BUSY)]
        self._agreement = pl.DataFrame(schema=AGREEMENT)
        self._searched = [pl.DataFrame(schema=CALLS)]
        self._control = [pl.DataFrame(schema=CONTROL)]
        self._stores: dict[str, str] = {}
        self._ended: str | None = None
        self._is_over = False
        self._during = ""
        self._left = TimeLeft()
        self._recorder: PathRecorder | None = None

    def attempt(self, part: Callable[[], None], *, is_vital: bool = False) -> None:
        """Do `part`, unless it is all over: then a vital part, or the user, has ended it. Others are missing alone."""
        if self._is_over:
            return
        try:
            part()
        except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  # a backend may raise anything
            is_interrupt = isinstance(error, KeyboardInterrupt)
            text = describe_failure(error, self._during, self._recorder)
            self._is_over = is_vital or is_interrupt
            if self._is_over and not self._kept:
                raise as_error(error, text) from (None if is_interrupt else error)
            self._ended = text if self._ended is None else f"{self._ended}; {text}"
            self._facts["interrupted"] = is_interrupt

    def choose(self) -> None:
        """The tokens that all arms go on with: the first one's."""
        self._begin(self._arms[0], "choice of the tokens")
        with using(self._arms[0]):
            self._first = choose_tokens(self._engine, self._prompt_BT, self._plan.new_tokens)
        self._work = Work(self._engine, self._prompt_BT, self._first.tokens)

    def probe(self, *, is_recorded: bool) -> None:
        """Passes over the prompt that say how long all of it takes, about."""
        probes: dict[str, Probe] = {}
        for n, arm in enumerate(self._arms):
            self._begin(arm, "probe of the time")
            with using(arm):
                first_ns = self._first.wall_ns[PREFILL] if n == 0 else self._work.prefill_ns()
                probes[arm.name] = Probe(first_ns, max(1, self._work.prefill_ns()))
        decode_ns = self._first.wall_ns.get(DECODE, 0)
        self._left.expect(*estimate(self._plan, probes, decode_ns, is_recorded=is_recorded))

    def check(self, arm: Arm) -> None:
        """The operators of this arm next to the first one's."""
        recorder = PathRecorder()
        check = OperatorCheck(self._arms[0], arm, lambda each: self._tell(each, _CHECK), self._errors[arm.name])
        self._begin(arm, _CHECK, recorder)
        try:
            check_operators(self._work, arm, check, recorder)
        finally:
            self._notes += [remark for remark in check.remarks if remark not in self._notes]

    def compare_models(self) -> None:
        """Whole models on the same tokens."""
        self._begin(self._arms[0], _LOGITS)
        self._agreement = agreement(self._work, self._arms, lambda arm: self._tell(arm, _LOGITS))

    def warm_up(self) -> None:
        """Kernels are compiled and tuned, caches filled and the paths known afterwards."""
        for arm in self._arms:
            recorder = self._recorders[arm.name]
            for _ in range(self._plan.warmup):
                self._begin(arm, "warm-up", recorder)
                with using(arm), recorder.entered():
                    self._work.run()
                recorder.clear()

    def repeat(self) -> None:
        """All repetitions; each counts when it is whole."""
        for number in range(self._plan.repetitions):
            made = Repetition()
            passes = [(self._time, number), (self._time_paths, number + 1)]
            for watch in self._watches.values():
                watch.begin(number)
            for timed, turn in passes if number % 2 == 0 else passes[::-1]:
                for n in order_of(len(self._arms), turn):
                    timed(self._arms[n], number + 1, made)
            self._kept.append(made)
        self._left.stop()

    def search(self) -> None:
        """Completions with scopes by arms whose logits were wrong, until an operator is seen to be."""
        for arm in self._arms:
            recorder = self._recorders[arm.name]
            for number in range(_SEARCHES):
                fault = find_faults(self.measured()).get(arm.name)
                if fault is None or fault.path is not None:
                    break
                self._begin(arm, "search", recorder, detail=" for a wrong answer", number=number + 1, count=_SEARCHES)
                with using(arm), recorder.entered():
                    self._work.run()
                self._searched.append(calls_of(arm.name, number, take_calls(recorder), paths_of(recorder)))

    def control(self) -> None:
        """Both arms' kernels in the same surroundings, where a difference may be what other paths leave behind."""
        found = compare_paths(self.measured())
        for arm in self._arms[1:]:
            if are_interpreted((self._arms[0], arm), self._engine.device):
                continue
            recorder = PathRecorder(self._engine.device)
            for number in range(self._plan.repetitions if found.is_in_doubt(arm.name) else 0):
                self._begin(arm, "control", recorder, number=number + 1, count=self._plan.repetitions)
                pair = run_pair(self._work, self._arms[0], arm, number, recorder, self._plan.seed)
                self._control.append(pair)

    def record(self, places: Mapping[str, Path] | None) -> None:
        """One completion of each arm. Without places only a GPU's, for its device time."""
        if places is None and not self._engine.device.startswith("cuda"):
            return
        with TemporaryDirectory() as scratch:
            for number, arm in enumerate(self._arms):
                path = Path(scratch) / f"{number}.ifm" if places is None else places[arm.name]
                recorder = PathRecorder(allocated=allocations(self._engine.device))
                self._begin(arm, "recording", recorder)
                busy, remarks = record_arm(self._work, arm, path, recorder, force=True)
                self._busy.append(busy)
                self._notes += [f"Recording of {arm.name}: {remark}" for remark in remarks]
                if places is not None:
                    self._stores[arm.name] = str(path)

    def measured(self) -> PathMeasurement:
        """What there is."""
        calls = calls_frame(self._kept, self._recorders)
        names = [arm.name for arm in self._arms]
        orders = [[names[n] for n in order_of(len(names), each)] for each in range(len(self._kept))]
        backends = calls["backend"].unique().drop_nulls().to_list()
        return PathMeasurement(
            arms=names,
            calls=calls,
            passes=passes_frame(self._kept),
            busy=pl.concat(self._busy),
            errors=pl.concat(self._checked()),
            agreement=self._agreement,
            logits=logits_frame(self._kept),
            searched=pl.concat(self._searched),
            control=pl.concat(self._control),
            facts={**self._facts, **end_of(orders), "short_waits": short_waits(self._kept)},
            ended=self._ended,
            refused={arm.name: _refused(arm, calls) for arm in self._arms},
            stores=self._stores,
            notes=(*self._notes, *run_notes(self._engine, backends)),
        )

    def _checked(self) -> Iterator[pl.DataFrame]:
        """Rows of `ERRORS`; of the base only what it contradicts itself in."""
        for n, errors in enumerate(self._errors.values()):
            found = errors.frame()
            yield found.filter(pl.col("failure").is_not_null()) if n == 0 else found

    def _time(self, arm: Arm, number: int, made: Repetition) -> None:
        self._repeat(arm, number)
        with using(arm), without_collector():
            made.plain[arm.name] = self._work.run()

    def _time_paths(self, arm: Arm, number: int, made: Repetition) -> None:
        recorder = self._recorders[arm.name]
        self._repeat(arm, number, recorder, detail=" with scopes")
        with using(arm), without_collector(), recorder.entered():
            made.scoped[arm.name] = self._work.run()
        made.calls[arm.name] = take_calls(recorder)
        if recorder.short_waits is not None:
            made.short_waits[arm.name] = recorder.short_waits

    def _repeat(self, arm: Arm, number: int, recorder: PathRecorder | None = None, *, detail: str = "") -> None:
        count = self._plan.repetitions
        self._left.repeat(number, count)
        self._begin(arm, "repetition", recorder, detail=detail, number=number, count=count)

    def _begin(self, arm: Arm, part: str, recorder: PathRecorder | None = None, **which: Any) -> None:
        self._recorder = recorder
        self._tell(arm, part, **which)

    def _tell(self, arm: Arm, part: str, **which: Any) -> None:
        """What runs now, to who looks on; and what to say where it ends now."""
        progress = Progress(arm.name, part, left_ns=self._left.now(), **which)
        self._during = str(progress)
        self._on_progress(progress)


def _refused(arm: Arm, calls: pl.DataFrame) -> list[str]:
    """Why calls ran on plain PyTorch that the user wanted elsewhere, each reason once."""
    begin = f"{BASE} ("
    fell_back = (pl.col("arm") == arm.name) & pl.col("backend").str.starts_with(begin)
    found = calls.filter(fell_back).select("operator", "backend").unique(maintain_order=True)
    reasons = []
    for operator, backend in found.iter_rows():
        why = backend.removeprefix(begin).removesuffix(")")
        reasons.append(why if why == arm.refused.get(operator) else f"{operator}: {why}")
    return list(dict.fromkeys(reasons))
