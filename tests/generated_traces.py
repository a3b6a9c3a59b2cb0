"""Traces of the generator with what is true of them, made once in a process: many tests ask about the same runs."""

import io
from functools import lru_cache

from tools.kineto_maker import Options, Truth, write_trace


@lru_cache(maxsize=64)
def generated_trace(options: Options) -> tuple[bytes, Truth]:
    """The file's bytes, and the truth with every single launch."""
    file = io.BytesIO()
    truth = write_trace(options, file, launches=True)
    return file.getvalue(), truth
