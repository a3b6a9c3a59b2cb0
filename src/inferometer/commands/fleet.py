"""`inferometer fleet`: questions about all traces of a fleet."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from inferometer.commands.base import FORMATS, Output, asked_theme, command, output_options
from inferometer.commands.options.pages import (
    STDOUT,
    check_output,
    choose_place,
    describe_page,
    say_page,
    warn_left_out,
    write_page,
)
from inferometer.commands.options.selection import Number, match_option, top_option

if TYPE_CHECKING:
    from inferometer.analyses.result import Result
    from inferometer.fleet.opening import Fleet

_TIMES = ("kernels", "families", "operators", "shapes", "classes")
_QUESTIONS = ("overview", "models", *_TIMES, "outliers", "changes", "importance", "savings")
_GROUPS = ("model", "gpu", "engine", "version", "deployment", "date", "format")
_GROUPED = ("overview", *_TIMES)
_WEIGHED = ("importance", "savings")
_TOP = 20  # rows of importance and savings
_FEW = 5  # shapes of an operator that stand for all
_FASTER_PERCENT = 20.0


@command(
    "fleet",
    group="Fleet",
    help="Ask all traces of a fleet, which `inferometer mine` made.\n\n"
    "QUESTION is overview (the default: GPU-hours held, launch-bound time, distance to the bound); models, inferred "
    "from the shapes of products; kernels, families, operators, shapes or classes (of kernels, by phase): which of "
    "them take the time; outliers among like traces; changes of the step between an engine's versions; importance of "
    "operators with their shapes; or savings: what each kernel would save if it were faster.\n\n"
    "Without QUESTION, -o writes one page with all of them, and filters by model, GPU, engine, version, phase and date "
    "that need no server.",
    example="inferometer fleet fleet.ifm --by model\n"
    "  inferometer fleet fleet.ifm -o fleet.html\n"
    "  inferometer fleet fleet.ifm kernels --by gpu --top 5\n"
    "  inferometer fleet fleet.ifm importance --cluster deployment",
)
@click.argument("place", metavar="FLEET")
@click.argument("question", metavar="[QUESTION]", type=click.Choice(_QUESTIONS), default="overview")
@click.option("--by", type=click.Choice(_GROUPS), help="Group traces by it.")
@click.option("--only", multiple=True, metavar="NAME=VALUE", help=(
    "Only traces with this model, gpu, engine, version, deployment, date or format; may be given again."))  # fmt: skip
@top_option("rows, of each group; of importance and savings 20 by default")
@match_option("rows")
@click.option("--weigh", type=click.Choice(("time", "gpu-hours")), help="What orders importance.  [default: time]")
@click.option("--cluster", type=click.Choice(_GROUPS), help=(
    "Intervals take traces with the same of it as one sample.  [default: each trace is one]"))  # fmt: skip
@click.option("--faster", type=Number(min=0.1, max=10_000), metavar="PERCENT", help=(
    "How much faster a kernel of savings is.  [default: 20]"))  # fmt: skip
@click.option("-o", "--output", metavar="OUT", help=(
    "Write a page: OUT.html, of at most 8 MB, or OUT.md for a comment. With importance, OUT.jsonl: a few shapes that "
    "stand for all, for `bench --shapes OUT.jsonl`."))  # fmt: skip
@click.option("--representatives", type=click.IntRange(1, 100), metavar="N", help=(
    "With --output: so many shapes of an operator at most.  [default: 5]"))  # fmt: skip
@click.option("--force", is_flag=True, help="Replace OUT if it is there.")
@output_options(*FORMATS)
def run(
    place: str,
    only: tuple[str, ...],
    output: str | None,
    representatives: int | None,
    force: bool,
    out: Output,
    **options: Any,
) -> None:
    asked = _Asked(**options)
    _refuse_mixed(asked, output, representatives)
    writes_page = output is not None and asked.question == "overview"
    if output is not None:
        _check_output(output, is_page=writes_page, by=asked.by, force=force, out=out)
    from inferometer.fleet.opening import open_fleet

    fleet = open_fleet(place, dict(map(_pair, only)))
    if output is not None and writes_page:
        _write_page(fleet, output, only, force=force, out=out)
        return
    if output is not None:
        _write_shapes(fleet, Path(output), most=representatives or _FEW, weigh=asked.weigh, force=force)
    out.show(_answer(fleet, asked))


class _Asked(msgspec.Struct, frozen=True):
    """A question with its options; None is an option that wasn't given."""

    question: str
    by: str | None
    top: int | None
    match: str | None
    weigh: Any
    cluster: str | None
    faster: float | None


def _answer(fleet: "Fleet", asked: _Asked) -> "Result":
    """Each question imports its own: some need SciPy, which takes longer than a quick answer."""
    if asked.question == "overview":
        from inferometer.fleet.questions.overview import fleet_overview

        return fleet_overview(fleet, by=asked.by)
    if asked.question == "models":
        from inferometer.fleet.questions.models import fleet_models

        return fleet_models(fleet)
    if asked.question == "outliers":
        from inferometer.fleet.questions.outliers import fleet_outliers

        return fleet_outliers(fleet)
    if asked.question == "changes":
        from inferometer.fleet.questions.changes import fleet_changes

        return fleet_changes(fleet)
    if asked.question == "importance":
        from inferometer.fleet.questions.importance import fleet_importance

        return fleet_importance(fleet, weighing=asked.weigh or "time", cluster=asked.cluster, top=asked.top or _TOP)
    if asked.question == "savings":
        from inferometer.fleet.questions.savings import fleet_savings

        faster = (asked.faster or _FASTER_PERCENT) / 100
        return fleet_savings(fleet, faster=faster, cluster=asked.cluster, top=asked.top or _TOP)
    from inferometer.fleet.questions.times import fleet_times

    what: Any = asked.question
    return fleet_times(fleet, what, by=asked.by, top=asked.top, match=asked.match)


def _check_output(output: str, *, is_page: bool, by: str | None, force: bool, out: Output) -> None:
    """Refuse what can't be written, before anything is read."""
    from inferometer.bench.exchange.traced_shapes import SHAPE_FILE
    from inferometer.new_files import check_place

    is_of_shapes = Path(output).suffix == ".jsonl"
    if is_page and is_of_shapes:
        raise click.UsageError(f"{output}: shapes are written with importance; a page's name ends in .html or .md.")
    if is_page:
        if by is not None:
            raise click.UsageError("--by can't be used with --output: the page groups traces by each of them.")
        if out.form not in (None, "json"):
            raise click.UsageError(f"--{out.form} can't be used with --output: the page is the answer.")
        check_output(output, choose_place(output, None, stem="fleet")[1], force=force, out=out)
        return
    if not is_of_shapes:
        raise click.UsageError(
            "--output needs a name that ends in .jsonl; a page has all questions: leave importance out."
        )
    check_place(Path(output), force=force, kind=SHAPE_FILE)


def _write_page(fleet: "Fleet", output: str, only: tuple[str, ...], *, force: bool, out: Output) -> None:
    """The page of all questions; its size is shown, or with --json the overview and where the page is."""
    from inferometer.commands.options.progress import working
    from inferometer.fleet.questions.overview import fleet_overview
    from inferometer.reports.fleet.page import build_blocks, render_fleet, render_fleet_text

    form = choose_place(output, None, stem="fleet")[1]
    name = Path(fleet.source).name
    words = [word for each in only for word in ("--only", each)]
    target = output if output == STDOUT else Path(output).name
    again = shlex.join(["inferometer", "fleet", name, "-o", target, *words])
    title = ", ".join([name, *only])
    left_out: tuple[str, ...] = ()
    with working() as say:
        blocks = build_blocks(fleet, on_progress=lambda each: say(f"the question {each}"))
        say("the page")
        if form == "markdown":
            text = render_fleet_text(blocks, title=title, command=again)
        else:
            page = render_fleet(blocks, title=title, command=again, theme=asked_theme())
            text, left_out = page.html, page.left_out
    write_page(output, text, form, force=force)
    if out.form == "json":
        out.show(fleet_overview(fleet), {"page": describe_page(output, form, left_out)})
    elif output != STDOUT:
        say_page(output, out)
    warn_left_out(left_out)


def _write_shapes(fleet: "Fleet", target: Path, *, most: int, weigh: Any, force: bool) -> None:
    """The representatives, and on stderr what they stand for."""
    from inferometer.bench.exchange.traced_shapes import SHAPE_FILE
    from inferometer.errors import clean
    from inferometer.fleet.questions.bootstrap import clusters_of
    from inferometer.fleet.questions.importance import WEIGHT, Weighing, op_parts, weighed
    from inferometer.fleet.representatives import choose_representatives
    from inferometer.fleet.shape_file import encode_representatives
    from inferometer.new_files import NewFile
    from inferometer.units import format_counted, format_share

    weighing: Weighing = weigh or "time"
    rows = weighed(op_parts(fleet, clusters_of(fleet, None)), weighing)
    found = choose_representatives(rows, most=most, weight=WEIGHT[weighing])
    data = encode_representatives(found, fleet.source)
    with NewFile(target, force=force, kind=SHAPE_FILE) as place:
        place.write_bytes(data)
    click.echo(
        f"written: {clean(str(target))}: {format_share(sum(each.weight for each in found))} of the fleet", err=True
    )
    for each in found:
        kept = f"{len(each.representatives):,} of {format_counted(each.shapes, 'shape')}"
        stands = f"for {format_share(each.weight)} of the fleet, {format_share(each.error)} of its time misjudged"
        click.echo(f"{each.operator}: {kept}, {stands}", err=True)


def _refuse_mixed(asked: _Asked, output: str | None, representatives: int | None) -> None:
    """Refuse options that the question hasn't."""
    options = (  # what was given, and the questions that have it
        ("--by", asked.by, _GROUPED),
        ("--match", asked.match, _TIMES),
        ("--weigh", asked.weigh, ("importance",)),
        ("--cluster", asked.cluster, _WEIGHED),
        ("--faster", asked.faster, ("savings",)),
        ("--top", asked.top, (*_TIMES, *_WEIGHED)),
        ("--output", output, ("overview", "importance")),
        ("--representatives", representatives, ("importance",)),
    )
    for option, value, questions in options:
        if value is not None and asked.question not in questions:
            raise click.UsageError(f"{option} is for {', '.join(questions)}, not for {asked.question}.")
    if output is None and representatives is not None:
        raise click.UsageError("--representatives needs --output.")


def _pair(word: str) -> tuple[str, str]:
    name, sign, value = word.partition("=")
    if not sign or name not in _GROUPS:
        raise click.UsageError(f"--only: expected NAME=VALUE with a NAME of {', '.join(_GROUPS)}, found {word!r}.")
    return name, value
