"""Secrets in a text: found by their form or by the name before them, and blanked.

The kinds are data (`secret_kinds.json`), each with its source. What is found *looks* like a secret; nobody here tries
whether it still opens anything. Left out: what has no form and no name, such as a password in a sentence.
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

MASK = "***"
"""Stands for every secret: a hash or a number would show which texts held the same one."""

NAMED = "value of an option or variable named as a secret"

_KINDS = Path(__file__).with_name("secret_kinds.json")
_WORDS = r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+"
_ALWAYS = frozenset({"secret", "secrets", "password", "passwd", "passphrase", "credential", "credentials", "apikey"})
_OF_A_KEY = frozenset(
    {"api", "access", "secret", "private", "encryption", "signing", "auth", "ssh", "account", "master", "service"}
)
_OF_A_TOKEN = frozenset(
    {"access", "api", "auth", "bearer", "bot", "github", "gitlab", "hf", "hub", "jwt", "oauth", "private"}
    | {"refresh", "secret", "security", "session", "slack"}
)
_OF_TEXT = frozenset(  # a model's tokens: EOS_TOKEN, new_token, per-token
    {"bos", "cls", "context", "decode", "end", "eos", "eot", "first", "image", "input", "last", "mask", "max", "min"}
    | {
        "new",
        "next",
        "num",
        "out",
        "output",
        "pad",
        "per",
        "prefill",
        "prompt",
        "sep",
        "special",
        "start",
        "stop",
        "unk",
    }
)
_NOT_THE_VALUE = frozenset({"file", "path", "dir", "id", "name", "type", "url", "length", "len", "size", "count"})
_EMPTY = frozenset({"", "none", "null", "nil", "true", "false", "yes", "no", "on", "off", "auto", "default", "str"})
_SAYS_MASKED = frozenset({"redacted", "masked", "hidden", "removed", "blanked", "secret", "changeme"})
_PREFIX = r"^(?:hf|api_org|gh[pousr]|github_pat)_|^sk-(?:ant-|proj-)?|^gl[a-z]+-|^x[a-z]+-|^AKIA|^ASIA|^AIza"
_PUNCTUATION = r"[\W_]+"
_NUMBER = r"[-+]?[\d.,_]+(?:[eE][-+]?\d+)?%?"
_PATH = r"(?:~|\.{1,2})?[\\/]|[A-Za-z]:[\\/]"


class Kind(NamedTuple):
    """One kind of secret: `hints` (lower case), of which a text must hold one, and where its form is written down."""

    name: str
    pattern: str
    hints: tuple[str, ...]
    source: str


class Found(NamedTuple):
    """A text from `start` to `end` that looks like a secret of `kind`."""

    kind: str
    start: int
    end: int


@cache
def secret_kinds() -> tuple[Kind, ...]:
    """All kinds, in the order in which they are tried."""
    import json

    known = json.loads(_KINDS.read_text("utf-8"))["kinds"]
    return tuple(Kind(each["name"], each["pattern"], tuple(each["hints"]), each["source"]) for each in known)


@cache
def secret_hints() -> tuple[str, ...]:
    """Texts, in lower case, of which one stands in every text with a secret."""
    return tuple(dict.fromkeys(hint for kind in secret_kinds() for hint in kind.hints))


@cache
def secret_pattern() -> str:
    """Matches every text with a secret, and some without: for a quick first look."""
    return "|".join(f"(?:{re.sub(r'[(][?]P<[a-z]+>', '(?:', kind.pattern)})" for kind in secret_kinds())


def find_secrets(text: str) -> list[Found]:
    """What looks like a secret in `text`, in order, without overlaps; none that is masked already."""
    return [found for found in _find_all(text) if not is_masked(text[found.start : found.end])]


def blank_secrets(text: str) -> str:
    """`text` with `***` for each secret."""
    for found in reversed(find_secrets(text)):
        text = text[: found.start] + MASK + text[found.end :]
    return text


def is_masked(value: str) -> bool:
    """Whether a secret's place holds a mask: one character over and over after a known prefix, or a word for it."""
    rest = _compiled(_PUNCTUATION).sub("", _compiled(_PREFIX).sub("", value)).lower()
    return len(set(rest)) <= 1 or rest in _SAYS_MASKED


def names_a_secret(name: str) -> bool:
    """Whether a variable, field or option of this name holds a secret: `HF_TOKEN`, `apiKey`; not `key`."""
    words = [word.lower() for word in _compiled(_WORDS).findall(name)]
    if not words or words[-1] in _NOT_THE_VALUE:
        return False
    if not _ALWAYS.isdisjoint(words):
        return True
    shouts = name.upper() == name
    before = words[-2] if len(words) > 1 else ""
    if words[-1] == "key":
        return shouts or before in _OF_A_KEY
    if shouts and "token" in words:
        return _OF_TEXT.isdisjoint(words)
    return words[-1] == "token" and (before in _OF_A_TOKEN or len(words) == 1)


def can_be_secret(value: str) -> bool:
    """Whether a value could be one: one word, and no number, path, switch or reference to another variable."""
    plain = value.strip("\"'")
    if len(plain) < 4 or plain.lower() in _EMPTY or plain[0] in "<$%" or len(plain.split()) > 1:
        return False
    return not (_compiled(_NUMBER).fullmatch(plain) or _compiled(_PATH).match(plain))


def _find_all(text: str) -> list[Found]:
    lower = text.lower()
    taken: list[Found] = []
    for kind in secret_kinds():
        if any(hint in lower for hint in kind.hints):
            taken += [found for found in _of_kind(kind, text) if not any(_overlap(found, each) for each in taken)]
    return sorted(taken, key=lambda found: found.start)


def _of_kind(kind: Kind, text: str) -> Iterator[Found]:
    for match in _compiled(kind.pattern).finditer(text):
        groups = match.groupdict()
        start, end = match.span("secret" if "secret" in groups else 0)
        if "name" not in groups or _is_named(text, match):
            yield Found(kind.name, start, end)


def _is_named(text: str, match: re.Match[str]) -> bool:
    """Whether the name before a value is a secret's: in running text, words alone are not enough."""
    name, value = match["name"], match["secret"]
    is_option = name.startswith("--")
    assigns = re.search(r"[=:]", text[match.end("name") : match.start("secret")])
    if not names_a_secret(name) or not can_be_secret(value) or not (assigns or is_option):
        return False
    return is_option or name.upper() == name or any(letter.isdigit() for letter in value)


def _overlap(one: Found, other: Found) -> bool:
    return one.start < other.end and other.start < one.end


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
