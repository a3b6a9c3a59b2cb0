"""How a candidate fails while it runs in a process of its own."""


class CandidateFailed(Exception):
    """It raised, ended, took too long, or gave what isn't an answer; the message says which.

    `lane`: whose call it was, by place; None: whoever it was.
    """

    def __init__(self, reason: str, lane: int | None = None) -> None:
        super().__init__(reason)
        self.lane = lane
