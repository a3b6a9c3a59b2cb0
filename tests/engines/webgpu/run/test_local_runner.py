import signal
from dataclasses import replace

import pytest
from tests.engines.webgpu.toy_program import toy_answer, toy_contents, toy_program, toy_references, toy_sources

from inferometer.engines.webgpu.program import Pass
from inferometer.engines.webgpu.run.executor import DeviceLost, Request, Submission
from inferometer.engines.webgpu.run.local_runner import LocalRunner, answer_tokens
from inferometer.engines.webgpu.run.numpy_executor import NumpyExecutor
from inferometer.errors import InferometerError, InputError

PROMPT = (4, 11, 7, 2, 9, 30)
REQUEST = Request(PROMPT, new_tokens=8)
ANSWER = toy_answer(PROMPT, 8)


def _a_runner() -> LocalRunner:
    runner = LocalRunner(NumpyExecutor(toy_sources, toy_references))
    runner.load(toy_program(capacity=32, most_rows=4), toy_contents(), lambda text: None)
    return runner


def _answer(request: Request, runner: LocalRunner | None = None) -> tuple[int, ...]:
    return answer_tokens((runner or _a_runner()).run(request, lambda submission: None), request.stop)[0]


def test_a_long_prompt_goes_in_pieces_and_only_the_last_one_has_a_head() -> None:
    submissions = _a_runner().run(replace(REQUEST, new_tokens=1), lambda submission: None)

    assert [submission.passes for submission in submissions] == [
        (Pass(("prefill",), 4, 0),),
        (Pass(("prefill", "head"), 2, 4),),
    ]
    assert [submission.tokens for submission in submissions] == [(), ANSWER[:1]]


def test_decode_steps_go_in_batches_with_a_shorter_one_at_the_end() -> None:
    submissions = _a_runner().run(replace(REQUEST, batch=3), lambda submission: None)

    assert [submission.tokens for submission in submissions[2:]] == [ANSWER[1:4], ANSWER[4:7], ANSWER[7:]]
    assert submissions[3].passes == tuple(Pass(("decode", "head"), 1, position) for position in (9, 10, 11))


@pytest.mark.parametrize("batch", [1, 2, 3, 4, 50])
def test_the_answer_is_the_same_for_every_batch(batch: int) -> None:
    assert _answer(replace(REQUEST, batch=batch)) == ANSWER


def test_a_stop_token_ends_the_answer_and_the_rest_of_its_batch_is_counted() -> None:
    stop = ANSWER[2]
    submissions = _a_runner().run(replace(REQUEST, stop=frozenset({stop}), batch=4), lambda submission: None)

    assert submissions[-1].tokens == (ANSWER[1], stop, stop, stop), "it stays stopped"
    assert answer_tokens(submissions, frozenset({stop})) == (ANSWER[:3], 2)
    assert len(submissions) == 3


def test_a_stop_token_as_the_first_one_needs_no_decode_step() -> None:
    submissions = _a_runner().run(replace(REQUEST, stop=frozenset({ANSWER[0], 1})), lambda submission: None)
    assert answer_tokens(submissions, frozenset({ANSWER[0], 1})) == (ANSWER[:1], 0)


def test_each_request_begins_anew() -> None:
    runner = _a_runner()
    stopped = _answer(replace(REQUEST, stop=frozenset({ANSWER[2]})), runner)
    assert (stopped, _answer(REQUEST, runner)) == (ANSWER[:3], ANSWER)


def test_submissions_are_told_as_they_come() -> None:
    told: list[Submission] = []
    assert list(_a_runner().run(REQUEST, told.append)) == told
    assert len(told) == 4


def test_the_cache_may_be_filled_to_its_last_position_and_no_further() -> None:
    assert len(_answer(replace(REQUEST, new_tokens=27))) == 27
    with pytest.raises(InputError, match="6 tokens and 28 new ones take 33 positions, found 32"):
        _answer(replace(REQUEST, new_tokens=28))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"prompt": ()}, "prompt: expected 1 token or more"),
        ({"prompt": (1, 97)}, "token 97: expected one of toy's vocabulary of 97"),
        ({"new_tokens": 0}, "new tokens: expected 1 or more, found 0"),
        ({"batch": 0}, "batch: expected 1 or more"),
        ({"stop": frozenset(range(17))}, "stop tokens: expected 16 at most, found 17"),
        ({"temperature": float("nan")}, "temperature: expected 0"),
        ({"top_p": 0.0}, "top-p: expected more than 0"),
        ({"top_k": -1}, "top-k: expected 0 or more"),
        ({"repetition_penalty": 0.0}, "repetition penalty: expected more than 0"),
        ({"seed": 1 << 32}, "seed: expected 0 to"),
        ({"timing": "guessed"}, 'found "guessed"'),
    ],
)
def test_a_request_that_cant_be_run_says_what_could(changes, message) -> None:
    with pytest.raises(InputError, match=message):
        _answer(replace(REQUEST, **changes))


def test_ctrl_c_ends_an_answer_behind_the_submit_that_it_came_in() -> None:
    class Interrupted(NumpyExecutor):
        left = 3

        def submit(self, passes, timing):
            self.left -= 1
            if self.left == 0:
                signal.raise_signal(signal.SIGINT)
            return super().submit(passes, timing)

    runner = LocalRunner(Interrupted(toy_sources, toy_references))
    runner.load(toy_program(), toy_contents(), lambda text: None)
    told: list[Submission] = []

    with pytest.raises(KeyboardInterrupt):
        runner.run(REQUEST, told.append)

    assert answer_tokens(told, frozenset()) == (ANSWER[:5], 0)
    assert _answer(REQUEST, runner) == ANSWER


def test_a_device_that_is_lost_leaves_what_was_told() -> None:
    class Failing(NumpyExecutor):
        left = 3

        def submit(self, passes, timing):
            self.left -= 1
            if self.left < 0:
                raise DeviceLost("gone")
            return super().submit(passes, timing)

    runner = LocalRunner(Failing(toy_sources, toy_references))
    runner.load(toy_program(), toy_contents(), lambda text: None)
    told: list[Submission] = []

    with pytest.raises(DeviceLost):
        runner.run(REQUEST, told.append)

    assert answer_tokens(told, frozenset()) == (ANSWER[:5], 0)


def test_a_runner_without_a_program_says_so() -> None:
    runner = _a_runner()
    runner.close()
    with pytest.raises(InferometerError, match="before it had a program"):
        _answer(REQUEST, runner)


def test_a_request_that_keeps_the_cache_reads_only_what_is_new_and_gets_the_same_answer() -> None:
    runner = _a_runner()
    stop = frozenset({ANSWER[2]})
    first = _answer(replace(REQUEST, stop=stop), runner)
    again = replace(REQUEST, prompt=(*PROMPT, *first[:2], 5, 6), new_tokens=4)

    kept = runner.run(replace(again, keeps_cache=True), lambda submission: None)

    assert kept[0].passes == (Pass(("prefill", "head"), 2, len(PROMPT) + 2),)
    anew = _a_runner().run(again, lambda submission: None)
    assert answer_tokens(kept, frozenset()) == answer_tokens(anew, frozenset())


def test_what_a_failed_request_wrote_is_not_kept() -> None:
    runner = _a_runner()
    _answer(REQUEST, runner)

    def stops(submission: Submission) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):  # behind the first piece of another prompt
        runner.run(replace(REQUEST, prompt=(1, 1, 1, 1, 1, 1)), stops)
    kept = runner.run(replace(REQUEST, keeps_cache=True), lambda submission: None)

    assert kept[0].passes[0].position == 0
    kept = runner.run(replace(REQUEST, keeps_cache=True), lambda submission: None)
    assert kept[0].passes[0].position == len(PROMPT) - 1


def test_tokens_that_are_not_read_again_count_for_the_repetition_penalty() -> None:
    runner = _a_runner()
    _answer(REQUEST, runner)
    runner.run(replace(REQUEST, new_tokens=1, keeps_cache=True), lambda submission: None)

    seen = runner.executor.read("seen").view("<u4")

    assert set(PROMPT[:-1]) <= set(seen.nonzero()[0])
