"""How many threads a workgroup of a pipeline has: of `@workgroup_size`, with the pipeline's constants."""

import re
from functools import cache

from inferometer.backends.wgsl.source import kernel_names, read_kernel
from inferometer.engines.webgpu.program import Pipeline

_SIZE = re.compile(r"@workgroup_size\((?P<sizes>[^)]*)\)")
_VALUE = re.compile(
    r"^(?:override|const)\s+(?P<name>\w+)\s*(?::\s*\w+\s*)?=\s*(?P<value>\w+(?:\s*[*/]\s*\w+)*)\s*;", re.MULTILINE
)
_SIGN = re.compile(r"([*/])")
_NUMBER = re.compile(r"(\d+)[iu]?")
_DEEPEST = 4  # constants that are made of constants


def workgroup_of(pipeline: Pipeline) -> tuple[int, int, int] | None:
    """Threads along x, y, z; None where the kernel is unknown, or its file doesn't give it as known numbers."""
    sizes = _sizes(pipeline.kernel)
    if sizes is None:
        return None
    values = {**_defaults(pipeline.kernel), **{name: str(int(n)) for name, n in pipeline.constants.items()}}
    found = [_evaluate(size, values, _DEEPEST) for size in sizes]
    x, y, z = (*found, 1, 1, 1)[:3]
    return None if x is None or y is None or z is None else (x, y, z)


@cache
def _sizes(kernel: str) -> tuple[str, ...] | None:
    match = _SIZE.search(read_kernel(kernel).text) if kernel in kernel_names() else None
    return None if match is None else tuple(size for size in match["sizes"].split(",") if size.strip())


@cache
def _defaults(kernel: str) -> dict[str, str]:
    return {match["name"]: match["value"] for match in _VALUE.finditer(read_kernel(kernel).text)}


def _evaluate(text: str, values: dict[str, str], depth: int) -> int | None:
    """Products and whole quotients of numbers and names, from the left."""
    first, *rest = (part.strip() for part in _SIGN.split(text))
    found = _factor(first, values, depth)
    for sign, word in zip(rest[::2], rest[1::2], strict=True):
        factor = _factor(word, values, depth)
        if found is None or factor is None or (sign == "/" and not factor):
            return None
        found = found * factor if sign == "*" else found // factor
    return found


def _factor(word: str, values: dict[str, str], depth: int) -> int | None:
    if match := _NUMBER.fullmatch(word):
        return int(match[1])
    return _evaluate(values[word], values, depth - 1) if word in values and depth else None
