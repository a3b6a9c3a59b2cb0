"""The next token where nothing is drawn, and the state after it."""

from collections.abc import Mapping
from typing import Any

from inferometer.backends.wgsl.numpy_kernels.argmax_partial import ordered


def run(arrays: Mapping[str, Any], constants: Mapping[str, float], grid: tuple[int, int, int]) -> None:
    """The largest of `argmax_partial`'s, of equals the lowest index."""
    step_on(arrays, most_probable(arrays["partials"], int(constants["GROUPS"])))


def most_probable(partial: Any, groups: int) -> int:
    """Index of the largest; stretches are in the order of the vocabulary, so the first of equals is the lowest."""
    partial_G2 = partial[: 2 * groups].reshape(groups, 2)
    return int(partial_G2[ordered(partial_G2[:, 0]).argmax(), 1])


def step_on(arrays: Mapping[str, Any], token: int) -> None:
    """Writes the token after the rows of the pass, the first stop token once one came; the next step has one row."""
    state, sampling = arrays["state"], arrays["sampling"]
    stops = sampling[6 : 6 + int(sampling[5])]
    if state[3]:
        token = int(sampling[6])
    elif token in stops:
        state[3] = 1
    state[0] += state[1]
    arrays["tokens"][state[0]] = token
    state[1] = 1
    state[2] += 1
