"""How hard property tests search: a test's own number of examples, and 20 times as many under the profile `fuzz`."""

from hypothesis import settings


def examples(usual: int) -> settings:
    """A decorator: `usual` examples under the profile `dev`, which has 100 by default, fewer under `ci`."""
    return settings(max_examples=max(1, usual * settings().max_examples // 100))
