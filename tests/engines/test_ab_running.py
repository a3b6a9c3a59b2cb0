"""An A/B of a toy model: the same work in turns, what is kept, and what is reported when it breaks off."""

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

pytest.importorskip("torch")

from tests.engines.toy_engine import VOCABULARY, FakeClock, ToyEngine, arm, slow

from inferometer.analyses.ab.measurement import CALLS, PASSES, PathMeasurement
from inferometer.engines.ab import Plan, measure_ab
from inferometer.engines.ab.progress import Progress
from inferometer.engines.arms import TORCH_ONLY, Arm
from inferometer.errors import InputError, Unavailable

PLAN = Plan(prompt_tokens=5, new_tokens=3, batch=2, repetitions=2)
PREFILL, DECODE = "completion.generate.prefill", "completion.generate.decode"


@pytest.fixture(autouse=True, scope="module")
def frozen() -> Iterator[None]:
    """What the test run holds isn't looked at by every collection: that takes longer than the toy."""
    gc.freeze()
    yield
    gc.unfreeze()


def plain(call: Callable[..., Any], *args: Any, **settings: Any) -> Any:
    return call(*args, **settings)


def own_sums(calls: pl.DataFrame) -> pl.DataFrame:
    """Of each arm, repetition and path: its time, and what is left of it without its children's."""
    by = ["arm", "repetition"]
    total = calls.group_by(*by, "path", "parent").agg(pl.col("dur_ns").sum())
    below = total.group_by(*by, pl.col("parent").alias("path")).agg(pl.col("dur_ns").sum().alias("below_ns"))
    joined = total.join(below, on=[*by, "path"], how="left").with_columns(pl.col("below_ns").fill_null(0))
    return joined.with_columns((pl.col("dur_ns") - pl.col("below_ns")).alias("self_ns"))


def test_self_times_add_up_to_the_root_in_every_repetition_of_every_arm() -> None:
    found = measure_ab(ToyEngine(), [TORCH_ONLY, arm("lazy", ["silu_mul"], slow(1e-4))], PLAN, record=False)
    sums = own_sums(found.calls)
    assert sums["self_ns"].min() >= 0  # type: ignore[operator]  # children lie within their parents
    by = ["arm", "repetition"]
    roots = sums.filter(pl.col("parent").is_null()).select(*by, "dur_ns").sort(by)
    assert roots.height == 4
    assert sums.group_by(by).agg(pl.col("self_ns").sum().alias("dur_ns")).sort(by).equals(roots)
    assert dict(found.calls.schema) == CALLS
    assert dict(found.passes.schema) == PASSES


def test_paths_begin_at_the_completion_and_every_call_says_what_ran() -> None:
    refusing = arm("fussy", ["silu_mul"], plain, refuses=lambda *args: "of 8 only")
    lacking = Arm("half", {}, {"silu_mul": "half has no silu_mul", "moe_route": "half has no moe_route"})
    found = measure_ab(ToyEngine(), [TORCH_ONLY, refusing, lacking], PLAN, record=False)
    paths = found.calls.filter(pl.col("arm") == "torch", pl.col("repetition") == 0).sort("order")
    assert paths["path"].unique(maintain_order=True).to_list()[:6] == [
        *("completion", "completion.generate", PREFILL, f"{PREFILL}.forward", f"{PREFILL}.forward.embedding"),
        f"{PREFILL}.forward.layers.0",
    ]
    calls = paths.group_by("path").len()
    assert calls.filter(pl.col("path") == f"{DECODE}.sample.argmax")["len"].to_list() == [2]
    ran = found.calls.filter(pl.col("path") == f"{DECODE}.forward.layers.1.mlp.silu_mul")
    assert ran.select("arm", "operator", "backend").unique(maintain_order=True).rows() == [
        ("torch", "silu_mul", "torch"),
        ("fussy", "silu_mul", "torch (fussy: of 8 only)"),
        ("half", "silu_mul", "torch (half has no silu_mul)"),
    ]
    assert found.refused == {"torch": [], "fussy": ["silu_mul: fussy: of 8 only"], "half": ["half has no silu_mul"]}
    assert found.calls.filter(pl.col("operator").is_null())["backend"].null_count() > 0


def test_arms_take_turns_forward_and_backward_in_both_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inferometer.engines.ab.watching.EVERY", 1e9)  # the base answers in its turns only
    log: list[str] = []

    def noting(name: str) -> Arm:
        def change(call: Callable[..., Any], *args: Any, **settings: Any) -> Any:
            log.append(name)
            return call(*args, **settings)

        return arm(name, ["argmax"], change)

    began: list[int] = []
    passes: list[str] = []

    def said(now: Progress) -> None:
        if now.part == "repetition":
            began.append(len(log))
            passes.append("scopes" if now.detail == " with scopes" else "none")

    measure_ab(ToyEngine(), [noting("A"), noting("B"), noting("C")], PLAN, record=False, on_progress=said)
    assert "".join(log[began[0] :: PLAN.new_tokens]) == "ABCCBA" + "ABCCBA"
    assert passes == ["none"] * 3 + ["scopes"] * 6 + ["none"] * 3


def test_every_arm_gets_the_first_ones_tokens_though_it_would_choose_others() -> None:
    import torch

    def last(call: Callable[..., Any], logits_BV: Any) -> Any:
        return torch.full((logits_BV.shape[0],), VOCABULARY - 1)

    engine = ToyEngine()
    found = measure_ab(engine, [TORCH_ONLY, arm("stubborn", ["argmax"], last)], PLAN, record=False)
    del engine.passes[PLAN.new_tokens : PLAN.new_tokens + 3]  # the probe: a prefill of the first arm, two of the other
    runs = [engine.passes[n : n + PLAN.new_tokens] for n in range(0, len(engine.passes), PLAN.new_tokens)]
    lockstep = [[runs[n // 3][n % 3] for n in (6, 8, 10)], [runs[n // 3][n % 3] for n in (7, 9, 11)]]
    runs[2:4] = lockstep  # the comparison of logits takes both arms a step at a time
    assert len(runs) == 2 + 2 + 2 + 2 * 2 * PLAN.repetitions
    for run in runs[1:]:
        assert all(torch.equal(*pair) for pair in zip(run, runs[0], strict=True))
    ((name, tokens, equal, *_),) = found.agreement.rows()
    assert (name, tokens) == ("stubborn", 6)
    assert equal < 6


def test_a_delay_is_in_its_path_and_its_ancestors_only(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock(monkeypatch)
    found = measure_ab(ToyEngine(), [TORCH_ONLY, arm("late", ["silu_mul"], clock.late(1_000_000))], PLAN, record=False)
    of_path = found.calls.group_by("path", "arm", "repetition").agg(pl.col("dur_ns").sum())
    both = of_path.pivot("arm", index=["path", "repetition"]).select("path", pl.col("late") - pl.col("torch"))
    expected = dict.fromkeys(both["path"], 0)
    for phase, passes in ((PREFILL, 1), (DECODE, 2)):
        layers = [f"{phase}.forward.layers.{n}" for n in (0, 1)]
        expected |= {f"{layer}{end}": passes for layer in layers for end in ("", ".mlp", ".mlp.silu_mul")}
        expected |= {phase: 2 * passes, f"{phase}.forward": 2 * passes}
    expected |= {"completion": 6, "completion.generate": 6}
    assert both.height == 2 * len(expected)
    assert {(path, more) for path, more in both.rows()} == {(path, n * 1_000_000) for path, n in expected.items()}


def test_phases_are_timed_without_scopes_and_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = FakeClock(monkeypatch)
    found = measure_ab(ToyEngine(), [TORCH_ONLY, arm("late", ["argmax"], clock.late(1_000_000))], PLAN, record=False)
    assert found.passes.group_by("arm", "phase", maintain_order=True).len().rows() == [
        (name, phase, 2) for name in ("torch", "late") for phase in ("prefill", "decode")
    ]
    times = {row[:2]: row[2:] for row in found.passes.select("arm", "phase", "wall_ns", "scoped_ns").rows()}
    for phase, delay_ns in (("prefill", 1_000_000), ("decode", 2_000_000)):
        late, base = times["late", phase], times["torch", phase]
        assert [one - other for one, other in zip(late, base, strict=True)] == [delay_ns, delay_ns]
        assert base[0] < base[1]  # a scope looks at the clock


def test_arms_may_have_paths_of_their_own() -> None:
    from inferometer.engines.paths import scope

    def split(call: Callable[..., Any], *args: Any, **settings: Any) -> Any:
        with scope("inner"):
            return call(*args, **settings)

    found = measure_ab(ToyEngine(), [TORCH_ONLY, arm("split", ["silu_mul"], split)], PLAN, record=False)
    own = {name: set(rows["path"]) for (name,), rows in found.calls.partition_by("arm", as_dict=True).items()}
    assert own["split"] - own["torch"] == {
        f"{phase}.forward.layers.{n}.mlp.silu_mul.inner" for phase in (PREFILL, DECODE) for n in (0, 1)
    }
    assert own["torch"] < own["split"]
    orders = found.calls.filter(arm="split").group_by("path").agg(pl.col("order").n_unique())
    assert orders["order"].unique().to_list() == [1]
    before = found.calls.join(found.calls, left_on=["arm", "parent"], right_on=["arm", "path"], suffix="_above")
    assert (before["order_above"] < before["order"]).all()


def test_a_given_prompt_is_every_sequences_and_a_seeded_one_repeats() -> None:
    import torch

    engine = ToyEngine()
    found = measure_ab(engine, [TORCH_ONLY], PLAN, prompt=[3, 1, 2], record=False)
    assert engine.passes[0].tolist() == [[3, 1, 2]] * 2
    assert found.facts["prompt_tokens"] == 3
    seeded = [ToyEngine(), ToyEngine(), ToyEngine()]
    for each, seed in zip(seeded, (1, 1, 2), strict=True):
        measure_ab(each, [TORCH_ONLY], Plan(9, 1, 1, 1, seed=seed), record=False)
    assert torch.equal(seeded[0].passes[0], seeded[1].passes[0])
    assert not torch.equal(seeded[0].passes[0], seeded[2].passes[0])


def test_one_new_token_has_no_decode() -> None:
    found = measure_ab(ToyEngine(), [TORCH_ONLY], Plan(4, 1, 1, 1), record=False)
    assert found.passes["phase"].to_list() == ["prefill"]
    assert not found.calls["path"].str.contains("decode").any()


def test_facts_say_what_ran_and_what_the_instrument_costs() -> None:
    found = measure_ab(ToyEngine(), [TORCH_ONLY, TORCH_ONLY], PLAN, record=False)
    facts = found.facts
    assert list(found.arms) == ["torch", "torch (2)"]
    assert facts["order"] == [["torch", "torch (2)"], ["torch (2)", "torch"]]
    assert (facts["repetitions"], facts["repetitions_done"]) == (2, 2)
    assert (facts["model"], facts["device"], facts["dtype"], facts["batch"]) == ("toy", "cpu", "float32", 2)
    assert {"python", "torch"} <= set(facts["versions"])
    assert facts["scope_ns"] > facts["idle_scope_ns"] > 0
    assert (found.ended, facts["interrupted"], found.busy.height, dict(found.stores)) == (None, False, 0, {})
    assert not any("interpreter" in note for note in found.notes)
    named = measure_ab(ToyEngine(), [arm("triton", ["argmax"], plain)], PLAN, record=False)
    assert any("interpreter" in note for note in named.notes)


@pytest.mark.parametrize("is_on", [True, False])
def test_the_garbage_collector_is_off_while_it_is_timed_and_then_as_it_was(is_on: bool) -> None:
    seen: dict[str, bool] = {}
    at = [""]
    engine = ToyEngine(before=lambda tokens: seen.update({at[0]: gc.isenabled()}))
    was = gc.isenabled()
    (gc.enable if is_on else gc.disable)()
    try:
        measure_ab(engine, [TORCH_ONLY], PLAN, record=False, on_progress=lambda now: at.__setitem__(0, str(now)))
        assert gc.isenabled() == is_on
    finally:
        (gc.enable if was else gc.disable)()
    assert {line: enabled for line, enabled in seen.items() if "repetition" in line} == {
        f"torch, repetition {n} of 2{end}": False for n in (1, 2) for end in ("", " with scopes")
    }


def test_what_was_frozen_stays_so_and_what_was_not_does_not() -> None:
    was_frozen = gc.get_freeze_count() > 0  # by a library, or by no one: it depends on what ran before
    gc.freeze()
    frozen = gc.get_freeze_count()
    try:
        measure_ab(ToyEngine(), [TORCH_ONLY], PLAN, record=False)
        assert frozen >= gc.get_freeze_count() > 0.9 * frozen  # what is frozen still dies when nothing refers to it
        gc.unfreeze()
        measure_ab(ToyEngine(), [TORCH_ONLY], PLAN, record=False)
        assert gc.get_freeze_count() == 0
    finally:
        (gc.freeze if was_frozen else gc.unfreeze)()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"plan": lambda: Plan(repetitions=0)}, "repetitions: expected at least 1, found 0"),
        ({"arms": []}, "expected at least one arm"),
        ({"prompt": []}, "no tokens"),
        ({"prompt": [0, VOCABULARY]}, f"the token {VOCABULARY}"),
    ],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        measure_ab(
            ToyEngine(),
            wrong.get("arms", [TORCH_ONLY]),
            wrong.get("plan", lambda: PLAN)(),
            prompt=wrong.get("prompt"),
            record=False,
        )


def broken(during: str, error: BaseException, stores: Path | None = None) -> PathMeasurement:
    """Torch against a backend whose `silu_mul` raises once `during` is reported."""
    is_due = [False]

    def said(now: Progress) -> None:
        is_due[0] = is_due[0] or str(now) == during

    def change(call: Callable[..., Any], *args: Any, **settings: Any) -> Any:
        if is_due[0]:
            raise error
        return call(*args, **settings)

    arms = [TORCH_ONLY, arm("bad", ["silu_mul"], change)]
    return measure_ab(ToyEngine(), arms, PLAN, stores=stores, on_progress=said)


SITE = "forward.layers.0.mlp.silu_mul: RuntimeError: no"


@pytest.mark.parametrize(
    ("during", "ended"),
    [
        ("bad, warm-up", f"bad, warm-up: in {PREFILL}.{SITE}"),
        ("bad, repetition 1 of 2", "bad, repetition 1 of 2: in prefill, silu_mul: RuntimeError: no"),
        ("bad, repetition 1 of 2 with scopes", f"bad, repetition 1 of 2 with scopes: in {PREFILL}.{SITE}"),
    ],
)
def test_a_backend_that_raises_before_a_repetition_is_whole_is_an_error_in_words(during: str, ended: str) -> None:
    with pytest.raises(InputError) as raised:
        broken(during, RuntimeError("no\nmore"))
    assert raised.value.message == ended
    assert raised.value.hint is not None


def test_the_call_that_raised_is_named_by_its_path_among_others_of_its_operator() -> None:
    calls, before = [0], 5 * 3  # of linear in a prefill and two decodes: gate, up, gate, up, lm_head

    def change(call: Callable[..., Any], *args: Any) -> Any:
        calls[0] += 1
        if calls[0] == 2 * 5 + (1 + 1) * before + 5 + 4:  # after probe, check and comparison, the first decode
            raise RuntimeError("no")
        return call(*args)

    with pytest.raises(InputError, match=r"warm-up: in completion\.generate\.decode\.forward\.layers\.1\.mlp\.up: "):
        measure_ab(ToyEngine(), [TORCH_ONLY, arm("bad", ["linear"], change)], PLAN, record=False)


@pytest.mark.parametrize("end", ["", " with scopes"])
def test_whole_repetitions_outlive_a_backend_that_raises(end: str) -> None:
    found = broken(f"bad, repetition 2 of 2{end}", RuntimeError("no"))
    assert found.ended is not None
    assert found.ended.startswith(f"bad, repetition 2 of 2{end}: in ")
    assert found.ended.endswith("silu_mul: RuntimeError: no")
    assert found.calls.select("arm", "repetition").unique().sort("arm").rows() == [("bad", 0), ("torch", 0)]
    assert found.passes["repetition"].unique().to_list() == [0]
    assert (found.errors.height, found.agreement.height) == (20, 1)
    assert found.facts["repetitions_done"] == 1
    assert found.facts["order"] == [["torch", "bad"]]
    assert own_sums(found.calls).group_by("arm").len()["len"].to_list() == [38, 38]


def test_times_outlive_a_recording_that_fails(tmp_path: Path) -> None:
    found = broken("bad, recording", RuntimeError("no"), stores=tmp_path)
    assert found.ended == f"bad, recording: in {PREFILL}.{SITE}"
    assert found.facts["repetitions_done"] == 2
    assert list(found.stores) == ["torch"]


def test_times_outlive_a_comparison_of_logits_that_fails() -> None:
    engine, calls = ToyEngine(), [0]

    def before(tokens: Any) -> None:
        calls[0] += 1
        if calls[0] == 3 + 2 * PLAN.new_tokens + 2:  # after probe, choice and check, the other arm's first step
            raise RuntimeError("once")

    engine.before = before
    found = measure_ab(engine, [TORCH_ONLY, arm("other", ["argmax"], plain)], PLAN, record=False)
    assert found.ended == "other, comparison of logits: in prefill: RuntimeError: once"
    assert (found.facts["repetitions_done"], found.agreement.height, found.errors.height) == (2, 0, 20)


def test_times_outlive_a_check_that_runs_out_of_memory() -> None:
    errors: list[MemoryError] = []
    due = [MemoryError()]

    def said(now: Progress) -> None:
        if now.part == "check of the operators" and due:
            errors.append(due.pop())

    def change(call: Callable[..., Any], *args: Any, **settings: Any) -> Any:
        if errors:
            raise errors.pop()
        return call(*args, **settings)

    found = measure_ab(
        ToyEngine(), [TORCH_ONLY, arm("big", ["silu_mul"], change)], PLAN, record=False, on_progress=said
    )
    assert found.ended == f"big, check of the operators: in {PREFILL}.forward.layers.0.mlp.silu_mul: out of memory"
    checked = found.errors.filter(pl.col("calls") > 0)["path"].str.split(".").list.last().to_list()
    assert checked[:3] == ["input_norm", "gate", "up"]  # what follows is of the sample of timed calls
    assert "silu_mul" not in checked[:3]
    assert (found.facts["repetitions_done"], found.agreement.height) == (2, 1)


def test_an_interrupt_keeps_whole_repetitions_and_ends_the_rest(tmp_path: Path) -> None:
    found = broken("bad, repetition 2 of 2", KeyboardInterrupt(), stores=tmp_path)
    assert found.ended is not None
    assert found.ended.startswith("bad, repetition 2 of 2")
    assert found.ended.endswith("interrupted")
    assert (found.facts["interrupted"], found.facts["repetitions_done"], dict(found.stores)) == (True, 1, {})


@pytest.mark.parametrize("during", ["torch, choice", "bad, check", "bad, repetition 1 of 2"])
def test_an_interrupt_before_that_is_an_interrupt(during: str) -> None:
    errors: list[BaseException] = []

    def before(tokens: Any) -> None:
        if errors:
            raise errors.pop()

    def said(now: Progress) -> None:
        if str(now).startswith(during):
            errors.append(KeyboardInterrupt())

    with pytest.raises(KeyboardInterrupt):
        measure_ab(ToyEngine(before=before), [TORCH_ONLY, arm("bad", ["argmax"], plain)], PLAN, on_progress=said)


def test_memory_that_runs_out_is_said_as_such() -> None:
    import torch

    for error in (
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory. Tried …"),
        RuntimeError("can't allocate memory: 9 TB"),
    ):
        with pytest.raises(Unavailable, match="out of memory") as raised:
            broken("bad, warm-up", error)
        assert "smaller batch" in str(raised.value.hint)
    found = broken("bad, repetition 2 of 2", MemoryError())
    assert found.ended is not None
    assert found.ended.endswith("silu_mul: out of memory")


def test_an_error_of_ours_keeps_its_class_and_hint() -> None:
    with pytest.raises(Unavailable, match=r"bad, warm-up: in .*: no compiler") as raised:
        broken("bad, warm-up", Unavailable("no compiler", hint="Install one."))
    assert raised.value.hint == "Install one."
