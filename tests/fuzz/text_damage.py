"""Damage that files of lines suffer: on the way through editors, terminals, spreadsheets and chats."""

import re
from random import Random

from tests.fuzz import hostile
from tests.fuzz.byte_damage import Damage

_NUMBER = re.compile(rb"\d[\d.,]*")
_WORD = re.compile(rb"[A-Za-z_][\w:.*]*")
_ENDINGS = ((b"\r\n",), (b"\r",), (b"\n", b"\r\n"), (b"\n\n",), (b"\xe2\x80\xa8",), (b"\0\n",), (b" \n",))
_DELIMITERS = (b"\t", b",", b"|", b";", b" ")


def change_number(rng: Random, data: bytes, _: bytes) -> bytes:
    return _replace(rng, data, _NUMBER, hostile.number(rng).encode())


def change_word(rng: Random, data: bytes, _: bytes) -> bytes:
    return _replace(rng, data, _WORD, hostile.text(rng).encode("utf-8", "surrogatepass"))


def change_every_number(rng: Random, data: bytes, _: bytes) -> bytes:
    return _NUMBER.sub(lambda found: hostile.number(rng).encode() if rng.random() < 0.3 else found[0], data[:20_000])


def swap_words(rng: Random, data: bytes, other: bytes) -> bytes:
    words = _WORD.findall(other)[:5000]
    return _replace(rng, data, _WORD, rng.choice(words)) if words else data


def change_line_endings(rng: Random, data: bytes, _: bytes) -> bytes:
    endings = rng.choice(_ENDINGS)
    return b"".join(line + rng.choice(endings) for line in data.split(b"\n"))


def shuffle_lines(rng: Random, data: bytes, _: bytes) -> bytes:
    lines = data.split(b"\n")
    rng.shuffle(lines)
    return b"\n".join(lines)


def move_lines(rng: Random, data: bytes, other: bytes) -> bytes:
    lines, others = data.split(b"\n"), other.split(b"\n")
    for _each in range(rng.choice((1, 2, 5))):
        at = rng.randrange(len(lines) + 1)
        taken = rng.choice((lines, others)) or [b""]
        start = rng.randrange(len(taken))
        lines[at : at + rng.choice((0, 1, 2))] = taken[start : start + rng.choice((0, 1, 3))]
    return b"\n".join(lines)


def change_cells(rng: Random, data: bytes, _: bytes) -> bytes:
    """Cells of one row are moved, doubled, lost or made something else."""
    lines, delimiter = data.split(b"\n"), _delimiter_of(data)
    at = rng.randrange(len(lines))
    cells = lines[at].split(delimiter)
    where = rng.randrange(len(cells))
    change = rng.randrange(5)
    if change == 0:
        rng.shuffle(cells)
    elif change == 1:
        cells.insert(where, cells[where])
    elif change == 2:
        del cells[where]
    else:
        cells[where] = (hostile.number(rng) if change == 3 else hostile.text(rng)).encode("utf-8", "surrogatepass")
    lines[at] = delimiter.join(cells)
    return b"\n".join(lines)


def change_columns(rng: Random, data: bytes, _: bytes) -> bytes:
    """Columns come in another order, or one is missing or there twice, in all rows or in those of the header alone."""
    lines, delimiter = data.split(b"\n"), _delimiter_of(data)
    width = max(line.count(delimiter) + 1 for line in lines)
    order = rng.sample(range(width), width) if rng.random() < 0.5 else [rng.randrange(width) for _each in range(width)]
    changed = 1 if rng.random() < 0.3 else len(lines)
    places: dict[int, list[int]] = {}
    for place, i in enumerate(order):
        places.setdefault(i, []).append(place)
    others = []
    for line in lines[:changed]:  # by its cells: a row of many columns may stand among thousands of others
        kept = sorted((place, cell) for i, cell in enumerate(line.split(delimiter)) for place in places.get(i, ()))
        others.append(delimiter.join(cell for _place, cell in kept))
    return b"\n".join(others) + b"\n".join([b"", *lines[changed:]])


def change_delimiter(rng: Random, data: bytes, _: bytes) -> bytes:
    return data.replace(_delimiter_of(data), rng.choice(_DELIMITERS))


def make_a_long_line(rng: Random, data: bytes, _: bytes) -> bytes:
    at = rng.randrange(len(data) + 1)
    piece = rng.choice((b"x", b"1", b" ", b",", b'"', b"\t", b"a,", b"| ", b"(", "é".encode()))
    return data[:at] + piece * rng.choice((1000, 20_000, 200_000)) + data[at:]


def make_one_line(_: Random, data: bytes, _other: bytes) -> bytes:
    return data.replace(b"\n", b" ")


def change_encoding(rng: Random, data: bytes, _: bytes) -> bytes:
    encoding = rng.choice(("utf-16", "utf-16-le", "utf-16-be", "utf-32", "utf-8-sig", "latin-1", "utf-7"))
    return data.decode("utf-8", "replace").encode(encoding, "replace")


def change_case(rng: Random, data: bytes, _: bytes) -> bytes:
    return rng.choice((data.upper, data.lower, data.title))()


def unbalance_quotes(rng: Random, data: bytes, _: bytes) -> bytes:
    places = [found.start() for found in re.finditer(rb'[",|]', data[:50_000])]
    if not places:
        return data + b'"'
    at = rng.choice(places)
    return data[:at] + rng.choice((b"", b'"', b'""', b"'")) + data[at + rng.choice((0, 1)) :]


def quote_into_reply(rng: Random, data: bytes, _: bytes) -> bytes:
    """As a text looks that was sent round: every line with a mark in front, long lines broken."""
    mark = rng.choice((b"> ", b"    ", b"12:00:01 ", b"[web] ", b"\x1b[0m"))
    width = rng.choice((40, 80, 10_000))
    lines = (line[i : i + width] for line in data.split(b"\n") for i in range(0, max(1, len(line)), width))
    return b"\n".join(mark + line for line in lines)


DAMAGES: tuple[Damage, ...] = (
    *(change_number, change_number, change_word, change_every_number, swap_words, change_line_endings, shuffle_lines),
    *(move_lines, change_cells, change_cells, change_columns, change_delimiter, make_a_long_line, make_one_line),
    *(change_encoding, change_case, unbalance_quotes, quote_into_reply),
)


def _replace(rng: Random, data: bytes, pattern: re.Pattern[bytes], new: bytes) -> bytes:
    start = rng.randrange(len(data) + 1)
    found = pattern.search(data, start) or pattern.search(data)
    return data[: found.start()] + new + data[found.end() :] if found else data + new


def _delimiter_of(data: bytes) -> bytes:
    head = data[:4000]
    return max(_DELIMITERS[:4], key=head.count) if any(map(head.count, _DELIMITERS[:4])) else b" "
