"""Files that kernels include: where their text goes, what is refused, and where lines come from."""

import re
from collections import Counter

import pytest

from inferometer.backends.wgsl.includes import expand, include_names, name_places, place_of, read_include
from inferometer.backends.wgsl.source import kernel_names, parse_kernel, read_kernel
from inferometer.errors import InferometerError

FILES = {
    "one": "// One.\nfn one() {}\n",
    "two": "//! include: one\nfn two() {}",
    "itself": "fn it() {}\n//! include: itself\n",
    "ring": "//! include: rung\n",
    "rung": "//! include: ring\n",
    "lost": "//! include: nowhere\n",
    "kernel": "//! op: scale\n",
}


def test_a_line_becomes_the_text_of_its_file_and_of_those_that_it_includes() -> None:
    found = expand("k.wgsl", "//! op: k\n//! include: two\nfn main() {}\n", FILES.get)

    assert found.text == "//! op: k\n// One.\nfn one() {}\nfn two() {}\nfn main() {}\n"
    places = [place_of(found.stretches, line) for line in range(1, 6)]
    assert places == [
        ("k.wgsl", 1),
        ("include/one.wgsl", 1),
        ("include/one.wgsl", 2),
        ("include/two.wgsl", 2),
        ("k.wgsl", 3),
    ]


def test_a_text_without_includes_stays_as_it_is() -> None:
    text = "//! op: k\n// include: one, in a comment\n\nfn main() {}"
    assert expand("k.wgsl", text, FILES.get) == (text, ((1, "k.wgsl", 1),))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("fn f() {}\n//! include: nowhere\n", "k.wgsl:2: expected an include of activate, .*, found nowhere"),
        ("//! include: lost\n", "include/lost.wgsl:1: expected an include of .*, found nowhere"),
        ("//! include: itself\n", "include/itself.wgsl:2: itself includes itself"),
        ("//! include: ring\n", "include/rung.wgsl:1: ring includes rung includes ring"),
        ("//! include: one\n//! include: one\n", "k.wgsl:2: one is included already, at k.wgsl:1: a kernel has each"),
        ("//! include: one\n//! include: two\n", "include/two.wgsl:1: one is included already, at k.wgsl:1"),
        ("//! include: two\n//! include: one\n", "k.wgsl:2: one is included already, at include/two.wgsl:1"),
        ("//! include: kernel\n", "include/kernel.wgsl:1: expected //! include: NAME, found '//! op: scale'"),
        ("//!include: one\n", "k.wgsl:1: expected //! op:, reference:, requires: or include: NAME, found '//!include"),
        ("//! include: one, two\n", "k.wgsl:1: expected .*, found '//! include: one, two'"),
        ("fn f() {\n    //! include: one\n}\n", "k.wgsl:2: expected .*, found '//! include: one'"),
        ("//! include: ../source\n", r"k.wgsl:1: expected .*, found '//! include: \.\./source'"),
    ],
)
def test_an_include_that_cannot_be_is_refused_at_its_line(text: str, complaint: str) -> None:
    with pytest.raises(InferometerError, match=f"^{complaint}"):
        expand("k.wgsl", text, FILES.get)


def test_nagas_lines_become_those_of_files_in_the_margin_too() -> None:
    stretches = expand("k.wgsl", "//! include: one\nfn main() {}\n", FILES.get).stretches
    message = "Shader 'k' parsing error: wrong\n  ┌─ wgsl:3:4\n  │\n3 │ fn main() {}\n  │    ^^^^ here\n"

    assert name_places(stretches, message) == message.replace("wgsl:3:4", "k.wgsl:2:4").replace("3 │", "2 │")


@pytest.mark.parametrize("name", include_names())
def test_an_included_file_says_what_it_is_and_two_kernels_have_it(name: str) -> None:
    text = read_include(name)

    assert text is not None
    assert re.match(r"// [A-Z]", text)
    assert "@binding" not in text, "a kernel's interface is in its own file"
    assert "override " not in text
    users = [kernel for kernel in kernel_names() if f"include/{name}.wgsl" in _files(kernel)]
    assert len(users) >= 2


@pytest.mark.parametrize("kernel", kernel_names())
def test_a_kernel_has_each_function_once(kernel: str) -> None:
    counts = Counter(re.findall(r"^fn (\w+)", read_kernel(kernel).text, re.MULTILINE))
    assert [name for name, count in counts.items() if count > 1] == []
    assert counts["main"] == 1


def test_what_is_included_counts_for_the_digest() -> None:
    text = "//! op: k\n//! reference: k\n@group(0) @binding(0) var<storage, read> a: array<u32>;\n"
    included = parse_kernel("k", text + "//! include: key_of\n")

    assert "fn key_of" in included.text
    assert included.digest == parse_kernel("k", text + (read_include("key_of") or "")).digest


def _files(kernel: str) -> set[str]:
    return {stretch.file for stretch in read_kernel(kernel).stretches}
