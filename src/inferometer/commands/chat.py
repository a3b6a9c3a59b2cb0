"""`inferometer chat`: a model answers, and each answer's times, memory and kernels are reported."""

from typing import Any

import click
from click.core import ParameterSource

from inferometer.commands.base import Output, command, output_options
from inferometer.commands.options.backends import DecoderBackends
from inferometer.commands.options.chat import find_prompt
from inferometer.commands.options.chat_hf import HfAsked, chat_with_hf
from inferometer.commands.options.chat_webgpu import WebGpuAsked, chat_with_webgpu
from inferometer.commands.options.selection import Number


@command(
    "chat",
    group="Models",
    help="Let a model answer, and tell what the answer took.\n\n"
    "MODEL is a bundled name (tiny-llama, tiny-qwen3, …: random weights, so the text is noise), a folder with "
    "config.json, safetensors and a tokenizer, or a GGUF file; nothing is downloaded. With --prompt, or with a prompt "
    "on standard input, it answers once; else it asks for one line after the other. Text goes to stdout as it comes, "
    "all else to stderr: time to first token, time of each further token, tokens per second, memory, and the backend "
    "or kernel that really ran each operator. A warm-up of the same prompt comes first and isn't counted.\n\n"
    "The engine hf is transformers and torch (extra torch). The engine webgpu is our own, with WGSL kernels on any "
    "GPU, in a browser, or as NumPy (extra webgpu; NumPy with a bundled model needs none).",
    example='inferometer chat tiny-llama --prompt "Hello"\n'
    '  inferometer chat tiny-llama --engine webgpu --on numpy --prompt "Hello"',
)
@click.argument("model")
@click.option("--prompt", metavar="TEXT", help="Answer this once; - reads it from standard input.")
@click.option("--engine", type=click.Choice(("hf", "webgpu")), default="hf", show_default=True,
              help="What runs the model.")  # fmt: skip
@click.option("--on", metavar="DEVICE", help=(
    "Where to run. hf: cpu, cuda, cuda:1. webgpu: numpy, or a part of an adapter's name.  "
    "[default: cpu; webgpu: the best adapter]"))  # fmt: skip
@click.option("--new-tokens", type=click.IntRange(1, 100_000), default=64, show_default=True, metavar="N",
              help="Tokens of an answer, at most.")  # fmt: skip
@click.option("--temperature", type=Number(0, 100), default=0.0, show_default=True,
              help="0: always the most probable token.")  # fmt: skip
@click.option("--top-k", type=click.IntRange(0), default=0, metavar="K", help="Draw from the K most probable only.")
@click.option("--top-p", type=Number(0, 1, min_open=True), default=1.0, metavar="P",
              help="Draw from the fewest whose probabilities reach P.")  # fmt: skip
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True,
              help="Of random weights and draws.")  # fmt: skip
@click.option("--stop-at-eos/--no-stop-at-eos", default=True, show_default=True,
              help="Whether the model may end its answer.")  # fmt: skip
@click.option("--chat-template/--no-chat-template", default=True, show_default=True,
              help="Put the prompt as the model was trained to read it, or continue it as it is.")  # fmt: skip
@click.option("--cold", is_flag=True, help="No warm-up: the first answer includes what is made at a first use.")
@click.option("--record", "recording", metavar="OUT.ifm", help="Keep a recording of the answers for other commands.")
@click.option("--force", is_flag=True, help="Replace OUT.ifm.")
@click.option("--backend", "backends", metavar="CHOICE", multiple=True, cls=DecoderBackends, help=(
    "hf: {backends}, or by operator: rms_norm=triton,attention=compile. Repeatable.  "
    "[default: torch]"))  # fmt: skip
@click.option("--dtype", type=click.Choice(("float32", "bfloat16", "float16")), default="float32", show_default=True,
              help="hf: of weights and activations.")  # fmt: skip
@click.option("--browser", is_flag=True, help="webgpu: run in a headless Chromium.")
@click.option("--browser-url", is_flag=True, help="webgpu: print a URL, and run in the browser that opens it.")
@click.option("--browser-cache", metavar="FOLDER", help=(
    "webgpu: where --browser keeps weights for the next time.  [default: in your folder of caches]"))  # fmt: skip
@click.option("--no-browser-cache", is_flag=True, help="webgpu: --browser keeps nothing.")
@click.option("--batch", type=click.IntRange(1, 1024), default=4, show_default=True, metavar="N",
              help="webgpu: decode steps of one submit.")  # fmt: skip
@click.option("--context", type=click.IntRange(2), metavar="N", help=(
    "webgpu: positions of the KV cache.  [default: what the prompt and --new-tokens need; "
    "asking for lines: the model's, 4096 at most]"))  # fmt: skip
@click.option("--repetition-penalty", type=Number(0, 100, min_open=True), default=1.0, show_default=True, metavar="P",
              help="webgpu: divide the logits of tokens that occurred.")  # fmt: skip
@click.option("--kernel-path", metavar="FILE", help="webgpu: a plan of steps and kernels of your own, in TOML.")
@click.option("--weights", type=click.Choice(("f16", "f32", "q8", "q4")), help=(
    "webgpu: of matrices on the device; q8 and q4: 8 and 4 bits, in blocks of 32 with a scale each.  "
    "[default: f16; of a GGUF file's quantized matrices, what holds them exactly]"))  # fmt: skip
@click.option("--kv", type=click.Choice(("f16", "f32")), default="f16", show_default=True,
              help="webgpu: of keys and values in the KV cache.")  # fmt: skip
@click.option(
    "--tune/--no-tune",
    default=None,
    help=(
        "webgpu: measure now which kernels are the fastest here, and keep it; or don't use what was measured before."
    ),
)
@click.option("--profile", is_flag=True, help="webgpu: time every dispatch, and tell where the device's time went.")
@click.option("--log", type=click.Choice(("engine",)), help=(
    "webgpu: print the profiled run on stdout as a log with a report per submit, for other commands."))  # fmt: skip
@click.option("--overhead", is_flag=True, help=(
    "webgpu: run it again in one pass, in a pass per kernel, and profiled: what profiling costs."))  # fmt: skip
@output_options("json")
def run(model: str, prompt: str | None, engine: str, out: Output, **options: Any) -> int:
    import gc

    gc.enable()  # off in commands, which are short
    asked = _asked(engine, model, options)
    if isinstance(asked, WebGpuAsked):
        asked.check(out)
    text = find_prompt(prompt, out)
    if isinstance(asked, HfAsked):
        return chat_with_hf(asked, text, out)
    return chat_with_webgpu(asked, text, out)


def _asked(engine: str, model: str, options: dict[str, Any]) -> HfAsked | WebGpuAsked:
    """The options of this engine; one of the other's that was given is refused."""
    kind = HfAsked if engine == "hf" else WebGpuAsked
    other = {"hf": "webgpu", "webgpu": "hf"}[engine]
    ctx = click.get_current_context()
    foreign = set(options) - set(kind._fields)
    for param in ctx.command.params:
        if param.name in foreign and ctx.get_parameter_source(param.name) is not ParameterSource.DEFAULT:
            raise click.UsageError(f"{param.opts[0]} is of --engine {other}: it means nothing to {engine}.")
    return kind(model=model, **{name: options[name] for name in kind._fields if name != "model"})
