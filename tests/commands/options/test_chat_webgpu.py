"""`chat --engine webgpu` as users meet it: tiny models on NumPy and, where there is an adapter, on wgpu."""

import json
import shutil
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from tests.commands.test_chat import Terminal
from tests.commands.test_command_line import run

import inferometer
from inferometer.engines.bundled import require_config
from inferometer.engines.webgpu.browser.chromium import NAMES
from inferometer.engines.webgpu.load import LoadOptions
from inferometer.errors import Unavailable

Said = tuple[int, str, str]


class Chat:
    """Runs the command with the engine, by default on NumPy."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._patch, self._capsys = monkeypatch, capsys

    def __call__(self, *words: object, model: str = "tiny-llama", stdin: Terminal | None = None) -> Said:
        self._patch.setattr(sys, "stdin", stdin or Terminal())
        places = ("--on", "--browser", "--browser-url")
        where = () if any(word in places for word in words) else ("--on", "numpy")
        return run("chat", model, "--engine", "webgpu", *where, *words, capsys=self._capsys)


@pytest.fixture
def chat(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Chat:
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(tmp_path / "caches"))
    return Chat(monkeypatch, capsys)


@pytest.fixture
def adapter() -> str:
    """An adapter of Vulkan, Metal or D3D12; skips where there is none."""
    pytest.importorskip("wgpu", reason="wgpu isn't installed")
    from inferometer.engines.webgpu.run.adapters import find_adapter
    from inferometer.errors import Unavailable

    try:
        return str(find_adapter().info["device"])
    except Unavailable as error:
        pytest.skip(f"no adapter: {error}")


def test_text_goes_to_stdout_and_all_else_to_stderr(chat: Chat) -> None:
    code, out, err = chat("--prompt", "Hello", "--new-tokens", 6)
    assert code == 0, err
    assert out.endswith("\n")
    for line in (
        "Model ",
        "random weights, seed 0",
        "Kernel path",
        "TTFT ",
        "Decode ",
        "Of submits",
        "NumPy",
        "lm_head",
    ):
        assert line in err
    assert "positions" in err


def test_weights_of_four_bits_are_what_lies_on_the_device(chat: Chat) -> None:
    code, out, err = chat("--prompt", "Hello", "--new-tokens", 3, "--weights", "q4", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["dtype"] == "4 bits, in blocks of 32"
    assert 5 / 8 < found["weight_bytes"] / found["parameters"] < 1  # 5 bits, filled up to whole words, norms in float32
    assert list(found["matrix_bytes"]) == ["q4"]
    assert found["parameters"] * 5 / 8 < found["matrix_bytes"]["q4"] < found["weight_bytes"]


def test_keys_and_values_take_half_unless_float32_is_asked_for(chat: Chat) -> None:
    dtypes, sizes = [], []
    for more in ((), ("--kv", "f32")):
        code, out, err = chat("--prompt", "Hello", "--new-tokens", 3, "--json", *more)
        assert code == 0, err
        found = json.loads(out)
        dtypes.append(found["cache_dtype"])
        sizes += [each["needed_bytes"] for each in found["memory"] if each["purpose"] == "kv_cache"]
    assert dtypes == ["float16", "float32"]
    assert sizes[1] == 2 * sizes[0]


def test_json_has_what_every_engine_says_and_what_this_one_can(chat: Chat) -> None:
    code, out, err = chat("--prompt", "Hello", "--new-tokens", 6, "--batch", 2, "--json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert (found["engine"], found["batch"], found["timing"], found["new_tokens"]) == ("webgpu", 2, "single_pass", 6)
    assert found["context"] == found["prompt_tokens"] + 6
    assert found["sampling"]["repetition_penalty"] == 1.0
    assert found["adapter"]["backend"] == "NumPy"
    assert 0 < found["prefill_ns"] <= found["ttft_ns"] < found["total_ns"]
    assert len(found["token_ns"]["each"]) == 5
    assert found["submits"]["count"] == 1 + 3  # the prompt, then two, two and one
    parts = sum(found["submits"][f"{name}_ns"] for name in ("record", "submit", "wait", "read"))
    assert parts == found["submits"]["wall_ns"] == found["prefill_ns"] + sum(found["token_ns"]["each"])
    weights = next(each for each in found["memory"] if each["purpose"] == "weights")
    assert weights["needed_bytes"] == found["weight_bytes"] <= weights["size_bytes"] < found["device_bytes"]
    names = [each["name"] for each in found["load_phases"]]
    assert names[:4] == ["open", "adapter", "tune", "plan"]
    assert sum(each["dur_ns"] for each in found["load_phases"]) <= found["load_ns"]
    read = {each["part"]: each["bytes"] for each in found["reads"]}
    loaded = {each["name"]: each["bytes"] for each in found["load_phases"] if each["bytes"]}
    assert read == loaded
    assert {use["phase"] for use in found["operators"]} == {"prefill", "decode", "head"}
    assert all(each["reason"] for each in found["selections"])
    assert found["plan_differences"] == []
    assert (found["fetched_bytes"], found["cached_bytes"]) == (None, None)
    assert {"ttft_ns", "token_ns", "decode_tokens_per_s"} <= found["definitions"].keys()
    assert {"arm", "kernel_path", "recording", "peak_rss_bytes", "text", "tokens", "error"} <= found.keys()


@pytest.mark.parametrize("model", ["tiny-llama", "tiny-qwen2", "tiny-qwen3", "tiny-gemma3"])
def test_wgpu_answers_what_numpy_answers(model: str, chat: Chat, adapter: str) -> None:
    words = ("--prompt", "Hello", "--new-tokens", 12, "--json")
    found = [json.loads(chat("--on", on, *words, model=model)[1]) for on in ("numpy", adapter)]
    assert found[0]["tokens"] == found[1]["tokens"]
    assert found[0]["text"] == found[1]["text"]
    assert found[1]["adapter"]["name"] == adapter


def test_draws_follow_the_seed(chat: Chat) -> None:
    words = ("--prompt", "Hello", "--new-tokens", 12, "--temperature", 2, "--repetition-penalty", 1.2, "--json")
    answers = [json.loads(chat("--cold", *words)[1])["tokens"] for _ in range(2)]
    assert answers[0] == answers[1]
    assert json.loads(chat(*words)[1])["tokens"] == answers[0]  # a warm-up draws nothing that counts


def test_a_person_asks_line_by_line(chat: Chat) -> None:
    lines = Terminal(b"one\n", b"two\n", b"/reset\n", b"one\n", b"/exit\n")
    code, _, err = chat("--new-tokens", 4, "--context", 128, stdin=lines)
    assert code == 0, err
    assert (err.count("Decode "), err.count("Kernel path")) == (3, 1)
    assert "for 128 positions" in err


def test_a_profile_is_told_and_is_in_the_document(chat: Chat) -> None:
    code, _, err = chat("--prompt", "Hello", "--new-tokens", 3, "--profile")
    assert code == 0, err
    assert "Kernels" in err
    assert "timestamps" in err
    assert "measured here: " in err
    assert "an empty pass takes" in err
    assert [err.count(f"\n{title}\n") for title in ("Load", "Memory of the device", "Memory")] == [1, 1, 0]
    found = json.loads(chat("--prompt", "Hello", "--new-tokens", 3, "--profile", "--json")[1])
    assert found["profile"]["dispatches"] > 0
    assert found["profile"]["untimed"] == 0
    assert found["profile"]["bandwidth_source"].startswith("measured here: ")
    assert found["profile"]["load"]
    assert found["profile"]["memory"]
    assert "rates" in [each["name"] for each in found["load_phases"]]


def test_kernels_are_measured_when_asked_and_known_otherwise(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    def saying(word: str) -> Any:
        return lambda path, checkpoint, runner, said: lambda key, candidates: (candidates[0], word)

    for word in ("known", "measured"):
        monkeypatch.setattr(f"inferometer.engines.webgpu.tune.choices.{word}_choices", saying(word))
    words = ("--prompt", "Hello", "--new-tokens", 1, "--cold", "--json")
    for more, wanted in (((), {"tuned: known"}), (("--tune",), {"tuned: measured"}), (("--no-tune",), set())):
        found = json.loads(chat(*more, *words)[1])
        assert {each["reason"] for each in found["selections"] if each["reason"].startswith("tuned")} == wanted


def test_what_profiling_costs_is_measured_in_every_form(chat: Chat) -> None:
    found = json.loads(chat("--prompt", "Hello", "--new-tokens", 3, "--cold", "--overhead", "--json")[1])
    forms = {each["timing"]: each for each in found["overhead"]["forms"]}
    assert forms.keys() == {"single_pass", "pass_per_dispatch", "timestamps"}
    assert forms["single_pass"]["ratio"] == 1
    assert found["overhead"]["same_tokens"]
    code, _, err = chat("--prompt", "Hello", "--new-tokens", 3, "--cold", "--overhead")
    assert (code, "What profiling costs" in err) == (0, True)


def test_a_recording_is_a_store_that_other_commands_read(
    chat: Chat, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = tmp_path / "run.ifm"
    code, _, err = chat("--prompt", "Hello", "--new-tokens", 6, "--record", store)
    assert code == 0, err
    assert f"written: {store}" in err
    for words in (("kernels",), ("steps",), ("summary",)):
        code, out, err = run(*words, store, capsys=capsys)
        assert code == 0, err
        assert out
    with inferometer.open(str(store)) as trace:
        assert trace.steps.collect()["phase"].to_list() == ["prefill", "decode", "decode"]
        assert abs(time.time_ns() - (trace.facts.clock_base_ns or 0)) < 600e9
        assert trace.facts.engine_metrics["adapter_rates"]["empty_pass_ns"] > 0
    code, _, err = chat("--prompt", "Hello", "--record", store)
    assert (code, "already exists" in err) == (3, True)


def test_a_log_of_the_seeds_form_is_read_back(
    chat: Chat, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, out, err = chat("--prompt", "Hello", "--new-tokens", 6, "--log", "engine")
    assert code == 0, err
    log = tmp_path / "run.log"
    log.write_text(out, "utf-8")
    code, out, err = run("summary", log, capsys=capsys)
    assert (code, "tiny-llama" in out) == (0, True), err
    with inferometer.open(str(log)) as trace:
        assert trace.steps.collect()["phase"].to_list() == ["prefill", "decode", "decode"]
        assert all(busy > 0 for busy in trace.steps.collect()["gpu_busy_ns"].to_list())
        assert trace.selections.collect().height > 5
        assert trace.losses.total() == 0


def test_ctrl_c_leaves_what_there_is(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    from inferometer.engines.webgpu.run.numpy_executor import NumpyExecutor

    submit, count = NumpyExecutor.submit, [0]

    def interrupted(self: Any, passes: Any, timing: Any) -> Any:
        count[0] += 1
        if count[0] == 3:
            raise KeyboardInterrupt
        return submit(self, passes, timing)

    monkeypatch.setattr(NumpyExecutor, "submit", interrupted)
    code, out, _ = chat("--prompt", "Hello", "--new-tokens", 20, "--cold", "--json")
    found = json.loads(out)
    assert (code, found["ended"], found["new_tokens"]) == (130, "interrupted", 5)


def test_a_lost_device_leaves_what_there_is(chat: Chat, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from inferometer.engines.webgpu.run.executor import DeviceLost
    from inferometer.engines.webgpu.run.numpy_executor import NumpyExecutor

    submit, count = NumpyExecutor.submit, [0]

    def lost(self: Any, passes: Any, timing: Any) -> Any:
        count[0] += 1
        if count[0] == 3:
            raise DeviceLost("planted: the device is gone")
        return submit(self, passes, timing)

    monkeypatch.setattr("inferometer.engines.webgpu.load.measure_rates", lambda executor: None)
    monkeypatch.setattr(NumpyExecutor, "submit", lost)
    store = tmp_path / "run.ifm"
    code, _, err = chat("--prompt", "Hello", "--new-tokens", 20, "--cold", "--record", store, "--profile")
    assert (code, "5 new: failed" in err, "error: planted: the device is gone" in err) == (4, True, True)
    with inferometer.open(str(store)) as trace:
        assert trace.steps.collect()["phase"].to_list() == ["prefill", "decode"]
        assert "The run failed: planted: the device is gone" in trace.facts.notes
        assert trace.facts.engine_metrics["result"] == "failed"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--prompt", "x", "--dtype", "bfloat16"), 2, "--dtype is of --engine hf"),
        (("--prompt", "x", "--backend", "torch"), 2, "--backend is of --engine hf"),
        (("--prompt", "x", "--on", "cuda:0"), 2, "--on cuda:0 is a device of --engine hf"),
        (("--prompt", "x", "--on", "cpu"), 2, "--on cpu is a device of --engine hf"),
        (("--prompt", "x", "--on", "numpy", "--browser"), 2, "--on and --browser are mutually exclusive"),
        (("--prompt", "x", "--browser-url", "--browser"), 2, "are mutually exclusive: it runs in one place"),
        (("--prompt", "x", "--no-browser-cache"), 2, "--no-browser-cache is of --browser"),
        (("--prompt", "x", "--browser-cache", "{there}"), 2, "--browser-cache is of --browser"),
        (
            ("--prompt", "x", "--browser", "--browser-cache", "{there}", "--no-browser-cache"),
            2,
            "are mutually exclusive",
        ),
        (("--prompt", "x", "--tune", "--browser"), 2, "--tune measures on an adapter of wgpu"),
        (("--prompt", "x", "--log", "engine", "--json"), 2, "--log and --json are mutually exclusive"),
        (("--prompt", "x", "--weights", "q4", "--tune"), 2, "--tune measures float16 weights"),
        (("--prompt", "x", "--kv", "f32", "--tune"), 2, "--tune measures float16 keys and values"),
        (("--prompt", "x", "--log", "other"), 2, "--log"),
        (("--log", "engine"), 2, "--log needs a --prompt"),
        (("--record", "{there}/run.ifm"), 2, "--record needs a --prompt"),
        (("--overhead",), 2, "--overhead needs a --prompt"),
        (("--prompt", "x", "--batch", "0"), 2, "--batch"),
        (("--prompt", "x", "--context", "1"), 2, "--context"),
        (("--prompt", "x", "--repetition-penalty", "0"), 2, "--repetition-penalty"),
        (("--prompt", "x", "--top-k", "5"), 3, "Give a temperature"),
        (("--prompt", ""), 3, "--prompt: the prompt is empty"),
        (("--prompt", "x", "--record", "{there}"), 3, "already exists"),
        (("--prompt", "x" * 50, "--context", "20"), 3, "tiny-llama has 20 positions, and one at least"),
        (("--prompt", "x", "--context", "1000000"), 3, "context: expected at most the"),
        (("--prompt", "x", "--kernel-path", "{there}/none.toml"), 3, "none.toml"),
    ],
)
def test_wrong_calls_say_what_was_wrong(
    words: tuple[str, ...], code: int, said: str, chat: Chat, tmp_path: Path
) -> None:
    found, out, err = chat(*(word.format(there=tmp_path) for word in words))
    assert (found, out) == (code, ""), err
    assert said in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--batch", 2), "--batch is of --engine webgpu"),
        (("--profile",), "--profile is of --engine webgpu"),
        (("--browser",), "--browser is of --engine webgpu"),
        (("--context", 64), "--context is of --engine webgpu"),
        (("--repetition-penalty", 1.0), "--repetition-penalty is of --engine webgpu"),
    ],
)
def test_options_of_this_engine_are_refused_with_the_other(
    words: tuple[object, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run("chat", "tiny-llama", "--prompt", "x", *words, capsys=capsys)
    assert (code, out, said in err) == (2, "", True)


@pytest.mark.parametrize(
    ("model", "said"),
    [("nonsense", 'unknown model "nonsense"'), ("DeepSeek-V3", 'unknown architecture (model_type) "deepseek_v3"')],
)
def test_a_model_that_it_cant_run_is_said(model: str, said: str, chat: Chat) -> None:
    code, out, err = chat("--prompt", "x", model=model)
    assert (code, out) == (3, "")
    assert said in err


def test_an_adapter_that_isnt_there_is_said(chat: Chat) -> None:
    code, out, err = chat("--prompt", "x", "--on", "no such adapter")
    assert (code, out) == (4, "")
    assert ("wgpu" if find_spec("wgpu") is None else "found") in err


def test_without_a_browser_it_says_how_to_get_one(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda *words, **more: None)
    code, out, err = chat("--prompt", "x", "--browser")
    assert (code, out) == (4, "")
    assert "hromium" in err


@pytest.mark.skipif(not any(map(shutil.which, NAMES)), reason="no Chromium is installed")
def test_a_browser_answers_what_numpy_answers(chat: Chat, tmp_path: Path) -> None:
    words = ("--prompt", "Hello", "--new-tokens", 6, "--cold", "--json")
    there = json.loads(chat(*words)[1])
    for fetches in (True, False):
        code, out, err = chat("--browser", "--browser-cache", tmp_path, *words)
        assert code == 0, err
        found = json.loads(out)
        assert (found["tokens"], found["text"]) == (there["tokens"], there["text"])
        assert (found["fetched_bytes"] > 0, found["cached_bytes"] > 0) == (fetches, not fetches)
        assert "[browser:" in err


@pytest.mark.parametrize(
    ("words", "kept"),
    [((), "{home}/inferometer/webgpu-browser"), (("--browser-cache", "{home}/own"), "{home}/own"),
     (("--no-browser-cache",), None)],
)  # fmt: skip
def test_a_browser_keeps_weights_in_the_users_caches_unless_told_otherwise(
    words: tuple[str, ...], kept: str | None, chat: Chat, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home, asked = tmp_path / "caches", []

    def load(model: str, options: LoadOptions, **more: Any) -> None:
        asked.append(options.browser_cache)
        raise Unavailable("planted")

    monkeypatch.setattr("inferometer.engines.webgpu.load.load_webgpu", load)
    code, _, err = chat("--prompt", "x", "--browser", *(word.format(home=home) for word in words))
    assert (code, "planted" in err) == (4, True)
    assert asked == [None if kept is None else Path(kept.format(home=home))]


@pytest.mark.parametrize("model", ["tiny-llama", "tiny-gemma3", "tiny-qwen3"])
def test_every_part_of_the_model_is_some_kernels(
    model: str, chat: Chat, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, config = tmp_path / "run.ifm", tmp_path / "config.json"
    config.write_text(json.dumps(dict(require_config(model).config)), "utf-8")
    assert chat("--prompt", "Hello", "--new-tokens", 6, "--record", store, model=model)[0] == 0
    code, out, err = run("kernels", store, "--model-config", config, "--json", capsys=capsys)
    assert code == 0, err
    found = json.loads(out)
    assert found["unclaimed"] == {"prefill": [], "decode": []}
    roles = {row["kernel"]: row["roles"] for row in found["rows"] if row["phase"] == "decode"}
    assert [name for name, of in roles.items() if not of] == [name for name in roles if name in _DONE_BEFORE]
    norms = [row["flops"] for row in found["rows"] if row["phase"] == "decode" and row["roles"] == ["input_norm"]]
    assert len(norms) == 1


_DONE_BEFORE = ("attention_merge", "sample")  # the second halves of attention and argmax


def test_the_log_of_a_run_and_its_recording_are_the_same_run(
    chat: Chat, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, log = tmp_path / "run.ifm", tmp_path / "run.log"
    code, out, err = chat("--prompt", "Hello", "--new-tokens", 26, "--record", store, "--log", "engine")
    assert code == 0, err
    log.write_text(out, "utf-8")
    for first, second in ((log, store), (store, log)):
        found = json.loads(run("compare", first, second, "--json", capsys=capsys)[1])
        few = "too few samples"  # how many submits there are follows the speed of the machine
        assert found["verdict"] in ("no difference", few), found["why"]
        assert abs(found["base_step_ns"] - found["candidate_step_ns"]) < 1e-3 * found["base_step_ns"]
        assert {line["kind"] for line in found["contributions"]} == {"same"}


def test_other_commands_speak_of_submits(chat: Chat, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = tmp_path / "run.ifm"
    assert chat("--prompt", "Hello", "--new-tokens", 14, "--record", store)[0] == 0
    said = {}
    for command in ("groups", "timeline", "summary", "findings"):
        code, out, err = run(command, store, capsys=capsys)
        assert code == 0, err
        said[command] = out
        assert "torch" not in out.lower()
        assert "nsys" not in out
        assert "graph replay" not in out
    assert "handed over in lists, by queue.submit" in said["groups"]


def test_it_runs_without_torch(chat: Chat, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("torch", "transformers", "triton"):
        monkeypatch.setitem(sys.modules, name, None)  # importing it raises
    code, out, err = chat("--prompt", "Hello", "--new-tokens", 3, "--temperature", 1)
    assert code == 0, err
    assert out.endswith("\n")
