"""Holds a JSON document against the type that declares it, key by key, and notes which fields it has.

Stricter than decoding: an unknown key counts in every part, also in those of types that pass it over, and a float is
no integer. Shares no code with the package: types are read by `msgspec.inspect`.
"""

from dataclasses import dataclass, field
from typing import Any, Final

from msgspec import inspect

_PLAIN: Final[dict[type, tuple[type, ...]]] = {
    inspect.IntType: (int,),
    inspect.FloatType: (int, float),
    inspect.StrType: (str,),
    inspect.BoolType: (bool,),
    inspect.NoneType: (type(None),),
}


def fields_of(document: type) -> set[str]:
    """All fields of the type and of its parts, as `module.Part.field`."""
    found: set[str] = set()
    _collect(inspect.type_info(document), found)
    return found


def _owned(cls: type, name: str) -> str:
    """The field under the name of the class that declares it: parts of several documents count once."""
    owner = next(each for each in reversed(cls.__mro__) if name in vars(each).get("__annotations__", {}))
    return f"{owner.__module__.rpartition('.')[2]}.{owner.__name__}.{name}"


def _collect(kind: inspect.Type, found: set[str]) -> None:
    match kind:
        case inspect.Metadata(type=inner):
            _collect(inner, found)
        case inspect.UnionType(types=types):
            for each in types:
                _collect(each, found)
        case inspect.StructType(cls=cls, fields=fields):
            names = {_owned(cls, one.name) for one in fields}
            if not names <= found:
                found |= names
                for one in fields:
                    _collect(one.type, found)
        case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item):
            _collect(item, found)
        case inspect.TupleType(item_types=items):
            for each in items:
                _collect(each, found)
        case inspect.DictType(value_type=value):
            _collect(value, found)
        case _:
            pass


@dataclass
class Walk:
    """What was found in documents of one type: `problems`, each with its place, and the fields that were not null."""

    problems: list[str] = field(default_factory=list)
    filled: set[str] = field(default_factory=set)

    def read(self, data: object, document: type) -> None:
        """Hold one document against its type."""
        self._check(data, inspect.type_info(document), "$")

    def _check(self, data: Any, kind: inspect.Type, place: str) -> None:
        match kind:
            case inspect.Metadata(type=inner):
                self._check(data, inner, place)
            case inspect.UnionType(types=types):
                self._check_union(data, types, place)
            case inspect.StructType(cls=cls, fields=fields):
                self._check_struct(data, cls, fields, place)
            case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item):
                for number, each in enumerate(self._as(list, data, place)):
                    self._check(each, item, f"{place}[{number}]")
            case inspect.TupleType(item_types=items):
                values = self._as(list, data, place)
                if len(values) != len(items):
                    self.problems.append(f"{place}: expected {len(items)} values, found {len(values)}")
                for number, (each, item) in enumerate(zip(values, items, strict=False)):
                    self._check(each, item, f"{place}[{number}]")
            case inspect.DictType(value_type=value):
                for key, each in self._as(dict, data, place).items():
                    self._check(each, value, f"{place}.{key}")
            case inspect.LiteralType(values=values):
                if data not in values:
                    self.problems.append(f"{place}: expected one of {values}, found {data!r}")
            case inspect.AnyType():
                pass
            case _:
                if not isinstance(data, _PLAIN[type(kind)]) or isinstance(data, bool) != (
                    type(kind) is inspect.BoolType
                ):
                    self.problems.append(f"{place}: expected {type(kind).__name__}, found {data!r}")

    def _as(self, kind: type, data: Any, place: str) -> Any:
        if isinstance(data, kind):
            return data
        self.problems.append(f"{place}: expected a {kind.__name__}, found {data!r}")
        return kind()

    def _check_union(self, data: object, types: tuple[inspect.Type, ...], place: str) -> None:
        tried: list[list[str]] = []
        for each in types:
            walk = Walk()
            walk._check(data, each, place)
            if not walk.problems:
                self.filled |= walk.filled
                return
            tried.append(walk.problems)
        if data is None:
            self.problems.append(f"{place}: expected a value, found null")
        else:
            longest: list[str] = max(tried, key=len)
            self.problems += longest

    def _check_struct(self, data: Any, cls: type, fields: tuple[inspect.Field, ...], place: str) -> None:
        values = self._as(dict, data, place)
        known = {each.encode_name: each for each in fields}
        self.problems += [f"{place}.{key}: {cls.__name__} has no such field" for key in values.keys() - known.keys()]
        for key, each in known.items():
            if key not in values:
                if each.required:
                    self.problems.append(f"{place}.{key}: {cls.__name__} needs it")
                continue
            if values[key] is not None:
                self.filled.add(_owned(cls, each.name))
            self._check(values[key], each.type, f"{place}.{key}")
