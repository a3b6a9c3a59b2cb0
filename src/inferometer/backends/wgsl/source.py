"""A kernel's file, and what it declares: bindings, override constants, features, its NumPy counterpart.

    //! op: linear                    what it computes, as kernel paths name it
    //! reference: linear             the module of `numpy_kernels`
    //! requires: shader-f16          features, separated by commas; the line is absent where there are none
    //! include: product              functions of another file, `include/product.wgsl`, which come in this line's place
    // plain comments: what it does, its grid, its limits
    override K: u32;                  a constant without a value must be given
    override THREADS: u32 = 64u;
    @group(0) @binding(0) var<storage, read> state: array<u32>;
    @compute @workgroup_size(THREADS) fn main(...)

One compute entry point, `main`, and one bind group, 0, of storage buffers only.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Literal

from inferometer.backends.wgsl.includes import Stretch, expand, name_places
from inferometer.errors import InferometerError, UnknownName

FEATURES = ("shader-f16", "subgroups")
_HEADER = re.compile(r"^//! (?P<key>op|reference|requires): (?P<value>.+?)\s*$", re.MULTILINE)
_BINDING = re.compile(
    r"@group\(0\)\s*@binding\((?P<number>\d+)\)\s*var<storage,\s*(?P<access>read|read_write)>\s*"
    r"(?P<name>\w+)\s*:\s*(?P<type>[\w<> ,]+?)\s*;"
)
_OVERRIDE = re.compile(
    r"^override\s+(?P<name>\w+)\s*:\s*(?P<type>u32|i32|f32|bool)\s*(?P<default>=[^;]*)?;", re.MULTILINE
)

Compiler = Literal["naga", "tint"]


@dataclass(frozen=True)
class KernelBinding:
    """One storage binding. `type`: as written, `array<vec4<u32>>`."""

    number: int
    name: str
    access: str
    type: str


@dataclass(frozen=True)
class KernelSource:
    """A kernel's file.

    Attributes:
        text: The whole one, with what the file includes.
        required: Override constants without a default.
        defaults: Values of the others.
        digest: Of the text, for caches.
        stretches: Which lines of the text are of which file.
    """

    name: str
    text: str
    op: str
    reference: str
    requires: frozenset[str]
    bindings: tuple[KernelBinding, ...]
    constants: tuple[str, ...]
    required: tuple[str, ...]
    digest: str
    defaults: Mapping[str, float] = field(default_factory=dict, hash=False)
    stretches: tuple[Stretch, ...] = field(default=(), compare=False)

    def text_for(self, compiler: Compiler) -> str:
        """The text, with what it must enable in front of its first line: lines keep their numbers.

        naga (wgpu 29) knows subgroups without that, and refuses it.
        """
        enabled = []
        if "shader-f16" in self.requires:
            enabled.append("enable f16; ")
        if "subgroups" in self.requires and compiler == "tint":
            enabled.append("enable subgroups; ")
        return "".join(enabled) + self.text

    def name_places(self, message: str) -> str:
        """A message of naga on `text_for`, with files, and the lines in them."""
        return name_places(self.stretches, message)


@cache
def kernel_names() -> tuple[str, ...]:
    """Every kernel that there is."""
    folder = files("inferometer.backends") / "wgsl"
    return tuple(sorted(path.name.removesuffix(".wgsl") for path in folder.iterdir() if path.name.endswith(".wgsl")))


@cache
def read_kernel(name: str) -> KernelSource:
    """The kernel of this name.

    Raises:
        UnknownName: There is none.
    """
    if name not in kernel_names():
        raise UnknownName("WGSL kernel", name, kernel_names())
    text = (files("inferometer.backends") / "wgsl" / f"{name}.wgsl").read_text("utf-8")
    return parse_kernel(name, text)


def parse_kernel(name: str, text: str) -> KernelSource:
    """What a kernel's text declares, with all that it includes."""
    text, stretches = expand(f"{name}.wgsl", text)
    header = {match["key"]: match["value"] for match in _HEADER.finditer(text)}
    if "op" not in header or "reference" not in header:
        raise InferometerError(f"{name}.wgsl: expected lines //! op: and //! reference:, found {sorted(header)}")
    requires = frozenset(part.strip() for part in header.get("requires", "").split(",") if part.strip())
    if unknown := requires.difference(FEATURES):
        raise InferometerError(f"{name}.wgsl: requires {', '.join(sorted(unknown))}: expected {', '.join(FEATURES)}")
    bindings = tuple(
        KernelBinding(int(match["number"]), match["name"], match["access"], match["type"].replace(" ", ""))
        for match in _BINDING.finditer(text)
    )
    if [binding.number for binding in bindings] != list(range(len(bindings))) or not bindings:
        raise InferometerError(f"{name}.wgsl: expected bindings 0, 1, … in order, found {[b.number for b in bindings]}")
    overrides = list(_OVERRIDE.finditer(text))
    return KernelSource(
        name=name,
        text=text,
        op=header["op"],
        reference=header["reference"],
        requires=requires,
        bindings=bindings,
        constants=tuple(match["name"] for match in overrides),
        required=tuple(match["name"] for match in overrides if not match["default"]),
        digest=hashlib.sha256(text.encode()).hexdigest()[:16],
        defaults={match["name"]: _number(match["default"]) for match in overrides if match["default"]},
        stretches=stretches,
    )


def _number(default: str) -> float:
    """The value of `= 64u` or `= true`."""
    text = default.removeprefix("=").strip()
    return float(text == "true") if text in ("true", "false") else float(text.rstrip("uif"))
