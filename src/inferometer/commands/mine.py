"""`inferometer mine`: many traces as one fleet, which `inferometer fleet` answers questions of."""

from textwrap import shorten
from typing import TYPE_CHECKING

import click

from inferometer.commands.base import Output, command, output_options
from inferometer.commands.options.memory import parse_memory
from inferometer.commands.options.selection import Number
from inferometer.reports.schemas.schema import Schema

if TYPE_CHECKING:
    from inferometer.fleet.readers import Readers

SCHEMA = Schema("mine", 1)
_SHOWN = 10
_LONGEST = 90


def _address(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    from inferometer.fleet.on_ray.cluster import check_address

    return None if value is None else check_address(value)


@command(
    "mine",
    group="Fleet",
    help="Digest many traces into a fleet, for `inferometer fleet`.\n\n"
    "PATHS are files of any format, folders, globs, lists of them (@LIST.txt), and URLs (s3://, gs://, hf://, with "
    "the extra `cloud`). Each content is read once, whatever its names. What can't be read is set aside with its "
    "reason. A run that was killed goes on where it ended, and later runs read only what is new.\n\n"
    "--labels takes from each path what the files don't say: a regular expression with groups named model, gpu, "
    "engine, version or deployment.\n\n"
    "--ray reads them on a Ray cluster of which this machine is a node (extra `fleet`): on the one at HOST:PORT, or on "
    "that of this machine. All nodes must see the same paths. The fleet is the same, to the byte.",
    example="inferometer mine profiles/ -o fleet.ifm\n"
    "  inferometer mine profiles/ -o fleet.ifm --labels '(?P<model>[^/]+)/vllm-(?P<version>[^/]+)/[^/]+$'\n"
    "  inferometer mine s3://bucket/profiles -o fleet.ifm --ray",
)
@click.argument("paths", metavar="PATHS...", nargs=-1, required=True)
@click.option("-o", "--output", required=True, metavar="FLEET.ifm", help="The fleet to make, or to add to.")
@click.option("--labels", metavar="REGEX", help="Take labels from the paths.")
@click.option("--workers", type=click.IntRange(1, 1024), metavar="N",
              help="Processes, or tasks of Ray.  [default: one for each core]")  # fmt: skip
@click.option("--memory", metavar="SIZE", callback=parse_memory("Python with its tables"), help=(
    "How much memory a process may fill, such as 4GiB.  [default: 2GiB, or less on a small machine]"))  # fmt: skip
@click.option("--limit", type=Number(min=0.1, max=86_400), default=600.0, show_default=True, metavar="SECONDS",
              help="Processor time that a trace may take.")  # fmt: skip
@click.option("--ray", is_flag=False, flag_value="auto", metavar="[HOST:PORT]", callback=_address,
              help="Read them on a Ray cluster.")  # fmt: skip
@click.option("--retry", is_flag=True, help="Read once more what was set aside.")
@click.option("--no-limits", is_flag=True, help="Accept any expansion of compressed files, and files of any size.")
@click.option("--check", is_flag=True, help="Exit 1 where something was set aside, for CI.")
@output_options("json")
def run(
    paths: tuple[str, ...],
    output: str,
    labels: str | None,
    workers: int | None,
    memory: int | None,
    limit: float,
    ray: str | None,
    retry: bool,
    no_limits: bool,
    check: bool,
    out: Output,
) -> int:
    from inferometer.commands.options.progress import counting
    from inferometer.errors import clean, printable
    from inferometer.fleet.mining import mine
    from inferometer.units import format_counted

    with counting("traces") as say:
        mined = mine(
            paths,
            output,
            readers=_readers(ray, workers, memory, limit, limited=not no_limits),
            labels=labels,
            retry=retry,
            on_progress=lambda at: say(at.done, at.places, at.done_bytes, at.bytes),
        )
    if out.form == "json":
        aside = [{"path": path, "reason": reason} for path, reason in mined.aside]
        data = {"fleet": printable(output), "traces": mined.traces, "paths": mined.paths, "made": mined.made}
        out.write_json(SCHEMA, {**data, "aside": aside})
    else:
        counts = f"{format_counted(mined.traces, 'trace')}, {format_counted(mined.paths, 'path')}"
        out.write(f"{clean(output)}: {counts}, {format_counted(mined.made, 'new digest')}\n")
        for path, reason in mined.aside[:_SHOWN]:
            click.echo(clean(f"set aside: {path}: {shorten(reason, _LONGEST, placeholder=' …')}"), err=True)
        if len(mined.aside) > _SHOWN:
            click.echo(f"and {len(mined.aside) - _SHOWN:,} more; --json has all of them, whole", err=True)
    return 1 if check and mined.aside else 0


def _readers(ray: str | None, workers: int | None, memory: int | None, limit: float, *, limited: bool) -> "Readers":
    from inferometer.fleet.on_ray.workers import RayWorkers
    from inferometer.fleet.workers import USUAL_MEMORY, WorkerLimits, Workers, usual_memory, usual_workers

    if ray is not None:
        return RayWorkers(ray, limits=WorkerLimits(memory or USUAL_MEMORY, limit, limited), count=workers)
    count = workers or usual_workers()
    return Workers(count, WorkerLimits(memory or usual_memory(count), limit, limited))
