"""What every analysis returns: frames and scalars, and how each renderer may lay them out.

A result names its sections once; terminal, Markdown, CSV and HTML all render from them. Numbers stay exact here: only
reports make them pretty.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from inferometer.trace.losses import Losses

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["text", "name", "count", "ns", "share", "bytes", "ratio", "number"]


@dataclass(frozen=True)
class Field:
    """One column of a section.

    `kind` tells renderers its unit: `ns`, `share` (0 to 1), `bytes`; a `ratio` shows four digits, a `name` may be cut.

    Where a terminal is too narrow, columns are left out, those with the highest `spare` first and 0 never.
    """

    column: str
    title: str
    kind: Kind
    spare: int = 0


_DTYPES: Mapping[Kind, Any] = {
    "text": pl.String,
    "name": pl.String,
    "count": pl.Int64,
    "bytes": pl.Int64,
    "ns": pl.Float64,
    "share": pl.Float64,
    "ratio": pl.Float64,
    "number": pl.Float64,
}


def frame_of(rows: Sequence[Mapping[str, Any]], fields: Sequence[Field]) -> pl.DataFrame:
    """Few rows as a frame with a column a field, typed by its kind; what no field names is left out.

    For modelled times, which are parts of a nanosecond, too: `ns` is a float here.
    """
    return pl.DataFrame(rows, schema={field.column: _DTYPES[field.kind] for field in fields})


@dataclass(frozen=True)
class Section:
    """One table with its heading. `notes` are sentences below it."""

    title: str
    fields: Sequence[Field]
    frame: pl.DataFrame
    notes: Sequence[str] = ()


class Result(ABC):
    """Base of all results: `sections()` for reports, `as_json()` for programs, `to_polars()` for notebooks."""

    losses: Losses

    @abstractmethod
    def sections(self) -> Sequence[Section]:
        """The tables of the report, in order."""

    @abstractmethod
    def as_json(self) -> dict[str, Any]:
        """Everything as plain data, stable under `--json`."""

    def facts(self) -> Sequence[tuple[str, str]]:
        """Lines above the tables: a label and what is reported of it."""
        return ()

    def remarks(self) -> Sequence[str]:
        """Sentences for the reader, the most important first."""
        return ()

    def to_polars(self) -> pl.DataFrame:
        """The main table, exact."""
        return self.sections()[0].frame

    def to_pandas(self) -> "pd.DataFrame":
        """The main table as a pandas frame.

        Raises:
            Unavailable: pandas is not installed.
        """
        from importlib.util import find_spec

        from inferometer.errors import Unavailable

        if find_spec("pandas") is None:
            raise Unavailable("pandas is not installed", hint="pip install 'inferometer[notebook]'")
        import pandas as pd

        return pd.DataFrame(self.to_polars().to_dict(as_series=False))

    def _repr_html_(self) -> str:
        import inferometer  # the package's door: reports stand downstream of analyses

        return inferometer.render_html(self)
