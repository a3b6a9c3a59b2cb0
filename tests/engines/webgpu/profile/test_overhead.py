"""The forms of a submit side by side."""

from dataclasses import replace
from typing import Any

import pytest
from tests.engines.webgpu.scripted_runner import ADAPTER, BATCH_NS, PREFILL_NS, ScriptedRunner

from inferometer.engines.webgpu.profile.overhead import measure_overhead
from inferometer.engines.webgpu.run.executor import Request, Submission
from inferometer.reports.views.view import remarks_of


class Slower(ScriptedRunner):
    """Waits longer in a form, and each time a little more."""

    def _submission(self, request: Request, made: int, tokens: tuple[int, ...]) -> Submission:
        found = super()._submission(request, made, tokens)
        more = {"single_pass": 0, "pass_per_dispatch": 70, "timestamps": 210}[request.timing]
        return replace(found, wait_ns=found.wait_ns + more + len(self.requests), untimed=request.timing == "timestamps")


def request(**changes: Any) -> Request:
    return Request(**{"prompt": (1, 2), "new_tokens": 9, "batch": 4, **changes})


def test_forms_take_turns_and_the_first_round_doesnt_count() -> None:
    runner = Slower()
    found = measure_overhead(runner, request(), rounds=2)
    order = ["single_pass", "pass_per_dispatch", "timestamps"]
    assert [each.timing for each in runner.requests] == order * 3
    single, passes, timed = found.forms
    assert [each.timing for each in found.forms] == order
    assert single.token_ns == pytest.approx((BATCH_NS + (4 + 7) / 2) / 4)  # of the runs 4 and 7
    assert passes.token_ns == pytest.approx((BATCH_NS + 70 + (5 + 8) / 2) / 4)
    assert timed.max_token_ns == pytest.approx((BATCH_NS + 210 + 9) / 4)
    assert passes.ratio == pytest.approx(146.5 / 75.5)
    assert single.prefill_ns == pytest.approx(PREFILL_NS + 5.5)
    assert (single.ratio, single.rounds, single.untimed, timed.untimed) == (1, 2, 0, 2 * 3)
    assert found.same_tokens
    assert list(remarks_of(found)) == []


def test_without_timestamps_the_profiled_form_is_left_out_and_said() -> None:
    adapter = replace(ADAPTER, features=frozenset())
    found = measure_overhead(ScriptedRunner(adapter=adapter), request(), rounds=1)
    assert [each.timing for each in found.forms] == ["single_pass", "pass_per_dispatch"]
    assert list(remarks_of(found)) == ["Scripted has no timestamps: the profiled form is left out."]


def test_one_token_has_no_time_of_a_further_one() -> None:
    single = measure_overhead(ScriptedRunner(), request(new_tokens=1), rounds=1).forms[0]
    assert (single.prefill_ns, single.token_ns, single.ratio) == (PREFILL_NS, None, None)


def test_different_answers_are_said() -> None:
    class Other(ScriptedRunner):
        def _tokens(self, request: Request, made: int, number: int) -> tuple[int, ...]:
            found = super()._tokens(request, made, number)
            return found[::-1] if request.timing == "timestamps" else found

    assert "different tokens" in remarks_of(measure_overhead(Other(), request(), rounds=1))[0]
