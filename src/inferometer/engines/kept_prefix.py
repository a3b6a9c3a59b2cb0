"""What of a prompt a KV cache holds already, from the answer before: a conversation's next question reads the rest."""

from collections.abc import Sequence


def kept_prefix(held: Sequence[int], prompt: Sequence[int]) -> int:
    """Tokens at the beginning of `prompt` that needn't be read again.

    One at least is read: its pass gives the logits that the first new token is chosen from.

    Args:
        held: The tokens whose keys and values are in the cache, by position.
        prompt: One token or more.
    """
    most = min(len(held), len(prompt) - 1)
    return next((index for index in range(most) if held[index] != prompt[index]), most)
