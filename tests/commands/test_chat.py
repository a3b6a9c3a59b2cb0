"""`chat` as users meet it: what goes where, how it ends, what it refuses; with a model whose answers are a script."""

import io
import json
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.commands.test_command_line import run
from tests.engines.scripted_engine import EOS, ScriptedEngine

import inferometer
from inferometer.errors import UnknownName

HAS_TORCH = find_spec("torch") is not None
needs_torch = pytest.mark.skipif(not HAS_TORCH, reason="torch isn't installed")
Said = tuple[int, str, str]


class Terminal(io.TextIOWrapper):
    """Lines that a person types; an exception among them is raised where it is read."""

    def __init__(self, *lines: bytes | BaseException, is_terminal: bool = True) -> None:
        super().__init__(io.BytesIO())
        self.lines = list(lines)
        self.is_terminal = is_terminal

    def isatty(self) -> bool:
        return self.is_terminal

    @property
    def buffer(self) -> Any:
        return SimpleNamespace(readline=self.next_line, read=lambda: b"".join(self.lines))  # type: ignore[arg-type]

    def next_line(self) -> bytes:
        line = self.lines.pop(0) if self.lines else b""
        if isinstance(line, BaseException):
            raise line
        return line


class Chat:
    """Runs the command on a scripted engine."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.engine = ScriptedEngine()
        self.loaded: list[dict[str, Any]] = []
        self._patch, self._capsys = monkeypatch, capsys
        monkeypatch.setitem(sys.modules, "inferometer.engines.hf.model", SimpleNamespace(load_model=self._load))

    def __call__(self, *words: object, stdin: Terminal | None = None) -> Said:
        self._patch.setattr(sys, "stdin", stdin or Terminal())
        return run("chat", "tiny-llama", *words, capsys=self._capsys)

    def fail_at(self, number: int, error: BaseException) -> None:
        """In the first run after the warm-up."""

        def at_pass(passes: int, tokens: int) -> None:
            if passes == number and len(self.engine.prompts) > 1:
                raise error

        self.engine.at_pass = at_pass

    def _load(self, model: str, **options: Any) -> ScriptedEngine:
        if model == "nonsense":
            raise UnknownName("model", model, ("tiny-llama",))
        self.loaded.append({"model": model, **options})
        return self.engine


@pytest.fixture
def chat(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Chat:
    return Chat(monkeypatch, capsys)


@needs_torch
def test_text_goes_to_stdout_and_all_else_to_stderr(chat: Chat) -> None:
    code, out, err = chat("--prompt", "Hello", "--new-tokens", 6, "--seed", 7, "--dtype", "bfloat16")
    assert (code, out) == (0, "yes!ye\n")
    for line in ("Model ", "Weights   none: a script", "TTFT ", "Decode ", "argmax    torch", "tokens/s", "cold"):
        assert line in err
    assert chat.loaded == [{"model": "tiny-llama", "device": "cpu", "dtype": "bfloat16", "seed": 7}]


@needs_torch
def test_json_is_one_document_with_text_tokens_and_every_metric(chat: Chat) -> None:
    code, out, err = chat("--prompt", "Hello", "--new-tokens", 3, "--json")
    found = json.loads(out)
    assert (code, err) == (0, "")
    assert (found["text"], found["tokens"], found["new_tokens"], found["ended"]) == ("yes", [*b"yes"], 3, "new_tokens")
    assert found["sampling"] == {"temperature": 0.0, "top_k": 0, "top_p": 1.0, "seed": 0}
    assert 0 < found["prefill_ns"] <= found["ttft_ns"] < found["total_ns"]
    assert found["cold_ttft_ns"] <= found["warm_up_ns"]
    assert len(found["token_ns"]["each"]) == 2
    assert found["token_ns"]["median"] <= found["token_ns"]["p95"] <= found["token_ns"]["max"]
    assert found["peak_rss_bytes"] is None or found["peak_rss_bytes"] > 10_000_000
    assert found["operators"][0] == {"operator": "linear", "backend": "torch", "calls": 3, "reason": None}
    assert {"load_ns", "error", "parameters", "weight_bytes", "arm", "recording", "peak_device_bytes"} < found.keys()


@needs_torch
@pytest.mark.parametrize("words", [(), ("--prompt", "-")])
def test_a_prompt_may_come_on_standard_input(words: tuple[str, ...], chat: Chat) -> None:
    code, out, _ = chat(*words, "--new-tokens", 4, stdin=Terminal("Grüße,\nall\r\n".encode(), is_terminal=False))
    assert (code, out) == (0, "yes!\n")
    assert chat.engine.prompts == ["u:Grüße,\nall\na:"] * 2


@needs_torch
def test_cold_asks_only_once(chat: Chat) -> None:
    code, _, err = chat("--prompt", "Hello", "--cold")
    assert (code, len(chat.engine.prompts)) == (0, 1)
    assert "cold: with what the first call compiles" in err


@needs_torch
def test_an_answer_may_go_past_its_end_and_without_a_template(chat: Chat) -> None:
    chat.engine.script = (*b"a", EOS)
    code, out, _ = chat("--prompt", "Hi ", "--new-tokens", 4, "--no-stop-at-eos", "--no-chat-template")
    assert (code, out, chat.engine.prompts[0]) == (0, "aa\n", "Hi ")


@needs_torch
def test_a_person_asks_line_by_line(chat: Chat) -> None:
    lines = Terminal(b"\n", b"one\n", b"/nonsense\n", b"two\n", b"/reset\n", b"three\n", b"/exit\n", b"four\n")
    code, out, err = chat("--new-tokens", 4, stdin=lines)
    assert (code, out) == (0, "yes!\n" * 3)
    assert chat.engine.prompts == ["u:Hello\na:", "u:one\na:", "u:one\na:yes!\nu:two\na:", "u:three\na:"]
    assert err.count("> ") == 7
    assert (err.count("Operators"), err.count("Decode ")) == (1, 3)  # what ran is reported again only where it changes
    assert "no command /nonsense: expected /exit or /reset" in err


@needs_torch
def test_what_a_person_asks_may_be_refused_and_the_conversation_goes_on(chat: Chat) -> None:
    chat.engine.context_limit = 30
    code, out, err = chat("--new-tokens", 4, stdin=Terminal(b"x" * 50 + b"\n", b"\xff\n", b"hello\n", b""))
    assert (code, out) == (0, "yes!\n")
    assert "the prompt has 55 tokens" in err
    assert "that is no text in UTF-8" in err


@needs_torch
def test_ctrl_c_stops_the_answer_of_a_person_and_once_more_leaves(chat: Chat) -> None:
    chat.fail_at(2, KeyboardInterrupt())
    code, out, err = chat(stdin=Terminal(b"one\n", KeyboardInterrupt()))
    assert (code, out) == (130, "ye\n")
    assert "2 new: interrupted" in err
    assert "once more leaves" in err


@needs_torch
@pytest.mark.parametrize("form", [(), ("--json",)])
def test_ctrl_c_leaves_what_there_is(form: tuple[str, ...], chat: Chat) -> None:
    chat.fail_at(3, KeyboardInterrupt())
    code, out, err = chat("--prompt", "Hello", *form)
    assert code == 130
    if form:
        assert (json.loads(out)["text"], json.loads(out)["ended"], err) == ("yes", "interrupted", "")
    else:
        assert (out, "3 new: interrupted" in err) == ("yes\n", True)


@needs_torch
@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ZeroDivisionError("planted"), 70, "error: the model raised ZeroDivisionError: planted"),
        (MemoryError("no room"), 4, "error: out of memory: no room"),
    ],
)
def test_a_failure_in_the_middle_shows_what_there_was(error: Exception, code: int, said: str, chat: Chat) -> None:
    chat.fail_at(2, error)
    found, out, err = chat("--prompt", "Hello")
    assert (found, out) == (code, "ye\n")
    assert said in err
    assert "2 new: failed" in err
    chat.engine.prompts.clear()
    found, out, _ = chat("--prompt", "Hello", "--json")
    assert (found, json.loads(out)["text"], said[7:] in json.loads(out)["error"]) == (code, "ye", True)


@needs_torch
def test_a_failure_of_one_answer_doesnt_end_the_conversation(chat: Chat) -> None:
    error = ValueError("planted")
    chat.engine.at_pass = lambda number, tokens: (_ for _ in ()).throw(error) if tokens == len("u:bad\na:") else None
    code, out, err = chat("--new-tokens", 4, stdin=Terminal(b"bad\n", b"good\n"))
    assert (code, out) == (0, "\nyes!\n")
    assert "ValueError: planted" in err


@needs_torch
def test_a_terminal_is_not_driven_by_what_a_model_says_through_a_pipe_either(chat: Chat) -> None:
    chat.engine.script = (*b"a\x1b[2J\n\tb",)
    assert chat("--prompt", "Hello", "--new-tokens", 8)[1] == "a\\x1b[2J\n\tb\n"


@needs_torch
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--prompt", ""), 3, "--prompt: the prompt is empty"),
        (("--prompt", "a\udcff"), 3, "--prompt: expected text in UTF-8, found another byte at character 2"),
        (("--prompt", "x", "--new-tokens", "0"), 2, "--new-tokens"),
        (("--prompt", "x", "--temperature", "-1"), 2, "--temperature"),
        (("--prompt", "x", "--temperature", "nan"), 2, "--temperature"),
        (("--prompt", "x", "--temperature", "0.001"), 3, "temperature: expected 0, or 0.01 to 100"),
        (("--prompt", "x", "--top-k", "5"), 3, "Give a temperature"),
        (("--prompt", "x", "--top-p", "0"), 2, "--top-p"),
        (("--prompt", "x", "--backend", "tritn"), 3, "triton"),
        (("--prompt", "x", "--backend", "triton", "--backend", "compile"), 2, "a model runs once"),
        (("--prompt", "x", "--on", "tpu"), 3, "expected cpu, cuda"),
        (("--prompt", "x", "--on", "cuda:99"), 4, "no GPU cuda:99"),
        (("--prompt", "x", "--record", "{there}"), 3, "already exists"),
        (("--prompt", "x", "--record", "{there}", "--force"), 3, "not a store"),
        (("--prompt", "x", "--record", "{there}/no/run.ifm"), 3, "no such folder"),
        (("--json",), 2, "--json needs a --prompt"),
    ],
)
def test_wrong_calls_say_what_was_wrong_before_a_model_is_loaded(
    words: tuple[str, ...], code: int, said: str, chat: Chat, tmp_path: Path
) -> None:
    found, out, err = chat(*(word.format(there=tmp_path) for word in words))
    assert (found, out, chat.loaded) == (code, "", [])
    assert said in err


@pytest.mark.parametrize(("text", "said"), [(b"", "prompt is empty"), (b"\n", "prompt is empty"), (b"a\xff", "UTF-8")])
def test_standard_input_must_hold_a_prompt(text: bytes, said: str, chat: Chat) -> None:
    code, out, err = chat(stdin=Terminal(text, is_terminal=False))
    assert (code, out) == (3, "")
    assert f"standard input: {'expected text in ' if text == b'a' + bytes([255]) else 'the '}{said}" in err


@needs_torch
def test_a_prompt_that_is_too_long_or_a_model_that_isnt_there_is_said(
    chat: Chat, capsys: pytest.CaptureFixture[str]
) -> None:
    chat.engine.context_limit = 9
    code, out, err = chat("--prompt", "Hello")
    assert (code, out) == (3, "")
    assert "the prompt has 10 tokens; scripted has 9 positions" in err
    code, out, err = run("chat", "nonsense", "--prompt", "x", capsys=capsys)
    assert (code, out) == (3, "")
    assert 'unknown model "nonsense"' in err


@pytest.mark.skipif(HAS_TORCH, reason="torch is installed")
def test_without_torch_it_says_how_to_get_it(chat: Chat) -> None:
    code, out, err = chat("--prompt", "Hello")
    assert (code, out) == (4, "")
    assert "torch is not installed\n  pip install 'inferometer[torch]'" in err


@needs_torch
def test_a_recording_has_a_step_for_each_pass_of_the_answer(chat: Chat, tmp_path: Path) -> None:
    store = tmp_path / "run.ifm"
    code, out, err = chat("--prompt", "Hello", "--new-tokens", 4, "--record", store)
    assert (code, out) == (0, "yes!\n")
    assert f"written: {store}" in err
    with inferometer.open(str(store)) as trace:
        steps = trace.steps.collect()
        assert steps["phase"].to_list() == ["prefill", "decode", "decode", "decode"]
        assert steps["prefill_tokens"].to_list()[0] == len("u:Hello\na:")
        assert steps["context_len"].to_list() == [10, 11, 12, 13]
        assert "aten::argmax" in trace.ops.collect()["op"].to_list()
    assert chat("--prompt", "Hello", "--record", store)[0] == 3
    chat.engine.prompts.clear()
    chat.fail_at(2, KeyboardInterrupt())
    assert chat("--prompt", "Hello", "--record", store, "--force")[0] == 130
    with inferometer.open(str(store)) as trace:
        assert trace.steps.collect().height == 3


@pytest.mark.skipif(not hasattr(signal, "siginterrupt"), reason="this system has no reads that go on after Ctrl-C")
def test_ctrl_c_ends_the_wait_for_a_line_after_polars_was_used() -> None:
    program = (
        "import polars\n"
        "polars.LazyFrame({'a': [1]}).select(polars.col('a').sum()).collect()\n"
        "from inferometer.commands.options.chat import next_line\n"
        "next_line()"
    )
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", program], **pipes) as process:  # type: ignore[call-overload]
        assert process.stderr.read(2) == b"> "
        for _ in range(100):  # the read itself begins a moment later
            process.send_signal(signal.SIGINT)
            try:
                process.wait(0.1)
                break
            except subprocess.TimeoutExpired:
                pass
        process.kill()
        assert b"KeyboardInterrupt" in process.stderr.read()


@needs_torch
def test_a_bundled_model_answers(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("transformers", reason="transformers isn't installed")
    words = ("tiny-llama", "--prompt", "Hello", "--new-tokens", 3, "--temperature", 1, "--json")
    code, out, err = run("chat", *words, capsys=capsys)
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert (found["model"], found["source"], len(found["tokens"])) == ("tiny-llama", "random weights, seed 0", 3)
    calls = {use["operator"]: use["calls"] for use in found["operators"]}
    assert (calls["attention_prefill"], calls["attention_decode"]) == (1 * 3, 2 * 3)  # layers
    assert (calls["softmax"], calls["top_k_top_p"], calls.get("argmax")) == (3, 3, None)
