"""What is next to a profile's events and nobody meant to share: secrets, the environment, who and where.

A field is a tree of parsed JSON. Found are the place (`metadata.system.env.HF_TOKEN`) and the kind, never the value.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import msgspec

from inferometer.privacy.secrets import (
    MASK,
    NAMED,
    blank_secrets,
    can_be_secret,
    find_secrets,
    is_masked,
    names_a_secret,
    secret_hints,
)

_LONGEST_KEY = 60
_SHORTEST = 3
_USUAL_VARIABLES = frozenset(
    {"PATH", "HOME", "HOSTNAME", "PWD", "OLDPWD", "SHELL", "LANG", "LC_ALL", "USER", "LOGNAME", "TERM", "SHLVL"}
    | {"LD_LIBRARY_PATH", "PYTHONPATH", "CUDA_VISIBLE_DEVICES", "VIRTUAL_ENV", "DEBIAN_FRONTEND", "USERPROFILE"}
)
_FEWEST_VARIABLES = 3
_USERS = frozenset({"user", "username", "user_name", "logname", "login", "sudo_user"})
_HOSTS = frozenset({"hostname", "host_name", "nodename", "host", "computername", "fqdn"})
_NAMING = ("token", "secret", "passw", "passphrase", "key", "credential")
_COMMON = frozenset(  # names that say nothing about whose machine it is, and stand in texts for other reasons
    {"root", "user", "users", "ubuntu", "admin", "app", "runner", "test", "python", "default", "nobody", "guest"}
    | {"docker", "vscode", "dev", "work", "data", "home", "public", "shared", "local", "localhost", "node", "host"}
    | {"localhost.localdomain", "none", "null", "unknown", "model", "main", "torch", "cuda", "worker", "master", "gpu"}
)


class Secret(msgspec.Struct, frozen=True):
    """A secret at `place`; `masked`: its name says what it is, its value holds only a mask."""

    place: str
    kind: str
    masked: bool = False


class Names(msgspec.Struct, frozen=True):
    """Names of people and machines that a text may hold. Known while a file is read, never written."""

    users: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset()


class Search(msgspec.Struct):
    """What was found in a field: secrets in order, variables of an environment by its place, and names."""

    secrets: list[Secret] = []
    environments: dict[str, int] = {}
    names: Names = Names()


def join_names(several: Iterable[Names]) -> Names:
    """All of them."""
    all_names = [Names(), *several]
    return Names(
        frozenset().union(*(each.users for each in all_names)), frozenset().union(*(each.hosts for each in all_names))
    )


def is_worth_searching(text: bytes) -> bool:
    """Whether the JSON text of a field may hold anything that `search_metadata` finds: a quick look."""
    lower = text.lower()
    return any(hint in lower for hint in _hints())


def search_metadata(place: str, value: Any) -> Search:
    """Search a field's parsed JSON, of any depth."""
    found = Search()
    users: set[str] = set()
    hosts: set[str] = set()
    for where, key, each in _walk(place, value):
        if isinstance(each, dict):
            variables = sum(isinstance(name, str) for name in each)
            if len(_USUAL_VARIABLES.intersection(each)) >= _FEWEST_VARIABLES:
                found.environments[where] = variables
        elif isinstance(each, str):
            found.secrets += _secrets(where, key, each)
            if is_telling(each):
                users |= {each} if key.lower() in _USERS else set()
                is_host = key.lower() in _HOSTS or where.endswith("uname.node")
                hosts |= {each} if is_host else set()
    found.names = Names(frozenset(users), frozenset(hosts))
    return found


def blank_metadata(value: Any, key: str = "") -> Any:
    """`value` with `***` for each secret: found by its form, or by the name of the field or the text before it."""
    if isinstance(value, str):
        is_whole = names_a_secret(key) and can_be_secret(value) and not is_masked(value)
        return MASK if is_whole else blank_secrets(value)
    if isinstance(value, dict):
        return {_blanked(name): blank_metadata(each, str(name)) for name, each in value.items()}
    return [blank_metadata(each, key) for each in value] if isinstance(value, list | tuple) else value


def is_telling(name: str) -> bool:
    """Whether a name of a user or host is one that can be looked for in other texts."""
    return (
        len(name) > 2
        and not name.isdecimal()
        and name.lower() not in _COMMON
        and all(letter.isalnum() or letter in "._-" for letter in name)
    )


def _secrets(place: str, key: str, text: str) -> Iterator[Secret]:
    found = find_secrets(text)
    yield from (Secret(place, each.kind) for each in found)
    if not found and names_a_secret(key) and len(text) >= _SHORTEST:
        if is_masked(text):
            yield Secret(place, NAMED, masked=True)
        elif can_be_secret(text):
            yield Secret(place, NAMED)


def _walk(place: str, value: Any) -> Iterator[tuple[str, str, Any]]:
    """Every value with its place and its key, from the root, without recursion."""
    rest: list[tuple[str, str, Any]] = [(place, place, value)]
    while rest:
        where, key, each = rest.pop()
        yield where, key, each
        if isinstance(each, dict):
            inside = f"{where}." if where else ""
            rest += [(inside + _shown(name), str(name), each[name]) for name in reversed(each)]
        elif isinstance(each, list | tuple):
            rest += [(f"{where}[{i}]", key, each[i]) for i in range(len(each) - 1, -1, -1)]


def _shown(key: Any) -> str:
    return blank_secrets(str(key))[:_LONGEST_KEY]


def _blanked(key: Any) -> Any:
    return blank_secrets(key) if isinstance(key, str) else key


@cache
def _hints() -> tuple[bytes, ...]:
    names = (f'"{name}"' for name in sorted({*_USERS, *_HOSTS, "node", "home", "path"}))
    return tuple(hint.encode() for hint in (*_NAMING, *names, *secret_hints()))
