"""`replay`: the script for one op of a trace."""

from typing import Annotated

from inferometer.reports.schemas.fields import SchemaMark, says
from inferometer.reports.schemas.roofline import ModelledOp


class Replay(ModelledOp):
    """The op, as `roofline` has it, and the script that runs it again."""

    schema: SchemaMark
    output: Annotated[str | None, says("The file that was written; null: none, the script is here.")]
    script: Annotated[str, says("The script. Its text may change.")]


DOCUMENT = Replay
