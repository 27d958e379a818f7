"""Who else hears of the change events that are recorded."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from lumos.model.change import ChangeEvent

if TYPE_CHECKING:
    from lumos.store.transaction import Transaction


class Listener(Protocol):
    """Hears of every event that is new to the store, in the process that records it."""

    def within(self, transaction: "Transaction", event: ChangeEvent) -> None:
        """Before the commit, when all else is written: what it writes shares the event's fate."""

    def after(self, event: ChangeEvent) -> None:
        """After the commit; nothing that happens here can undo the event."""


class Completer(Listener):
    """A listener that adds to events what can only be told when all else is written."""

    @abstractmethod
    def completed(
        self, transaction: "Transaction", events: Sequence[ChangeEvent]
    ) -> Sequence[ChangeEvent]:
        """The same events, in the same order, as they are recorded and as others hear of them."""
