"""A model's answer in a report: every metric with its unit."""

from typing import Any

from inferometer.engines.chat.answer import Answer, ChatAnswer, OperatorUse, Setup, WarmUp
from inferometer.engines.sampling import Sampling
from inferometer.reports.views.view import facts_of, sections_of


def setup_of(warm_up: WarmUp | None = None) -> Setup:
    return Setup("scripted", "a script", "cpu", "float32", 257, 1028, "torch", Sampling(), 5_000, warm_up)


def an_answer(**changes: Any) -> Answer:
    values: dict[str, Any] = {
        "text": "yes", "tokens": (1, 2, 3), "prompt_tokens": 1_200, "ended": "eos", "ttft_ns": 2_000_000,
        "prefill_ns": 1_000_000, "token_ns": (2_000_000, 4_000_000), "total_ns": 9_000_000,
        "operators": [OperatorUse("rope", "torch", 4, "triton: head size 80")],
        "peak_rss_bytes": 250_000_000, "peak_device_bytes": 3_000_000,
    }  # fmt: skip
    return Answer(**{**values, **changes})


def test_the_report_says_every_metric_with_its_unit() -> None:
    result = ChatAnswer(setup_of(WarmUp(700_000_000, 500_000_000)), an_answer())
    assert dict(facts_of(result)) == {
        "Model": "scripted: 257 parameters, 1.028 kB of float32 on cpu",
        "Weights": "a script",
        "Backend": "torch",
        "Load": "5.000 μs; warm-up 700.000 ms",
        "Tokens": "1,200 of the prompt, 3 new: the model ended it",
        "TTFT": "2.000 ms; 500.000 ms cold, with what the first call compiles",
        "Prefill": "1.000 ms, 1,200,000 tokens/s",
        "Decode": "3.000 ms per token (median), p95 3.900 ms, max 4.000 ms, 333.3 tokens/s",
        "Overall": "9.000 ms, 333.3 tokens/s",
        "Memory": "peak 250.000 MB of the process, 3.000 MB of the device",
    }
    (section,) = sections_of(result)
    assert section.frame.rows() == [("rope", "torch", 4, "triton: head size 80")]
    brief = ChatAnswer(setup_of(WarmUp(7, 5)), an_answer(), brief=True)
    assert [label for label, _ in facts_of(brief)] == ["Tokens", "TTFT", "Prefill", "Decode", "Overall", "Memory"]
    assert (sections_of(brief), dict(facts_of(brief))["TTFT"]) == ((), "2.000 ms")


def test_a_first_answer_without_a_warm_up_is_called_cold() -> None:
    result = ChatAnswer(setup_of(), an_answer())
    assert dict(facts_of(result))["TTFT"] == "2.000 ms, cold: with what the first call compiles"
    assert (result.as_json()["cold_ttft_ns"], result.as_json()["warm_up_ns"]) == (2_000_000, None)


def test_an_answer_without_a_token_has_no_times() -> None:
    nothing = an_answer(tokens=(), ended="interrupted", ttft_ns=None, prefill_ns=None, token_ns=())
    facts = dict(facts_of(ChatAnswer(setup_of(), nothing)))
    assert facts["Decode"] == "- per token (median), p95 -, max -, - tokens/s"
