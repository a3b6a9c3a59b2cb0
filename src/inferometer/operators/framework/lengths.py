"""How long the sequences are that an attention call serves: no argument says it, a step's name or the user may."""

import msgspec
from msgspec.structs import replace

_SAID = "each sequence has the length of --context"
_LONGER = "all sequences are longer than the window, or all shorter"


class Context(msgspec.Struct, frozen=True):
    """Sums over the sequences of a step.

    `queries`: new tokens. `keys`: tokens that they see, the new ones included. `pairs`: of a query and a key that it
    sees. `assumes`: what is taken for granted of them.
    """

    queries: int
    keys: int
    pairs: int
    assumes: tuple[str, ...] = ()

    def within(self, window: int) -> "Context | None":
        """What is left where each new token sees `window` tokens at most; None where the sums don't say.

        Of a step with one new token a sequence, what they see together is at most that of equal lengths.
        """
        if self.keys <= window:
            return self
        if self.pairs != self.keys:  # some sequences have several new tokens
            return None
        seen = self.queries * min(self.keys // self.queries, window)
        return replace(self, keys=seen, pairs=seen, assumes=(*self.assumes, _LONGER))


class Lengths(msgspec.Struct, frozen=True):
    """What is known of them.

    `context`: of the step's name; where that is None, `each`: the tokens of every sequence in a decode step, as the
    user says. `window`: tokens that a query sees at most; None where there is no window.
    """

    context: Context | None = None
    each: int | None = None
    window: int | None = None

    def seen_by(self, queries: int) -> Context | None:
        """What so many new tokens see; None where it isn't known."""
        context = self.context
        if context is None and self.each is not None:
            context = Context(queries, queries * self.each, queries * self.each, (_SAID,))
        return context.within(self.window) if context is not None and self.window is not None else context
