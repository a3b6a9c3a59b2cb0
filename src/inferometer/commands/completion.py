"""`inferometer completion`: what a shell needs to complete commands and options."""

import click
from click.shell_completion import get_completion_class

from inferometer.commands.base import Output, command, output_options
from inferometer.reports.schemas.schema import Schema

SCHEMA = Schema("completion", 1)
_VARIABLE = "_INFEROMETER_COMPLETE"  # click's, made of the program's name
_PLACES = {
    "bash": "inferometer completion bash >> ~/.bashrc",
    "zsh": "inferometer completion zsh >> ~/.zshrc",
    "fish": "inferometer completion fish > ~/.config/fish/completions/inferometer.fish",
}


@command(
    "completion",
    group="Tools",
    help="Print the script by which a shell completes commands and options.\n\n"
    + "".join(f"\b\n{shell}: {words}\n" for shell, words in _PLACES.items()),
    example="inferometer completion bash >> ~/.bashrc",
)
@click.argument("shell", type=click.Choice(tuple(_PLACES)))
@output_options("json")
def run(shell: str, out: Output) -> None:
    from inferometer.commands.main import cli

    script = get_completion_class(shell)(cli, {}, "inferometer", _VARIABLE).source()  # type: ignore[misc]
    if out.form == "json":
        out.write_json(SCHEMA, {"shell": shell, "script": script})
    else:
        out.write(script.strip() + "\n")
