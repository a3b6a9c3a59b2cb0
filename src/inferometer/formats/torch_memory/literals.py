"""Reads a pickle of plain values without Python's `pickle`: no class is looked up, nothing is called.

Source: the opcodes that CPython's `pickle` of protocols 2 to 5 writes for None, booleans, numbers, text, lists, tuples
and dicts (`Lib/pickletools.py` documents each). Any other opcode is refused, so a file can't make anything but these.
It can't take the machine either: a length is compared with the bytes that are left, the memo is a dict (its largest
index costs nothing), and marks nest to a limit. What a file repeats by reference is one object, however often.
"""

import struct
from collections.abc import Callable
from pickletools import opcodes
from typing import Any, Final

from inferometer.errors import FormatError

_DEEPEST: Final = 1_000
_HINT: Final = "A snapshot holds plain values only. Don't load this file with Python: it may run any code."
_MARK: Final = object()
_KEYS: Final = frozenset({str, int, float, bool, type(None)})
_UINT8, _UINT16, _UINT32, _UINT64, _INT32, _DOUBLE = map(struct.Struct, ("B", "<H", "<I", "<Q", "<i", ">d"))


def read_literals(data: bytes, name: str) -> Any:
    """The value that the pickle holds.

    Raises:
        FormatError: It holds anything but plain values, ends early, or is damaged; the message has the place.
    """
    return _Machine(data, name).run()


class _Machine:
    def __init__(self, data: bytes, name: str) -> None:
        self._data = data
        self._name = name
        self._at = 0
        self._stack: list[Any] = []
        self._marks: list[int] = []
        self._memo: dict[int, Any] = {}
        self._done = False
        self._found: Any = None

    def run(self) -> Any:
        """Take opcodes until STOP."""
        where = 0
        try:
            while not self._done:
                where = self._at
                code = self._take(1)[0]
                step = _STEPS.get(code)
                if step is None:
                    raise self._error(where, f"expected an opcode of plain values, found {_name_of(code)}")
                step(self)
        except (IndexError, KeyError, TypeError, ValueError) as error:
            raise self._error(where, f"expected values for this opcode, found none that fit ({error})") from error
        return self._found

    def _error(self, at: int, words: str) -> FormatError:
        return FormatError(f"{self._name}: byte {at:,}: {words}", hint=_HINT)

    def _take(self, size: int) -> bytes:
        end = self._at + size
        if end > len(self._data):
            left = len(self._data) - self._at
            raise self._error(self._at, f"expected {size:,} bytes more, found {left:,}: the file was cut")
        found = self._data[self._at : end]
        self._at = end
        return found

    def _pop(self) -> Any:
        value = self._stack.pop()
        if value is _MARK:
            raise TypeError("a mark is no value")
        return value

    def _number(self, form: struct.Struct) -> Any:
        return form.unpack(self._take(form.size))[0]

    def mark(self) -> None:
        """Begin the items of a container."""
        if len(self._marks) >= _DEEPEST:
            raise self._error(self._at, f"expected at most {_DEEPEST:,} containers in each other, found more")
        self._marks.append(len(self._stack))
        self._stack.append(_MARK)

    def items(self) -> list[Any]:
        """What stands above the last mark, which goes."""
        start = self._marks.pop()
        found = self._stack[start + 1 :]
        if start >= len(self._stack) or self._stack[start] is not _MARK:
            raise TypeError("the mark is gone")
        del self._stack[start:]
        return found

    def push(self, value: Any) -> None:
        """A value onto the stack."""
        self._stack.append(value)

    def text(self, length: struct.Struct) -> None:
        """UTF-8, whose length comes before it."""
        self.push(self._take(self._number(length)).decode("utf-8", "surrogatepass"))

    def number(self, form: struct.Struct) -> None:
        """A number of fixed size."""
        self.push(self._number(form))

    def long(self) -> None:
        """A whole number of up to 255 bytes."""
        self.push(int.from_bytes(self._take(self._number(_UINT8)), "little", signed=True))

    def skip(self, size: int) -> None:
        """What says something about the pickle, not about its value."""
        self._take(size)

    def put(self, form: struct.Struct) -> None:
        """Remember the last value under a number."""
        self._remember(self._number(form))

    def memoize(self) -> None:
        """Remember the last value under the next number."""
        self._remember(len(self._memo))

    def get(self, form: struct.Struct) -> None:
        """A value that was remembered."""
        self.push(self._memo[self._number(form)])

    def _remember(self, index: int) -> None:
        value = self._pop()
        self.push(value)
        self._memo[index] = value

    def last(self, count: int) -> list[Any]:
        """The last values, which go."""
        return [self._pop() for _ in range(count)][::-1]

    def append(self, values: list[Any]) -> None:
        """Onto the list below."""
        target = self._stack[-1]
        if type(target) is not list:
            raise TypeError(f"{type(target).__name__} in place of a list")
        target += values

    def set_items(self, values: list[Any]) -> None:
        """Into the dict below: key, value, key, value."""
        target = self._stack[-1]
        if type(target) is not dict or len(values) % 2:
            raise TypeError(f"{type(target).__name__} and {len(values)} values in place of a dict and pairs")
        if not all(type(key) in _KEYS for key in values[::2]):  # of a tuple of tuples, a hash takes forever
            raise TypeError("a key that is neither text nor number")
        target.update(zip(values[::2], values[1::2], strict=True))

    def stop(self) -> None:
        """The end: the last value is all of it."""
        self._found = self._pop()
        self._done = True


def _name_of(code: int) -> str:
    return next((each.name for each in opcodes if ord(each.code) == code), f"byte 0x{code:02x}")


_STEPS: Final[dict[int, Callable[[_Machine], None]]] = {
    0x80: lambda machine: machine.skip(1),  # PROTO
    0x95: lambda machine: machine.skip(8),  # FRAME
    ord("("): _Machine.mark,
    ord("}"): lambda machine: machine.push({}),
    ord("]"): lambda machine: machine.push([]),
    ord(")"): lambda machine: machine.push(()),
    ord("s"): lambda machine: machine.set_items(machine.last(2)),
    ord("u"): lambda machine: machine.set_items(machine.items()),
    ord("a"): lambda machine: machine.append(machine.last(1)),
    ord("e"): lambda machine: machine.append(machine.items()),
    ord("t"): lambda machine: machine.push(tuple(machine.items())),
    0x85: lambda machine: machine.push(tuple(machine.last(1))),
    0x86: lambda machine: machine.push(tuple(machine.last(2))),
    0x87: lambda machine: machine.push(tuple(machine.last(3))),
    0x8C: lambda machine: machine.text(_UINT8),  # SHORT_BINUNICODE
    ord("X"): lambda machine: machine.text(_UINT32),
    0x8D: lambda machine: machine.text(_UINT64),
    ord("J"): lambda machine: machine.number(_INT32),
    ord("K"): lambda machine: machine.number(_UINT8),
    ord("M"): lambda machine: machine.number(_UINT16),
    0x8A: _Machine.long,  # LONG1
    ord("G"): lambda machine: machine.number(_DOUBLE),
    0x88: lambda machine: machine.push(True),
    0x89: lambda machine: machine.push(False),
    ord("N"): lambda machine: machine.push(None),
    ord("q"): lambda machine: machine.put(_UINT8),
    ord("r"): lambda machine: machine.put(_UINT32),
    0x94: _Machine.memoize,
    ord("h"): lambda machine: machine.get(_UINT8),
    ord("j"): lambda machine: machine.get(_UINT32),
    ord("."): _Machine.stop,
}
"""By the byte that stands for it."""
