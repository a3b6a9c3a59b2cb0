"""Answers of WebLLM and MLC LLM: each form that they come in, what is a repetition of what, and what is never kept."""

import json
import statistics
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.conformance.samples import mlc
from tests.traces import counted, rows

import inferometer
from inferometer import Trace
from inferometer.analyses.compare.tests import compare_tests
from inferometer.errors import FormatError, InputError
from inferometer.formats.base import known_formats

TESTS = ("test", "repetitions", "tokens_per_s", "mean_ns")


def answer(prefill: float, decode: float, *, prompt: int = 40, model: str = "Llama", **extra: Any) -> dict[str, Any]:
    rates = {"prefill_tokens_per_s": prefill, "decode_tokens_per_s": decode}
    usage = {"prompt_tokens": prompt, "completion_tokens": 121, "extra": rates | extra}
    message = {"message": {"content": "a secret answer {"}}
    return {"id": "x", "model": model, "choices": [message], "usage": usage}


def opened(tmp_path: Path, text: str, name: str = "a.json") -> Trace:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    return inferometer.open(path)


TWO = [answer(400.0, 50.0), answer(420.0, 52.0)]
FORMS = {
    "list": json.dumps(TWO, indent=2),
    "lines": "".join(json.dumps(each) + "\n" for each in TWO),
    "stream": "".join(f"data: {json.dumps(each)}\n\n" for each in TWO) + "data: [DONE]\n",
    "usages": "".join(json.dumps(each["usage"]) + "\n" for each in TWO),
}


@pytest.mark.parametrize("form", FORMS)
def test_each_form_has_the_rates_of_all_answers(form: str, tmp_path: Path) -> None:
    trace = opened(tmp_path, FORMS[form])
    assert rows(trace, "tests", *TESTS) == [("prefill of 40 tokens", 2, 410.0, None), ("decode", 2, 51.0, None)]
    spread = rows(trace, "tests", "tokens_per_s_stddev")
    assert spread == pytest.approx([statistics.stdev([400, 420]), statistics.stdev([50, 52])])
    assert rows(trace, "log", "kind")[:2] == ["answer", "answer"]
    assert "secret" not in str(trace.log.collect().to_dicts())
    assert counted(trace) == {}


def test_the_text_of_statistics_has_rates_without_tokens(tmp_path: Path) -> None:
    text = "[12:00] prefill: 33.2500 tokens/sec, decoding: 20.5000 tokens/sec\n"
    text += "prefill: 30 tokens/s, decoding: NaN tokens/s\n"
    trace = opened(tmp_path, text)
    assert rows(trace, "tests", *TESTS) == [("prefill", 2, 31.625, None), ("decode", 1, 20.5, None)]
    assert counted(trace) == {"wrong_type": 1}


def test_times_are_of_like_prompts_and_answers(tmp_path: Path) -> None:
    web = [answer(1, 1, prompt=n, time_to_first_token_s=0.5 * n, e2e_latency_s=2.5) for n in (4, 4, 8)]
    trace = opened(tmp_path, json.dumps(web))
    found = {
        name: (count, mean) for name, count, mean in rows(trace, "tests", "test", "repetitions", "mean_ns") if mean
    }
    assert found == {
        "time to first token of 4 tokens": (2, 2e9),
        "time to first token of 8 tokens": (1, 4e9),
        "whole answer of 121 tokens to 4": (2, 2.5e9),
        "whole answer of 121 tokens to 8": (1, 2.5e9),
    }
    assert trace.facts.tool == "WebLLM"
    mlc_llm = opened(tmp_path, json.dumps(answer(1, 1, ttft_s=0.5, end_to_end_latency_s=1)))
    assert mlc_llm.facts.tool == "MLC LLM"
    assert rows(mlc_llm, "tests", "mean_ns")[2:] == [5e8, 1e9]


def test_two_files_are_compared_by_their_rates(tmp_path: Path) -> None:
    base = opened(tmp_path, json.dumps([answer(400, 50 + i / 10) for i in range(6)]), "a.json")
    candidate = opened(tmp_path, json.dumps([answer(400, 40 + i / 10) for i in range(6)]), "b.json")
    found = compare_tests(base, candidate)
    assert {row.name: row.kind for row in found.rows} == {"prefill of 40 tokens": "same", "decode": "slower"}
    assert found.rows[1].ratio == pytest.approx(50.25 / 40.25)
    other = opened(tmp_path, json.dumps([answer(400, 50, model="Qwen")]), "c.json")
    assert compare_tests(base, other).verdict == "not comparable"


def test_answers_of_several_models_are_kept_apart(tmp_path: Path) -> None:
    trace = opened(tmp_path, json.dumps([answer(4, 5), answer(6, 7, model="Qwen")]))
    assert rows(trace, "tests", "test")[1::2] == ["decode, Llama", "decode, Qwen"]
    assert trace.facts.model is None


@pytest.mark.parametrize("value", ['"fast"', "-1", "1e300", "[]", "true", "null"])
def test_a_rate_that_is_none_is_left_out(value: str, tmp_path: Path) -> None:
    trace = opened(tmp_path, json.dumps(answer(400, 77)).replace("77", value))
    assert rows(trace, "tests", "test") == ["prefill of 40 tokens"]
    assert counted(trace) == ({} if value == "null" else {"wrong_type": 1})


def test_a_text_that_ends_at_any_byte_has_what_came_before(tmp_path: Path) -> None:
    data, path = mlc(), tmp_path / "a.json"
    for size in range(len(data)):
        path.write_bytes(data[:size])
        with suppress(InputError):
            inferometer.open(path, format="mlc")
    path.write_text(json.dumps(TWO)[:-20])
    assert counted(inferometer.open(path)) == {"truncated": 1}


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"usage": {}}', '{"usage": {"extra": {}}}', "hello", "[" * 9999, "\x00"]
)
def test_a_text_without_an_answer_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(FormatError, match="expected answers of MLC LLM or WebLLM with their rates, found none"):
        inferometer.open(path, format="mlc")


def test_other_responses_are_not_taken_for_it() -> None:
    sniff = known_formats()["mlc"].sniff
    assert sniff(mlc())
    assert not sniff(b'{"usage": {"prompt_tokens": 4}}')
    assert not sniff(b"prefill: fast, decoding: slow")
