"""How hard property tests search: a test's own number of examples, and 20 times as many under the profile `fuzz`."""

from hypothesis import settings


def examples(usual: int) -> settings:
    """A decorator: `usual` examples under the profiles `dev` and `ci`, which have 100 by default."""
    return settings(max_examples=usual * settings().max_examples // 100)
