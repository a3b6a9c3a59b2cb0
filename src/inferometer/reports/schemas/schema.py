"""The name and version that every JSON document of a command has first."""

from collections.abc import Mapping
from importlib import import_module
from keyword import iskeyword
from typing import Any

import msgspec


class Schema(msgspec.Struct, frozen=True):
    """A kind of document: of a result as its view declares it, of a command without a result as the command does.

    Attributes:
        name: What the document says it is. Stays, whatever becomes of the code.
        version: Rises when a key is removed or renamed, or when its type, unit or meaning changes; not when one is
            added.
    """

    name: str
    version: int

    def document(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """The whole document: which it is, then the data."""
        return {"schema": {"name": self.name, "version": self.version}, **data}

    def declared(self) -> Any:
        """The type of the whole document, as this folder's file of its name declares it.

        Costs some ms: for the reference and for tests, not for commands.
        """
        return import_module(f"{__package__}.{self.name}{'_' if iskeyword(self.name) else ''}").DOCUMENT
