"""What is answered, how it is timed, and what happens when it ends early: with a model whose answers are a script."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.engines.scripted_engine import EOS, Bytes, ScriptedEngine, arm_of

from inferometer.engines.arms import TORCH_ONLY
from inferometer.engines.chat import conversation as module
from inferometer.engines.chat.answer import OperatorUse, WarmUp
from inferometer.engines.chat.conversation import WARM_UP_PASSES, Conversation
from inferometer.engines.sampling import Sampling
from inferometer.errors import InferometerError, InputError, Unavailable

torch = pytest.importorskip("torch", reason="torch isn't installed")


class Clock:
    """Goes on only when it is reported to."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_ns = 1_000
        monkeypatch.setattr(module, "_clock", lambda: self.now_ns)

    def passes(self, number: int, tokens: int) -> None:
        """A pass takes 100 ns per token of the prompt, then 7, 8, 9, … ns."""
        self.now_ns += 100 * tokens if number == 0 else 6 + number


def failing_at(number: int, error: BaseException) -> Callable[[int, int], None]:
    def at_pass(passes: int, tokens: int) -> None:
        if passes == number:
            raise error

    return at_pass


def test_an_answer_is_the_models_tokens_and_comes_in_pieces() -> None:
    pieces: list[str] = []
    answer = Conversation(ScriptedEngine("né!".encode()), new_tokens=4).ask("Well?", pieces.append)
    assert (answer.text, answer.tokens, answer.ended) == ("né!", tuple("né!".encode()), "new_tokens")
    assert pieces == ["n", "é", "!"]
    assert answer.prompt_tokens == len("u:Well?\na:")


def test_each_time_is_what_its_definition_says(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)

    class Slow(Bytes):
        def chat(self, messages: Any) -> list[int]:
            clock.now_ns += 50
            return super().chat(messages)

    def said(piece: str) -> None:
        clock.now_ns += 1

    engine = ScriptedEngine(at_pass=clock.passes, tokenizer=Slow())
    answer = Conversation(engine, new_tokens=5).ask("12345", said)
    assert answer.prompt_tokens == 10
    assert answer.prefill_ns == 1_000
    assert answer.ttft_ns == 50 + 1_000
    assert answer.token_ns == (7, 8, 9, 10)
    assert answer.total_ns == 50 + 1_000 + (7 + 8 + 9 + 10) + 4 * 1  # what is reported after the last isn't waited for
    assert [answer.token_ns_at(share) for share in (0.5, 0.95, 1)] == pytest.approx([8.5, 9.85, 10])
    assert answer.prefill_tokens_per_s == pytest.approx(10 / 1_000e-9)
    assert answer.decode_tokens_per_s == pytest.approx(4 / 34e-9)
    assert answer.tokens_per_s == pytest.approx(5 / 1_088e-9)


def test_one_token_has_no_time_of_a_further_one() -> None:
    answer = Conversation(ScriptedEngine(), new_tokens=1).ask("x")
    assert (len(answer.tokens), answer.token_ns, answer.token_ns_at(0.5), answer.decode_tokens_per_s) == (
        1,
        (),
        None,
        None,
    )
    assert answer.ttft_ns is not None


@pytest.mark.parametrize(
    ("stops", "text", "tokens", "ended"), [(True, "ab", 3, "eos"), (False, "abcab", 7, "new_tokens")]
)
def test_the_model_may_end_its_answer_unless_it_mustnt(stops: bool, text: str, tokens: int, ended: str) -> None:
    engine = ScriptedEngine((*b"ab", EOS, *b"c"))
    answer = Conversation(engine, new_tokens=7, stop_at_eos=stops).ask("x")
    assert (answer.text, len(answer.tokens), answer.ended) == (text, tokens, ended)


def test_an_answer_ends_where_the_context_does() -> None:
    prompt = len("u:x\na:")
    engine = ScriptedEngine(context_limit=prompt + 3)
    answer = Conversation(engine, new_tokens=10).ask("x")
    assert (len(answer.tokens), answer.ended) == (3, "context")
    assert Conversation(engine, new_tokens=3).ask("x").ended == "new_tokens"
    with pytest.raises(InputError, match="the prompt has 6 tokens; scripted has 6 positions, and one at least"):
        Conversation(ScriptedEngine(context_limit=prompt)).ask("x")


def test_a_prompt_that_doesnt_fit_is_refused_and_says_how_long_it_is() -> None:
    talk = Conversation(ScriptedEngine(context_limit=20), new_tokens=4)
    with pytest.raises(InputError, match=r"the prompt has 34 tokens; scripted has 20 positions, .*\n  Shorten it"):
        talk.ask("x" * 29)
    talk.ask("hello")
    with pytest.raises(InputError, match="/reset"):
        talk.ask("hello again")
    talk.reset()
    assert talk.ask("hello").text == "yes!"


@pytest.mark.parametrize("text", ["", " \n", "a\udcff"])
def test_what_is_no_prompt_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"empty|character 2"):
        Conversation(ScriptedEngine()).ask(text)


def test_a_tokenizer_of_another_model_is_noticed() -> None:
    engine = ScriptedEngine(vocabulary=100)
    with pytest.raises(InputError, match="doesn't fit the model: it makes token 117, and the model has 100"):
        Conversation(engine).ask("x")


def test_no_tokens_wanted_is_refused() -> None:
    with pytest.raises(InputError, match="1 or more, found 0"):
        Conversation(ScriptedEngine(), new_tokens=0)


def test_the_model_reads_the_whole_conversation_again() -> None:
    engine = ScriptedEngine()
    talk = Conversation(engine, new_tokens=4)
    talk.ask("one?")
    talk.ask("two?")
    talk.reset()
    talk.ask("three?")
    assert engine.prompts == ["u:one?\na:", "u:one?\na:yes!\nu:two?\na:", "u:three?\na:"]


def test_without_a_template_the_text_is_continued() -> None:
    engine = ScriptedEngine()
    talk = Conversation(engine, new_tokens=4, uses_template=False)
    talk.ask("one ")
    talk.ask(" two ")
    assert engine.prompts == ["one ", "one yes! two "]


def test_ctrl_c_ends_an_answer_which_stays_in_the_conversation() -> None:
    engine = ScriptedEngine("a€".encode(), at_pass=failing_at(2, KeyboardInterrupt()))
    pieces: list[str] = []
    talk = Conversation(engine, new_tokens=9)
    answer = talk.ask("x", pieces.append)
    assert (answer.ended, answer.text, len(answer.tokens)) == ("interrupted", "a\ufffd", 2)
    assert pieces == ["a", "\ufffd"]
    engine.at_pass = lambda number, tokens: None
    assert talk.ask("y").ended == "new_tokens"
    assert engine.prompts[1] == "u:x\na:a\ufffd\nu:y\na:"


def test_ctrl_c_before_the_first_token_leaves_an_answer_without_times() -> None:
    answer = Conversation(ScriptedEngine(at_pass=failing_at(0, KeyboardInterrupt()))).ask("x")
    assert (answer.ended, answer.text, answer.tokens) == ("interrupted", "", ())
    assert (answer.ttft_ns, answer.prefill_ns, answer.tokens_per_s) == (None, None, None)
    assert answer.total_ns > 0


def test_what_the_listener_raises_is_raised() -> None:
    def said(piece: str) -> None:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        Conversation(ScriptedEngine()).ask("x", said)


def test_a_backend_that_raises_ends_the_answer_and_is_named() -> None:
    calls: list[None] = []

    def argmax(logits_BV: Any) -> Any:
        calls.append(None)
        if len(calls) == 3:
            raise ValueError("boom\nmore")
        return logits_BV.argmax(-1)

    engine = ScriptedEngine()
    talk = Conversation(engine, arm_of("argmax", argmax), new_tokens=9)
    answer = talk.ask("x")
    assert (answer.ended, answer.text) == ("failed", "ye")
    assert isinstance(answer.failure, InferometerError)
    assert (answer.failure.message, answer.failure.exit_code) == ("odd, asked for argmax, raised ValueError: boom", 70)
    assert isinstance(answer.failure.__cause__, ValueError)
    talk.ask("y")
    assert engine.prompts[1] == "u:y\na:"  # the question that failed is forgotten


def test_a_model_that_raises_outside_of_operators_says_so() -> None:
    answer = Conversation(ScriptedEngine(at_pass=failing_at(1, RuntimeError("odd shape")))).ask("x")
    assert answer.failure is not None
    assert answer.failure.message == "the model raised RuntimeError: odd shape"


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
        RuntimeError("[enforce fail at alloc_cpu.cpp:127] . DefaultCPUAllocator: can't allocate memory: you tried"),
    ],
)
def test_running_out_of_memory_keeps_what_there_is_and_says_what_to_do(error: Exception) -> None:
    talk = Conversation(ScriptedEngine(at_pass=failing_at(2, error)))
    answer = talk.ask("x")
    assert (answer.ended, answer.text) == ("failed", "ye")
    assert isinstance(answer.failure, Unavailable)
    assert "out of memory" in str(answer.failure)
    assert "fewer --new-tokens" in str(answer.failure)
    with pytest.raises(Unavailable, match="out of memory"):
        talk.warm_up("x")


def test_what_really_ran_each_operator_is_told_with_the_reason() -> None:
    calls: list[None] = []

    def refuses(logits_BV: Any) -> str | None:
        calls.append(None)
        return "too late" if len(calls) > 2 else None

    arm = arm_of("argmax", lambda logits_BV: logits_BV.argmax(-1), refuses)
    answer = Conversation(ScriptedEngine(), arm, new_tokens=5).ask("x")
    assert answer.operators == (
        OperatorUse("linear", "torch", 5, "odd has no linear"),
        OperatorUse("argmax", "odd", 2, None),
        OperatorUse("argmax", "torch", 3, "odd: too late"),
    )


@pytest.mark.parametrize(("new_tokens", "passes"), [(3, 3), (40, WARM_UP_PASSES)])
def test_a_warm_up_is_timed_apart_and_changes_no_answer(
    new_tokens: int, passes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock(monkeypatch)
    cold = Conversation(ScriptedEngine(), TORCH_ONLY, Sampling(50.0, seed=3), new_tokens).ask("12345")
    engine = ScriptedEngine(at_pass=clock.passes)
    talk = Conversation(engine, TORCH_ONLY, Sampling(50.0, seed=3), new_tokens)
    warm_up = talk.warm_up("12345")
    assert warm_up == WarmUp(1_000 + sum(6 + number for number in range(1, passes)), 1_000)
    warm = talk.ask("12345")
    assert warm.tokens == cold.tokens
    assert [use.calls for use in warm.operators] == [new_tokens] * 3
    assert len(set(engine.lengths)) == 1  # the cache of the warm-up is as large, so that its shapes are the same
