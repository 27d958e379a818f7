"""Conditional writes: a dataset is written only if it is in the state that the writer has seen."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from lumos.store.database import Database


class WriteCondition:
    """What has to hold when a dataset is written.

    `check` reads the dataset from a view of the transaction that holds its lock, and raises an
    error if the dataset has changed. Once a transaction with the check has committed, later ones
    are not checked: they belong to the same write.
    """

    def __init__(self, urn: str, check: Callable[[Database], None]) -> None:
        self.urn = urn
        self.check = check
        self.is_met = False


_CONDITION: ContextVar[WriteCondition | None] = ContextVar("lumos_write_condition", default=None)


def pending_condition() -> WriteCondition | None:
    """The condition of this thread's next write, if it has one that was not met yet."""
    condition = _CONDITION.get()
    return None if condition is None or condition.is_met else condition


@contextmanager
def write_only_if(condition: WriteCondition) -> Iterator[None]:
    """Check a condition in the first transaction of the block that locks its dataset."""
    token = _CONDITION.set(condition)
    try:
        yield
    finally:
        _CONDITION.reset(token)
