"""`completion`: the script of a shell."""

from typing import Annotated

from inferometer.reports.schemas.fields import Document, says


class Completion(Document):
    """What a shell needs to complete commands and options."""

    shell: Annotated[str, says("Which: bash, zsh or fish.")]
    script: Annotated[str, says("To be run by it as it starts.")]


DOCUMENT = Completion
