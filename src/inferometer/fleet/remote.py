"""Traces behind URLs, through fsspec: `s3://`, `gs://`, `hf://` and what else it has a reader for.

fsspec comes with the extra `cloud`, as do the readers of these three. A trace is fetched whole, into a folder that
is removed afterwards.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from inferometer.errors import InputError, Unavailable
from inferometer.fleet.contents import Content

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem


def list_urls(url: str) -> list[str]:
    """The files that a URL names: itself, those of a folder, or those that a glob matches.

    Raises:
        InputError: It names none.
        Unavailable: fsspec, or its reader for such URLs, isn't installed.
    """
    system, path = _open(url)
    with _refusing(url):
        if any(mark in path for mark in "*?["):
            found = sorted(name for name in system.glob(path) if system.isfile(name))
        elif system.isdir(path):
            found = sorted(system.find(path))
        else:
            found = [path] if system.exists(path) else []
    if not found:
        raise InputError(f"{url}: no such file, and no folder with files", hint="Check the URL and your rights.")
    return [str(system.unstrip_protocol(name)) for name in found]


def look_at_url(url: str) -> Content:
    """Size and stamp, as the file system behind the URL reports them.

    Raises:
        InputError: It isn't there, or may not be read.
        Unavailable: fsspec, or its reader for such URLs, isn't installed.
    """
    system, path = _open(url)
    with _refusing(url):
        return Content(int(system.size(path) or 0), str(system.ukey(path)))


@contextmanager
def fetched(url: str) -> Iterator[Path]:
    """A copy of the file on this machine, under its own name, until the block ends.

    Raises:
        InputError: It can't be fetched.
        Unavailable: fsspec, or its reader for such URLs, isn't installed.
    """
    system, path = _open(url)
    with TemporaryDirectory(prefix="inferometer-") as folder:
        target = Path(folder, Path(path).name)
        with _refusing(url):
            system.get_file(path, str(target))
        yield target


def _open(url: str) -> "tuple[AbstractFileSystem, str]":
    from importlib.util import find_spec

    if find_spec("fsspec") is None:
        raise Unavailable(f"{url}: fsspec is not installed", hint="pip install 'inferometer[cloud]'")
    from fsspec.core import url_to_fs

    try:
        found: tuple[Any, str] = url_to_fs(url)
    except ImportError as error:
        raise Unavailable(
            f"{url}: its reader is not installed: {error}", hint="pip install 'inferometer[cloud]'"
        ) from error
    except ValueError as error:
        raise InputError(f"{url}: {error}", hint="Give a path, or a URL that fsspec has a reader for.") from error
    return found


@contextmanager
def _refusing(url: str) -> Iterator[None]:
    """Turn what another package's reader raises into an `InputError` about this URL."""
    try:
        yield
    except (InputError, Unavailable):
        raise
    except Exception as error:  # readers raise errors of their own libraries
        raise InputError(f"{url}: {type(error).__name__}: {error}", hint="Check the URL and your rights.") from error
