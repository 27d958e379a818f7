"""Servers that have a bad day, the same one each time they are asked for it."""

from collections.abc import Callable, Sequence
from random import Random

from .http import Answer, Mishap, Request


def busy(status: int, retry_after: str | None = None) -> Mishap:
    answer = Answer.of({"message": "too much to do", "status": status}, status)
    if retry_after is not None:
        answer = answer._replace(headers={**answer.headers, "Retry-After": retry_after})
    return Mishap(str(status), answer=answer)


TOO_MANY = busy(429, "0")
UNAVAILABLE = busy(503)
RESET_BEFORE = Mishap("reset before")
RESET_AFTER = Mishap("reset after the write", takes_effect=True)
TIME_OUT_AFTER = Mishap("time out after the write", takes_effect=True, silent=True)
ALL_KINDS = (TOO_MANY, UNAVAILABLE, RESET_BEFORE, RESET_AFTER, TIME_OUT_AFTER)


def _any(_request: Request) -> bool:
    return True


class Faults:
    """A share of the requests goes wrong; which ones and how hangs on the seed and their number."""

    def __init__(
        self,
        seed: int,
        share: float = 0.3,
        kinds: Sequence[Mishap] = ALL_KINDS,
        only: Callable[[Request], bool] = _any,
    ) -> None:
        self.seed = seed
        self.share = share
        self.kinds = kinds
        self.only = only

    def __call__(self, request: Request) -> Mishap | None:
        if not self.only(request):
            return None
        dice = Random(f"{self.seed} {request.number}")
        return dice.choice(self.kinds) if dice.random() < self.share else None


class InTurn:
    """The first requests that match meet these, one after the other; None lets one through."""

    def __init__(
        self,
        *mishaps: Mishap | None,
        only: Callable[[Request], bool] = _any,
    ) -> None:
        self.left = list(mishaps)
        self.only = only

    def __call__(self, request: Request) -> Mishap | None:
        return self.left.pop(0) if self.left and self.only(request) else None
