"""Conditional writes: a dataset is written only if it is in the state that the writer has seen."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from lumos.store.database import Database


class WriteCondition:
    """A condition under which a dataset is written.

    `check` reads the dataset in the transaction that holds its lock, and raises an error if the
    dataset has changed. After the first commit, later transactions are not checked, because they
    belong to the same write. `on_written` reads the dataset at the end of that transaction, before
    another writer can change it.
    """

    def __init__(
        self,
        urn: str,
        check: Callable[[Database], None],
        on_written: Callable[[Database], None],
    ) -> None:
        self.urn = urn
        self.check = check
        self.on_written = on_written
        self.is_met = False


_CONDITION: ContextVar[WriteCondition | None] = ContextVar("lumos_write_condition", default=None)


def pending_condition() -> WriteCondition | None:
    """The condition of this thread that no transaction has checked yet, or None."""
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
