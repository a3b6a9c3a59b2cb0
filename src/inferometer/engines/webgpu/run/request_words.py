"""What a request is on the device: the words of the buffers `state` and `sampling`, whose layout `program` says."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from inferometer.engines.webgpu.program import SAMPLING_WORDS, STATE_WORDS
from inferometer.engines.webgpu.run.executor import Request

Words = NDArray[np.uint32]


def state_words(position: int, tokens: int) -> Words:
    """`state` before a pass of so many rows after so many cached ones, uint32 [8]; nothing sampled yet."""
    return _words(STATE_WORDS, (position, tokens))


def sampling_words(request: Request) -> Words:
    """What the buffer `sampling` holds, uint32 [32]; see `SAMPLING_WORDS`."""
    stop = sorted(request.stop)
    words = _words(SAMPLING_WORDS, (0, request.top_k, 0, request.seed, 0, len(stop), *stop))
    floats = words.view(np.float32)
    floats[0], floats[2], floats[4] = request.temperature, request.top_p, request.repetition_penalty
    return words


def _words(size: int, values: Sequence[int]) -> Words:
    words = np.zeros(size, np.uint32)
    words[: len(values)] = values
    return words
