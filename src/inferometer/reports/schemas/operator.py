"""`operators NAME`: one operator of the catalogue, with every shape and bound."""

from inferometer.reports.schemas.fields import SchemaMark
from inferometer.reports.schemas.operators import OperatorsOnDevice


class Operator(OperatorsOnDevice):
    """One operator on one device: `operators` has it alone."""

    schema: SchemaMark


DOCUMENT = Operator
