"""Texts, numbers and values that no profiler writes, for the damage of all kinds of files."""

from random import Random

NUMBERS = (
    *("-1", "0", "-0", "-0.0", "1", "0.5", "1e-400", "1e308", "1e999", "-1e999", "NaN", "nan", "Infinity", "-inf"),
    *("2147483648", "4294967295", "9007199254740993", "9223372036854775807", "9223372036854775808"),
    *("-9223372036854775808", "-9223372036854775809", "18446744073709551615", "18446744073709551616", "9" * 400),
    *(
        "1,234,567",
        "1.234.567,8",
        "1_000",
        "0x1F",
        "007",
        "+5",
        "1e",
        "--1",
        "½",
        "\u0663",
        "\uff11\uff12",
        "12us",
        "57.0%",
        "1 e3",
    ),
    "0." + "0" * 300 + "1",
)
TEXTS = (
    *("", " ", "\t", "null", "None", "N/A", "true", "[]", "{}", "-", "...", "=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0"),
    *("<script>alert(1)</script>", "</td></table>{{7*7}}", "a|b", "`x`", "[a](b)", "\\", '"', "'", "%s%n", "$(id)"),
    *("\x1b[2J\x1b[31m", "\x1b]8;;http://x\x07link\x1b]8;;\x07", "\x9b2J", "\x07", "\0", "a\0b", "\x7f", "\u0085"),
    *("\u202eevil\u202c", "\u2066x\u2069", "\u200b\u200d\ufeff", "\u2028", "e" + "\u0301" * 200, "مرحبا", "שלום"),
    *(
        "😀👩‍👩‍👧",
        "\U0010ffff",
        "\ufffe",
        "ﬀİ\u0131\u017fK",
        "../../etc/passwd",
        "/dev/zero",
        "C:\\nul",
        "rank_99",
        "gpu:-1",
    ),
    *("a" * 3_000, "<" * 2_000, "(" * 2_000, "_Z" + "N" * 500, "::" * 700, "x<" * 400 + ">" * 400, "1" * 5_000),
)
BYTES = (
    *(b"\0", b"\0" * 64, b"\xff", b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf"),
    *(b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"),
    *(b'"', b"'", b"\\", b"\\u", b"\\ud800", b"{", b"}", b"[", b"]", b"}}", b"]}", b"},{", b",", b",,", b":", b";"),
    *(b"\n", b"\r", b"\r\n", b"\n\n\n", b"\t", b"|", b"  ", b"----", b"#", b"/*", b"\x1a", b"\x1b[2J", b"\x1f\x8b"),
    *(b"NaN", b"1e999", b"-", b"9" * 60, b"null"),
    *(b"SQLite format 3\0", b"PAR1", b"PK\3\4", b"BZh9", b"\x28\xb5\x2f\xfd"),
)


def text(rng: Random) -> str:
    """One of the texts, or two in one."""
    return rng.choice(TEXTS) if rng.random() < 0.8 else rng.choice(TEXTS) + rng.choice(TEXTS)


def number(rng: Random) -> str:
    """A number as text, of which some are none."""
    return rng.choice(NUMBERS)
