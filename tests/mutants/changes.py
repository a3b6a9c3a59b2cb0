"""Mutants of a module: its source with one small change each, as somebody might mistake it.

Changed are comparisons, arithmetic, `and`, `or`, `not`, conditions, numbers, strings (column names, words, labels),
regular expressions (`patterns`), arguments by name and values of dicts (None in their place), pairs of functions such
as `min` and `max`; left out are calls whose value nobody takes, `raise`, and `+=`. At module level as within functions:
cited constants and grammars stand there. Left alone: docstrings, annotations, decorators and the text of f-strings.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise

from tests.mutants.patterns import changed_patterns

_OPERATORS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"), ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"), ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"), ast.Mod: ("%", "*"), ast.Pow: ("**", "*"), ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"), ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&"), ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}  # fmt: skip
_TWINS = (
    *(("min", "max"), ("any", "all"), ("first", "last"), ("head", "tail"), ("startswith", "endswith")),
    *(("argmin", "argmax"), ("cum_min", "cum_max"), ("ceil", "floor"), ("isnan", "isfinite"), ("mean", "median")),
)
_TWIN = dict((*_TWINS, *((two, one) for one, two in _TWINS)))
_AROUND = 40  # characters of a line on either side of a change
_DECIDED = (ast.Compare, ast.BoolOp, ast.Constant)  # conditions that change by themselves

Change = tuple[int, int, str]  # bytes from, to, and what stands there instead


@dataclass(frozen=True)
class Mutant:
    """A changed module. `before` and `after`: what differs with a few words around it, each side as one line."""

    line: int
    before: str
    after: str
    source: str

    @property
    def change(self) -> str:
        """What tells it from the others of its module, wherever the line moves."""
        return f"{self.before} => {self.after}"


def make_mutants(source: str) -> list[Mutant]:
    """Every mutant of a module's source, in order; those that are no Python are left out."""
    data = source.encode()
    begins = [0, *accumulate(len(line) for line in data.splitlines(keepends=True))]
    tree = ast.parse(source)
    changes = sorted(set(_Finder(data, begins).changes_in(tree)))
    mutants = (_mutant(data, change) for change in changes)
    return [mutant for mutant in mutants if _is_python(mutant.source)]


def _mutant(data: bytes, change: Change) -> Mutant:
    start, end, new = change
    left = data[data.rfind(b"\n", 0, start) + 1 : start].decode()[-_AROUND:]
    right = data[end : (data + b"\n").find(b"\n", end)].decode()[:_AROUND]
    return Mutant(
        line=data.count(b"\n", 0, start) + 1,
        before=_as_one_line(left, data[start:end].decode(), right),
        after=_as_one_line(left, new, right),
        source=(data[:start] + new.encode() + data[end:]).decode(),
    )


def _as_one_line(left: str, changed: str, right: str) -> str:
    return " ".join(f"{left}{changed}{right}".split())


def _is_python(source: str) -> bool:
    try:
        compile(source, "mutant", "exec")
    except (SyntaxError, ValueError):
        return False
    return True


class _Finder:
    """Walks a tree; `_data` is its source, `_begins` where each line begins."""

    def __init__(self, data: bytes, begins: list[int]) -> None:
        self._data, self._begins = data, begins

    def changes_in(self, node: ast.AST) -> Iterator[Change]:
        """Of the node and what is in it."""
        if isinstance(node, ast.JoinedStr) or _is_for_types(node):
            return
        yield from self._changes_of(node)
        for name, value in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_params"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST) and not _is_docstring(child) and child is not self._pattern(node):
                    yield from self.changes_in(child)

    def _changes_of(self, node: ast.AST) -> Iterator[Change]:
        match node:
            case ast.Compare(left=left, ops=ops, comparators=right):
                for (one, two), op in zip(pairwise([left, *right]), ops, strict=True):
                    yield from self._operator(one, op, two)
            case ast.BinOp(left=one, op=op, right=two):
                yield from self._operator(one, op, two)
            case ast.BoolOp(op=op, values=values):
                for one, two in pairwise(values):
                    yield from self._operator(one, op, two)
            case ast.UnaryOp(operand=operand):
                yield self._put(node, f"({self._text(operand)})")
            case ast.Constant(value=value):
                yield from self._constant(node, value)
            case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
                yield from self._condition(test)
            case ast.comprehension(ifs=tests):
                for test in tests:
                    yield from self._condition(test)
            case ast.Call():
                yield from self._call(node)
            case ast.Dict(keys=keys, values=values):
                yield from (
                    self._put(value, "None")
                    for key, value in zip(keys, values, strict=True)
                    if key and not isinstance(value, ast.Constant)
                )
            case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Raise():
                yield self._put(node, "pass")
            case ast.Break():
                yield self._put(node, "continue")
            case ast.Continue():
                yield self._put(node, "break")

    def _operator(self, one: ast.expr, op: ast.AST, two: ast.expr) -> Iterator[Change]:
        if type(op) in _OPERATORS:
            old, new = _OPERATORS[type(op)]
            start, end = self._span(one)[1], self._span(two)[0]
            found = re.search(re.escape(old).replace(r"\ ", r"\s+").encode(), self._data[start:end])
            assert found is not None
            yield start + found.start(), start + found.end(), new

    def _constant(self, node: ast.AST, value: object) -> Iterator[Change]:
        if isinstance(value, bool):
            yield self._put(node, str(not value))
        elif isinstance(value, int):
            yield self._put(node, str(value + 1))
        elif isinstance(value, float):
            yield self._put(node, repr(value * 2 or 1.0))
        elif isinstance(value, str):
            yield self._put(node, repr(value.swapcase() if value.swapcase() != value else f"{value}~"))
        elif isinstance(value, bytes):
            yield self._put(node, repr(value.swapcase() if value.swapcase() != value else value + b"~"))

    def _condition(self, test: ast.expr) -> Iterator[Change]:
        if not isinstance(test, _DECIDED) and not (isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not)):
            yield self._put(test, f"(not ({self._text(test)}))")

    def _call(self, call: ast.Call) -> Iterator[Change]:
        name = getattr(call.func, "attr", getattr(call.func, "id", ""))
        if name in _TWIN:
            end = self._span(call.func)[1]
            yield end - len(name), end, _TWIN[name]
        pattern = self._pattern(call)
        if pattern is not None:
            yield from (self._put(pattern, repr(changed)) for changed in changed_patterns(str(pattern.value)))
        yield from (
            self._put(keyword.value, "None")
            for keyword in call.keywords
            if keyword.arg and not isinstance(keyword.value, ast.Constant)
        )

    def _pattern(self, node: ast.AST) -> ast.Constant | None:
        """The regular expression that a call of `re` is given."""
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re")), args=[ast.Constant(value=str()) as pattern, *_]):
                return pattern
        return None

    def _put(self, node: ast.AST, new: str) -> Change:
        return *self._span(node), new

    def _text(self, node: ast.AST) -> str:
        start, end = self._span(node)
        return self._data[start:end].decode()

    def _span(self, node: ast.AST) -> tuple[int, int]:
        assert isinstance(node, ast.expr | ast.stmt)
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._begins[node.lineno - 1] + node.col_offset, self._begins[node.end_lineno - 1] + node.end_col_offset


def _is_docstring(node: ast.AST) -> bool:
    """A string that nothing takes; of a module, class, function or constant."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_for_types(node: ast.AST) -> bool:
    """What only a type checker reads."""
    match node:
        case ast.If(test=ast.Name(id="TYPE_CHECKING")) | ast.Assert() | ast.Import() | ast.ImportFrom():
            return True
        case ast.Subscript(value=ast.Name(id="Literal" | "Callable" | "NDArray")):
            return True
    return False
