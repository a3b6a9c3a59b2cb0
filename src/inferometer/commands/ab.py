"""`inferometer ab`: one model with several kernel backends, compared by call path."""

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from inferometer.commands.base import FORMATS, Output, TraceArgument, asked_theme, command, output_options
from inferometer.commands.options.backends import DecoderBackends
from inferometer.commands.options.pages import check_output, choose_place, describe_page, warn_left_out, write_page

if TYPE_CHECKING:
    from inferometer.analyses.ab.comparison import PathComparison
    from inferometer.analyses.ab.measurement import PathMeasurement
    from inferometer.engines.ab.progress import Progress

_INTERRUPTED = 130
_BAD_INPUT = 3
_BASE = "torch"
_PLACES = ("model", "output", "traces")
_AB_TABLE = "ab-table"
_LEAST_ARMS = 2
_SMALL = {"prompt_tokens": 4, "new_tokens": 2, "repetitions": 3}  # of interpreted kernels, for an answer in a minute
_MEASURING = ("model", "backends", "arms", "output", "traces")


@command(
    "ab",
    group="Compare",
    help="Compare kernel backends inside one model, by call path.\n\n"
    "MODEL is a bundled name (tiny-llama, tiny-qwen3, llama_3_1_8b, …: random weights), a folder with config.json, "
    "safetensors and a tokenizer, or a GGUF file; nothing is downloaded. All arms do the same work: the first one's "
    "tokens, one step each, in turns (A B, B A, …) after a warm-up. Prefill and decode stand apart; each path has "
    "its time, its share, the ratio to the first arm with an interval, a verdict that holds for all paths together, "
    "and the error of its operators on the first arm's inputs. Tokens per second come from runs without any "
    "instrument. Needs the extra torch. On a CPU Triton's kernels are interpreted: they show right or wrong, "
    f"not fast or slow, and unless sizes are given, they get {_SMALL['prompt_tokens']} tokens, "
    f"{_SMALL['new_tokens']} new ones and {_SMALL['repetitions']} repetitions.\n\n"
    "--read TABLE looks over a table of this kind that another tool printed: which values stand in a wrong row, which "
    "key is missing, and the table put right.",
    example="inferometer ab tiny-llama --backends torch,triton --prompt-tokens 16 --new-tokens 4",
)
@click.argument("model", metavar="[MODEL]", required=False)
@click.option("--backends", metavar="NAMES", cls=DecoderBackends, help=(
    "Backends, the base first: {backends}.  [default: torch,triton; torch,compile on a CPU]"))  # fmt: skip
@click.option("--arm", "arms", metavar="CHOICE", multiple=True, help=(
    "One more arm, by operator: rms_norm=triton,attention=compile. Repeatable."))  # fmt: skip
@click.option("--prompt-tokens", type=click.IntRange(1, 1_000_000), default=64, show_default=True, metavar="N",
              help="Tokens of the prompt.")  # fmt: skip
@click.option("--new-tokens", type=click.IntRange(1, 100_000), default=16, show_default=True, metavar="N",
              help="Tokens after it, one step each.")  # fmt: skip
@click.option("--batch", type=click.IntRange(1, 4_096), default=1, show_default=True, metavar="N", help="Sequences.")
@click.option("--repetitions", type=click.IntRange(1, 1_000), default=10, show_default=True, metavar="N",
              help="Times that each arm runs it; fewer than 5 tell little.")  # fmt: skip
@click.option("--dtype", type=click.Choice(("float32", "bfloat16", "float16")), default="float32", show_default=True,
              help="Of weights and activations.")  # fmt: skip
@click.option("--on", metavar="DEVICE", default="cpu", show_default=True, help="Where to run: cpu, cuda, cuda:1.")
@click.option("--seed", type=int, default=0, show_default=True, help="Of random weights and the prompt.")
@click.option("--layers", type=click.Choice(("pooled", "apart")), default="pooled", show_default=True,
              help="One row for all layers (layers.*), or each its own.")  # fmt: skip
@click.option("--layout", type=click.Choice(("tree", _AB_TABLE)), default="tree", show_default=True,
              help="ab-table: kernel, kernel_path, seconds a call of two arms, their difference.")  # fmt: skip
@click.option("--traces", metavar="DIR", help=(
    "Keep a recording of each arm there: DIR/ARM.ifm, for every other command."))  # fmt: skip
@click.option("-o", "--output", metavar="OUT", help="A page of it, in .html or .md.")
@click.option("--read", "table", metavar="TABLE", help="Check another tool's table instead; - is stdin.")
@click.option("--force", is_flag=True, help="Replace OUT and recordings in DIR.")
@click.option("--check", is_flag=True, help="Exit with 1 where a path is slower beyond noise, or wrong, for CI.")
@output_options(*FORMATS)
def run(
    model: str | None, table: str | None, layout: str, layers: str, output: str | None, traces: str | None, *,
    force: bool, check: bool, out: Output, **options: Any,
) -> int:  # fmt: skip
    if layout == _AB_TABLE and out.form:
        raise click.UsageError(f"--layout {_AB_TABLE} and --{out.form} are mutually exclusive.")
    if table is not None:
        given = {"model": model, "output": output, "traces": traces, **options}
        _refuse_measuring(given)
        return _review(table, check=check, out=out)
    if model is None:
        raise click.UsageError("name a MODEL to run, such as tiny-llama, or a table to check with --read.")
    page = None if output is None else choose_place(output, None, stem="ab")
    if page is not None:
        check_output(*page, force=force, out=out)
    measured = _measure(_Asked(model=model, **options), None if traces is None else Path(traces), force=force)
    from inferometer.analyses.ab.comparison import compare_paths

    found = compare_paths(measured, pool_layers=layers == "pooled")
    left_out: tuple[str, ...] = ()
    if page is not None:
        left_out = _write(found, page, force=force)
    _show(found, layout, page, left_out, out)
    if measured.ended is not None:
        click.echo(f"ended early: {measured.ended}", err=True)
        return _INTERRUPTED if measured.facts.get("interrupted") else _BAD_INPUT
    return 1 if check and not found.is_good else 0


class _Asked(NamedTuple):
    """What to run."""

    model: str
    backends: str | None
    arms: Sequence[str]
    prompt_tokens: int
    new_tokens: int
    batch: int
    repetitions: int
    dtype: str
    on: str
    seed: int

    def texts(self) -> list[str]:
        """Texts of all arms, the base first."""
        default = _BASE if self.arms else f"{_BASE},{'compile' if self.on == 'cpu' else 'triton'}"
        named = [each.strip() for each in (self.backends or default).split(",")]
        return [*named, *self.arms]


def _refuse_measuring(given: dict[str, Any]) -> None:
    for name in _MEASURING:
        if given[name]:
            shown = "MODEL" if name == "model" else f"--{'arm' if name == 'arms' else name}"
            raise click.UsageError(f"{shown} and --read are mutually exclusive: a table is checked, nothing is run.")


def _measure(asked: _Asked, folder: Path | None, *, force: bool) -> "PathMeasurement":
    from inferometer.commands.options.devices import require_device_at
    from inferometer.commands.options.progress import working
    from inferometer.engines.ab import Plan, measure_ab
    from inferometer.engines.arms import are_interpreted, parse_arm
    from inferometer.engines.hf.model import load_model

    device = require_device_at(asked.on)
    arms = [parse_arm(text, device) for text in asked.texts()]
    if len(arms) < _LEAST_ARMS:
        raise click.UsageError(f"expected two arms or more, found {', '.join(arm.name for arm in arms)}.")
    sizes = {name: getattr(asked, name) for name in _SMALL}
    if are_interpreted(arms, device):
        sizes |= _small_where_not_given()
    plan = Plan(**sizes, batch=asked.batch, seed=asked.seed)
    with working(per_second=0.5) as say:
        say(f"the model {asked.model}")
        engine = load_model(asked.model, device=device, dtype=asked.dtype, seed=asked.seed)
        return measure_ab(engine, arms, plan, stores=folder, force=force, on_progress=lambda now: say(_describe(now)))


def _describe(progress: "Progress") -> str:
    """What runs now and, where that is known, how long all of it still takes."""
    if progress.left_ns is None:
        return str(progress)
    least, most = (f"{ns / 1e9:,.0f}" for ns in progress.left_ns)
    return f"{progress}, about {least if least == most else f'{least} to {most}'} s left"


def _small_where_not_given() -> dict[str, int]:
    """Sizes that interpreted kernels get unless the user gave others; that is said."""
    from click.core import ParameterSource

    source_of = click.get_current_context().get_parameter_source
    small = {name: size for name, size in _SMALL.items() if source_of(name) is ParameterSource.DEFAULT}
    if small:
        sizes = ", ".join(f"--{name.replace('_', '-')} {size}" for name, size in small.items())
        click.echo(f"Triton's kernels are interpreted on a CPU, which takes long: {sizes}.", err=True)
    return small


def _show(found: "PathComparison", layout: str, page: tuple[str, str] | None, left_out: Any, out: Output) -> None:
    if out.form == "json":
        out.show(found, {} if page is None else {"page": describe_page(*page, left_out)})
        return
    if layout == _AB_TABLE:
        from inferometer.reports.ab_table import render_ab_table

        out.write(render_ab_table(found))
    else:
        out.show(found)
    if page is not None:
        warn_left_out(left_out)
        click.echo(f"written: {page[0]}", err=True)


def _write(found: "PathComparison", page: tuple[str, str], *, force: bool) -> tuple[str, ...]:
    from inferometer.analyses.ab.comparison import compare_paths
    from inferometer.reports.path_ab import render_page_of, render_text_of

    place, form = page
    command = _command()
    apart = compare_paths(found.measured, pool_layers=False) if found.is_pooled else None
    if form == "markdown":
        write_page(place, render_text_of(found, apart, command=command), form, force=force)
        return ()
    made = render_page_of(found, apart, command=command, theme=asked_theme())
    write_page(place, made.html, form, force=force)
    return made.left_out


def _command() -> str:
    """What makes the page again, without the folders of this machine: files and folders by their names alone."""
    from click.core import ParameterSource

    context = click.get_current_context()
    words = ["inferometer", "ab"]
    for parameter in context.command.params:
        name = parameter.name or ""
        if context.get_parameter_source(name) is not ParameterSource.COMMANDLINE or name not in context.params:
            continue
        value = context.params[name]
        for each in value if parameter.multiple else (value,):
            text = Path(each).name if name in _PLACES else str(each)
            words += [text] if isinstance(parameter, click.Argument) else [max(parameter.opts, key=len)]
            if isinstance(parameter, click.Option) and not parameter.is_flag:
                words.append(text)
    return shlex.join(words)


def _review(table: str, *, check: bool, out: Output) -> int:
    from inferometer.analyses.path_table.review import review_path_table

    with TraceArgument(table).open(frozenset({"path_totals", "call_paths"})) as trace:
        found = review_path_table(trace)
    out.show(found)
    return 1 if check and (found.found or found.contradicting_rows) else 0
