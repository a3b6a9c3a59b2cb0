"""Every kernel's file: it parses, explains itself, keeps the limits that WebGPU promises everywhere, and compiles."""

import inspect
import re

import pytest
from tests.backends.wgsl_running import compile_kernel, needs_device

from inferometer.backends.wgsl.numpy_kernels import find_reference
from inferometer.backends.wgsl.source import kernel_names, parse_kernel, read_kernel
from inferometer.errors import InferometerError, UnknownName

MOST_STORAGE_BINDINGS = 8  # maxStorageBuffersPerShaderStage of every adapter
EXAMPLE = {"D": 64, "DH": 64, "K": 64, "N": 64, "STRIDE": 64, "V": 64, "HEADS": 4, "KV_HEADS": 2}
"""Values that fit together, for constants without a default; others get 1."""

EVERY_KERNEL = pytest.mark.parametrize("name", kernel_names())


@EVERY_KERNEL
def test_a_kernel_says_what_it_does_and_its_grid(name: str) -> None:
    source = read_kernel(name)

    header = source.text.split("override ")[0].split("@group")[0]
    comment = " ".join(line.removeprefix("//") for line in header.splitlines() if line.startswith("// "))
    assert len(comment.split()) >= 10
    assert "grid" in comment.lower()


@EVERY_KERNEL
def test_a_kernel_fits_every_adapter_and_the_parser_sees_all_that_it_declares(name: str) -> None:
    source = read_kernel(name)

    assert len(source.bindings) <= MOST_STORAGE_BINDINGS
    assert "enable " not in source.text, "text_for adds these lines, for the compiler that needs them"
    assert len(re.findall(r"@group\(", source.text)) == len(source.bindings), "a binding that the parser doesn't see"
    assert len(re.findall(r"\boverride\s", source.text)) == len(source.constants), "a constant it doesn't see"
    assert set(source.constants) == set(source.required) | set(source.defaults)


@EVERY_KERNEL
def test_a_kernel_names_its_features(name: str) -> None:
    source = read_kernel(name)

    code = re.sub(r"//.*", "", source.text)
    assert ("shader-f16" in source.requires) == bool(re.search(r"\bf16\b", code))
    assert ("subgroups" in source.requires) == bool(re.search(r"\bsubgroup", code))


@EVERY_KERNEL
def test_a_kernel_has_a_counterpart_in_numpy(name: str) -> None:
    run = find_reference(read_kernel(name).reference)

    assert list(inspect.signature(run).parameters) == ["arrays", "constants", "grid"]


@EVERY_KERNEL
def test_a_kernel_compiles_on_the_device(name: str) -> None:
    source = read_kernel(name)

    compile_kernel(name, tuple((constant, EXAMPLE.get(constant, 1)) for constant in source.required))


SUMS_BY_FOUR = [name for name in kernel_names() if re.search(r"var<workgroup>.*THREADS / 4u", read_kernel(name).text)]


@pytest.mark.parametrize("name", SUMS_BY_FOUR)
def test_too_few_threads_are_refused_rather_than_computed_wrongly(name: str) -> None:
    constants = {constant: EXAMPLE.get(constant, 1) for constant in read_kernel(name).required}
    needs_device(name)
    wgpu = pytest.importorskip("wgpu")

    with pytest.raises(wgpu.GPUValidationError):
        compile_kernel(name, tuple({**constants, "THREADS": 2}.items()))


KERNEL = """//! op: scale
//! reference: scale
// Doubles.
override N: u32;
override SCALE: f32 = 2.5;
override LOUD: bool = true;
override THREADS: u32 = 64u;
@group(0) @binding(0) var<storage, read> x: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
"""


def test_a_kernel_declares_bindings_constants_and_defaults() -> None:
    source = parse_kernel("scale", KERNEL)

    assert (source.op, source.reference, source.requires) == ("scale", "scale", frozenset())
    assert [(b.number, b.name, b.access, b.type) for b in source.bindings] == [
        (0, "x", "read", "array<vec4<u32>>"),
        (1, "out", "read_write", "array<f32>"),
    ]
    assert source.required == ("N",)
    assert source.defaults == {"SCALE": 2.5, "LOUD": 1, "THREADS": 64}


def test_only_tint_is_told_of_subgroups() -> None:
    source = parse_kernel("scale", KERNEL.replace("// Doubles.", "//! requires: subgroups, shader-f16"))

    assert source.requires == {"subgroups", "shader-f16"}
    assert source.text_for("naga") == "enable f16; " + source.text  # on the first line: lines keep their numbers
    assert source.text_for("tint") == "enable f16; enable subgroups; " + source.text


@pytest.mark.parametrize(
    ("before", "after", "complaint"),
    [
        ("//! op: scale\n", "", r"scale.wgsl: expected lines //! op: and //! reference:, found \['reference'\]"),
        ("//! reference: scale\n", "", r"found \['op'\]"),
        ("// Doubles.", "//! requires: f64", "scale.wgsl: requires f64: expected shader-f16, subgroups"),
        ("@binding(1)", "@binding(2)", r"expected bindings 0, 1, … in order, found \[0, 2\]"),
        ("@group(0)", "@group(1)", r"expected bindings 0, 1, … in order, found \[\]"),
    ],
)
def test_a_kernel_that_declares_too_little_is_refused(before: str, after: str, complaint: str) -> None:
    with pytest.raises(InferometerError, match=complaint):
        parse_kernel("scale", KERNEL.replace(before, after))


def test_an_unknown_kernel_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="rms_norm"):
        read_kernel("rms_norn")
