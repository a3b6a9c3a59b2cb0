"""What every analysis returns: frames and scalars. Numbers stay exact here: only reports make them pretty."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import polars as pl

from inferometer.trace.losses import Losses

if TYPE_CHECKING:
    import pandas as pd


class Result(ABC):
    """Base of all results: data for programs. `view` names the module of `reports.views` that shows it to people."""

    view: ClassVar[str]
    losses: Losses

    @abstractmethod
    def as_json(self) -> dict[str, Any]:
        """All data, plain and stable; `inferometer.json_of` adds the sentences that `--json` has."""

    @abstractmethod
    def to_polars(self) -> pl.DataFrame:
        """The main table, exact."""

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
