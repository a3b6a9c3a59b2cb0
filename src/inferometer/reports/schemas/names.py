"""`names decode`: what the names of kernels say."""

from typing import Annotated

from inferometer.reports.schemas.fields import Document, Part, says


class NameEvidence(Part):
    """Where it is known from."""

    rule: Annotated[str, says("The rule.")]
    mark: Annotated[str, says("`D`: documented, or in public source; `V`: verified on recorded data; `I`: inferred.")]


class DecodedName(Part):
    """A name and what it says; null is what it doesn't."""

    name: Annotated[str, says("The name, as given.")]
    library: Annotated[str, says("Where the kernel is from.")]
    family: Annotated[str, says("The kind of work.")]
    dtype: Annotated[str | None, says("The type of the data.")]
    tile_m: Annotated[int | None, says("Rows of the tile.")]
    tile_n: Annotated[int | None, says("Columns of the tile.")]
    tile_k: Annotated[int | None, says("Depth of the tile.")]
    stages: Annotated[int | None, says("Stages of the pipeline.")]
    split_k: Annotated[int | str | None, says("Into how many parts the sum is split, or `yes`.")]
    arch: Annotated[str | None, says("The architecture.")]
    short_name: Annotated[str, says("A short name.")]
    cluster: Annotated[str | None, says("Shape of the cluster of blocks.")]
    layout: Annotated[str | None, says("Layouts of the operands.")]
    instruction: Annotated[str | None, says("Shape of the matrix instruction.")]
    vector: Annotated[int | None, says("Elements of one access.")]
    coop: Annotated[str | None, says("How the warps work together.")]
    head_dim: Annotated[int | None, says("Size of a head.")]
    flags: Annotated[list[str], says("Further marks of the name.")]
    fused: Annotated[list[str], says("What else it does.")]
    layer: Annotated[int | None, says("The layer that a label names.")]
    role: Annotated[str | None, says("The part of the model that a label names.")]
    evidence: NameEvidence


class Names(Document):
    """What the names say, in the order given."""

    names: list[DecodedName]


DOCUMENT = Names
