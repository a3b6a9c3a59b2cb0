"""Conversations on WebGPU: tokens that come in batches, their times, and how an answer ends."""

from typing import Any

import pytest
from tests.engines.scripted_engine import EOS
from tests.engines.webgpu.scripted_runner import BATCH_NS, PREFILL_NS, ScriptedRunner, a_scripted_engine

from inferometer.engines.webgpu.chat import conversation as module
from inferometer.engines.webgpu.chat.conversation import DeviceConversation, DeviceSampling, KernelUse
from inferometer.engines.webgpu.run.executor import DeviceLost
from inferometer.errors import InferometerError, InputError, Unavailable


def talk(runner: ScriptedRunner | None = None, *, context_limit: int | None = 100, **options: Any) -> Any:
    return DeviceConversation(a_scripted_engine(runner, context_limit), **options)


def failing_at(number: int, error: BaseException) -> ScriptedRunner:
    def at_submit(submits: int) -> None:
        if submits == number:
            raise error

    return ScriptedRunner(at_submit=at_submit)


def test_text_comes_with_each_submit_and_the_last_batch_is_short() -> None:
    pieces: list[str] = []
    answer = talk(ScriptedRunner("né!".encode()), new_tokens=7, batch=3).ask("Well?", pieces.append)
    assert (answer.text, answer.tokens, answer.ended) == ("né!né", tuple("né!né".encode()[:7]), "new_tokens")
    assert "".join(pieces) == answer.text
    assert [len(each.tokens) for each in answer.submissions] == [1, 3, 3]
    assert answer.prompt_tokens == len("u:Well?\na:")


def test_each_time_is_what_its_definition_says(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_000]
    monkeypatch.setattr(module, "_clock", lambda: now[0])

    def at_submit(number: int) -> None:
        now[0] += 2_000 if number == 0 else 100

    def said(piece: str) -> None:
        now[0] += 1

    answer = talk(ScriptedRunner(at_submit=at_submit), new_tokens=6, batch=3).ask("x", said)
    assert (answer.ttft_ns, answer.prefill_ns) == (2_000, PREFILL_NS)
    assert answer.token_ns == (24, 23, 23, 35, 35)
    assert sum(answer.token_ns) == 2 * BATCH_NS
    assert answer.total_ns == 2_000 + 1 + 100 + 3 + 100  # what is reported after the last isn't waited for
    assert answer.decode_tokens_per_s == pytest.approx(5 / 140e-9)


def test_a_batch_runs_past_the_token_that_ends_the_answer_and_its_time_counts() -> None:
    answer = talk(ScriptedRunner((*b"ab", EOS, *b"c")), new_tokens=9, batch=4).ask("x")
    assert (answer.text, answer.tokens, answer.ended) == ("ab", (*b"ab", EOS), "eos")
    assert answer.token_ns == (35, 35)
    runner = ScriptedRunner((*b"ab", EOS, *b"c"))
    answer = talk(runner, new_tokens=5, stop_at_eos=False).ask("x")
    assert (answer.text, len(answer.tokens), answer.ended) == ("abca", 5, "new_tokens")
    assert runner.requests[0].stop == frozenset()


def test_an_answer_ends_where_the_cache_does() -> None:
    prompt = len("u:x\na:")
    answer = talk(context_limit=prompt + 3, new_tokens=10).ask("x")
    assert (len(answer.tokens), answer.ended) == (3, "context")
    with pytest.raises(InputError, match="the prompt has 6 tokens; scripted has 6 positions, and one at least"):
        talk(context_limit=prompt).ask("x")


def test_the_request_says_how_to_choose() -> None:
    runner = ScriptedRunner()
    sampling = DeviceSampling(0.7, 5, 0.9, 2**40 + 3, repetition_penalty=1.3)
    conversation = talk(runner, sampling=sampling, batch=2, timing="timestamps", new_tokens=3)
    conversation.ask("x")
    conversation.ask("y")
    conversation.reset()
    conversation.ask("x")
    first, second, again = runner.requests
    assert (first.temperature, first.top_k, first.top_p, first.repetition_penalty) == (0.7, 5, 0.9, 1.3)
    assert (first.batch, first.timing, first.new_tokens, first.stop) == (2, "timestamps", 3, frozenset({EOS}))
    assert (first.seed, bytes(first.prompt)) == (256 + 3, b"u:x\na:")
    assert second.seed not in (first.seed, first.seed + 1)
    assert bytes(second.prompt) == b"u:x\na:yes\nu:y\na:"
    assert again == first


@pytest.mark.parametrize("penalty", [0.0, -1.0, float("nan"), float("inf")])
def test_a_penalty_that_is_none_is_refused(penalty: float) -> None:
    with pytest.raises(InputError, match="repetition penalty: expected a number above 0"):
        DeviceSampling(repetition_penalty=penalty)


def test_wrong_numbers_are_refused() -> None:
    with pytest.raises(InputError, match="batch: expected 1 decode step of a submit or more, found 0"):
        talk(batch=0)
    with pytest.raises(InputError, match="1 or more, found 0"):
        talk(new_tokens=0)
    engine = a_scripted_engine()
    engine.tokenizer.eos = frozenset(range(17))
    with pytest.raises(InputError, match="expected 16 tokens that end an answer at most, found 17"):
        DeviceConversation(engine)


def test_ctrl_c_ends_an_answer_which_stays_in_the_conversation() -> None:
    runner = failing_at(2, KeyboardInterrupt())
    conversation = talk(runner, new_tokens=9, batch=2)
    answer = conversation.ask("x")
    assert (answer.ended, answer.text, len(answer.submissions)) == ("interrupted", "yes", 2)
    runner.at_submit = lambda number: None
    conversation.ask("y")
    assert bytes(runner.requests[1].prompt) == b"u:x\na:yes\nu:y\na:"


def test_a_lost_device_leaves_what_there_is() -> None:
    runner = failing_at(2, DeviceLost("the device is gone"))
    conversation = talk(runner, new_tokens=9, batch=2)
    answer = conversation.ask("x")
    assert (answer.ended, answer.text, answer.tokens) == ("failed", "yes", tuple(b"yes"))
    assert isinstance(answer.failure, DeviceLost)
    assert [use.calls for use in answer.operators] == [1, 1, 3, 2, 4]
    conversation.ask("y")
    assert bytes(runner.requests[1].prompt) == b"u:y\na:"  # the question that failed is forgotten


def test_before_the_first_token_there_are_no_times() -> None:
    answer = talk(failing_at(0, DeviceLost("gone"))).ask("x")
    assert (answer.text, answer.ttft_ns, answer.prefill_ns, answer.token_ns) == ("", None, None, ())
    assert answer.total_ns > 0


def test_other_errors_are_put_in_words() -> None:
    answer = talk(failing_at(1, RuntimeError("odd\nmore"))).ask("x")
    assert isinstance(answer.failure, InferometerError)
    assert answer.failure.message == "the engine raised RuntimeError: odd"
    short = talk(failing_at(1, MemoryError())).ask("x").failure
    assert isinstance(short, Unavailable)
    assert "smaller --context" in str(short)
    with pytest.raises(DeviceLost, match="gone"):
        talk(failing_at(0, DeviceLost("gone"))).warm_up("x")


def test_what_the_listener_raises_is_raised() -> None:
    def said(piece: str) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        talk().ask("x", said)


def test_a_warm_up_is_two_batches_and_changes_no_answer() -> None:
    runner = ScriptedRunner()
    conversation = talk(runner, new_tokens=40, batch=5)
    warm_up = conversation.warm_up("x")
    assert warm_up.total_ns >= warm_up.ttft_ns > 0
    conversation.ask("x")
    assert [request.new_tokens for request in runner.requests] == [11, 40]
    assert runner.requests[0].prompt == runner.requests[1].prompt


def test_which_kernel_ran_each_operator_is_told_with_the_reason() -> None:
    answer = talk(new_tokens=6, batch=4).ask("x")
    assert answer.operators == (
        KernelUse("gather", "gather", 1, None, "prefill"),
        KernelUse("linear:qkv_proj", "matmul_tile", 1, "many rows", "prefill"),
        KernelUse("linear:lm_head", "linear_thread", 6, None, "head"),
        KernelUse("gather", "gather", 5, None, "decode"),
        KernelUse("linear:qkv_proj", "linear_thread", 10, "first of the path", "decode"),
    )
