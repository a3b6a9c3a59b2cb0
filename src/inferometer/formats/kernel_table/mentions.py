"""Which kernels of the tables a text means: `splitKreduce_kernel` is `void cublasLt::splitKreduce_kernel<…>(…)`.

A mention is a name with or without its namespaces, and perhaps the beginning of its template arguments, in which `...`
stands for the rest. A plain word is a mention only if it looks like a name: it has a digit, an underscore or an inner
capital. More than `MOST` kernels for one mention say nothing; the first ones are kept.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence

from inferometer.names.demangle import demangle

MOST = 100
_CANDIDATES = 200
_MOST_MENTIONS = 10_000  # different ones in a text, against hostile files
_CHAIN = r"[A-Za-z_][A-Za-z0-9_]*+(?:::~?[A-Za-z_][A-Za-z0-9_]*+)*+"
_MENTION = re.compile(rf"(?<![A-Za-z0-9_.:])(?P<chain>{_CHAIN})(?P<arguments>\s?<)?(?!\.[A-Za-z0-9_])")
_CHAINS = re.compile(rf"(?P<chain>{_CHAIN})(?P<open>\.\.\.|…)?")
_BRACKET = re.compile(r"[<>()]")
_LIKE_A_NAME = re.compile(r"[0-9_:]|[a-z][A-Z]")
_LONGEST_ARGUMENTS = 1_000


class Mentions:
    """Finds kernels of `names` in texts; knows up to 10,000 different mentions."""

    def __init__(self, names: Iterable[str]) -> None:
        self._by_last: defaultdict[str, list[tuple[str, str, str]]] = defaultdict(list)
        self._known: dict[str, Sequence[str]] = {}
        for name in dict.fromkeys(names):
            readable = demangle(name)
            chain = function_of(readable)
            if chain:
                self._by_last[chain.rpartition("::")[2]].append((chain, readable, name))

    def find(self, text: str) -> list[str]:
        """Full names of the kernels meant, in the order of the text and then of the tables."""
        found: dict[str, None] = {}
        end = 0
        for match in _MENTION.finditer(text):
            if match.start() < end or match["chain"].rpartition("::")[2] not in self._by_last:
                continue  # inside the arguments of the mention before, or no kernel
            arguments = _arguments(text, match.end("chain")) if match["arguments"] else ""
            end = match.end("chain") + len(arguments)
            found |= dict.fromkeys(self._meant(match["chain"], arguments))
        return list(found)

    def _meant(self, chain: str, arguments: str) -> Sequence[str]:
        mention = chain + arguments
        if mention not in self._known:
            if len(self._known) >= _MOST_MENTIONS:
                return ()
            self._known[mention] = self._search(chain, arguments)
        return self._known[mention]

    def _search(self, chain: str, arguments: str) -> Sequence[str]:
        if not _LIKE_A_NAME.search(chain):
            return ()
        candidates = self._by_last[chain.rpartition("::")[2]][:_CANDIDATES]
        found = [(full, name) for whole, full, name in candidates if whole == chain or whole.endswith(f"::{chain}")]
        if arguments:
            beginning, *rest = re.split(r"\.\.\.|…", arguments, maxsplit=1)
            literal = [each for each in found if _has(each[0], beginning.strip(" ,<>"), is_begun=bool(rest))]
            found = literal or [each for each in found if _has_all(each[0], arguments)]
        return [name for _, name in found[:MOST]]


def function_of(name: str) -> str:
    """The function's name with its namespaces: without return type, template arguments and parameters."""
    name = name.replace("(anonymous namespace)::", "").replace("<unnamed>::", "")
    depth, begin, kept = 0, 0, ""
    for bracket in _BRACKET.finditer(name):
        if depth == 0:
            kept += name[begin : bracket.start()]
            if bracket[0] == "(" and kept and not kept[-1].isspace():
                return kept.split()[-1]  # the parameters; what follows is no part of the name
        depth = max(0, depth + (1 if bracket[0] in "<(" else -1))
        begin = bracket.end()
    words = (kept + name[begin:] if depth == 0 else kept).split()
    return words[-1] if words else ""


def _arguments(text: str, start: int) -> str:
    """From the bracket at or behind `start` to the one that closes it, or to the end of the text."""
    depth = 0
    for at in range(start, min(len(text), start + _LONGEST_ARGUMENTS)):
        if text[at] == "<":
            depth += 1
        elif text[at] == ">":
            depth -= 1
            if depth == 0:
                return text[start : at + 1]
    return text[start : start + _LONGEST_ARGUMENTS]


def _has_all(name: str, arguments: str) -> bool:
    """Whether every name in `arguments` stands in `name`; one before an ellipsis may be only begun."""
    return all(_has(name, match["chain"], is_begun=bool(match["open"])) for match in _CHAINS.finditer(arguments))


def _has(name: str, words: str, *, is_begun: bool) -> bool:
    end = "" if is_begun else "(?![A-Za-z0-9_])"
    return bool(words and re.search(rf"(?<![A-Za-z0-9_]){re.escape(words)}{end}", name))
