"""What of a prompt is in a cache already."""

import pytest

from inferometer.engines.kept_prefix import kept_prefix


@pytest.mark.parametrize(
    ("held", "prompt", "kept"),
    [
        ((), (1, 2), 0),
        ((1, 2), (1, 2, 3), 2),
        ((1, 2, 9), (1, 2, 3), 2),
        ((9, 2, 3), (1, 2, 3), 0),
        ((1, 2, 3), (1, 2, 3), 2),  # the last is read again, for its logits
        ((1, 2, 3, 4), (1, 2), 1),
        ((1,), (1,), 0),
    ],
)
def test_the_common_beginning_is_kept_but_for_the_last_token(
    held: tuple[int, ...], prompt: tuple[int, ...], kept: int
) -> None:
    assert kept_prefix(held, prompt) == kept
