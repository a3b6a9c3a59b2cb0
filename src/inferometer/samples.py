"""Small traces that come with the package, to try commands on: `sample:NAME` wherever a trace's path is expected."""

from pathlib import Path
from typing import Final

from inferometer.errors import UnknownName

PREFIX: Final = "sample:"
SAMPLES: Final = {
    "decode": "decode.json.gz",  # a generated trace of PyTorch's profiler, with a known fault
    "nsys": "nsys.sqlite.gz",
    "webgpu": "webgpu.log.gz",
    "normal": "recorded/cpu_quota/normal.ifm",  # two runs, recorded: something slowed down the second
    "slow": "recorded/cpu_quota/fault.ifm",
}
_FOLDERS = (Path(__file__).parent / "_samples", Path(__file__).parents[2] / "samples")  # of a wheel, of a checkout


def without_prefix(path: str | Path) -> str | Path:
    """The path of a sample where `path` names one, as `sample:decode`; any other path as it is.

    Raises:
        UnknownName: There is no such sample.
    """
    if not isinstance(path, str) or not path.startswith(PREFIX) or Path(path).exists():
        return path
    name = path.removeprefix(PREFIX)
    if name not in SAMPLES:
        raise UnknownName("sample", name, SAMPLES)
    return next((found for folder in _FOLDERS if (found := folder / SAMPLES[name]).exists()), Path(path))
