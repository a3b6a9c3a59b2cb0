"""What a watch has learned, in a file next to its store, so that one that is killed and started again goes on.

`NAME.ifm.learned` is one JSON document: the normal steps, the evidence, the slowdowns so far. It is replaced as a whole
each ten seconds (less often where it is large), at an alarm and at the end. Alarms that were raised before aren't
raised again.
"""

import math
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from inferometer.errors import InputError
from inferometer.new_files import NewFile, begins_with
from inferometer.side_files import read_side_file
from inferometer.watch.watched import Account, KeptAccount
from inferometer.watch.watcher import KeptLane, Watcher

SUFFIX = ".learned"
EVERY_S = 10.0
"""Between two writes, at least: what a kill may lose."""

_OF_THE_TIME = 500  # a write is followed by so many times the processor time that it took
MARK = "inferometer-watch"
_VERSION = 2
_MOST_BYTES = 512 << 20
_KIND = begins_with("what a watch has learned", b'{"mark":"inferometer-watch"')


class Kept(msgspec.Struct):
    """The document. `source`: what was watched."""

    mark: str
    version: int
    source: str
    lanes: list[KeptLane]
    account: KeptAccount


class Keeper:
    """Keeps what a watch learns in `path`.

    Args:
        path: The file.
        source: What is watched; what was learned of another isn't used.
        monotonic_s: A clock.
    """

    def __init__(self, path: Path, source: str, *, monotonic_s: Callable[[], float] = time.monotonic) -> None:
        self.path, self._source, self._monotonic_s = path, source, monotonic_s
        self._due_s = -math.inf

    def read(self, watcher: Watcher) -> Account | None:
        """Have `watcher` go on; the account so far, None where nothing was kept.

        Raises:
            InputError: What is there can't be read, or is of another source.
        """
        if not self.path.exists():
            return None
        data = read_side_file(self.path, most=_MOST_BYTES)
        try:
            kept = msgspec.json.decode(data, type=Kept)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InputError(f"{self.path}: what was learned can't be read: {error}", hint=_ANEW) from error
        if (kept.mark, kept.version) != (MARK, _VERSION):
            raise InputError(f"{self.path}: expected version {_VERSION}, found another", hint=_ANEW)
        if kept.source != self._source:
            raise InputError(f"{self.path}: was learned of {kept.source}, not of {self._source}", hint=_ANEW)
        try:
            watcher.resume(kept.lanes)
        except (ValueError, ArithmeticError, IndexError) as error:  # steps of times below 1, of unlike work
            raise InputError(f"{self.path}: what was learned makes no sense: {error}", hint=_ANEW) from error
        return Account.of(kept.account)

    def keep(self, watcher: Watcher, account: Account, *, now: bool = False) -> None:
        """Write it where it is due, or `now`.

        Raises:
            InputError: It can't be written.
        """
        if not now and self._monotonic_s() < self._due_s:
            return
        began_s = time.thread_time()
        kept = Kept(MARK, _VERSION, self._source, watcher.kept(), account.kept())
        data = msgspec.json.encode(kept)
        with NewFile(self.path, force=True, kind=_KIND) as place:
            place.write_bytes(data)
        self._due_s = self._monotonic_s() + max(EVERY_S, _OF_THE_TIME * (time.thread_time() - began_s))


_ANEW = "Remove it to learn anew, or give another name with -o."
