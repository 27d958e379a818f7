"""Functions of the user's own that are called for changes."""

import logging
from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeAlias

from lumos.errors import MisuseError, UnknownName
from lumos.model.change import ChangeEvent, EventType
from lumos.model.dataset_pattern import DatasetPattern
from lumos.store import Transaction

ChangeHandler: TypeAlias = Callable[[ChangeEvent], object]
_log = logging.getLogger(__name__)


class _Registered(NamedTuple):
    handler: ChangeHandler
    types: frozenset[EventType]
    breaking: bool | None
    dataset: DatasetPattern | None

    def wants(self, event: ChangeEvent) -> bool:
        return (
            (not self.types or event.type in self.types)
            and (self.breaking is None or event.breaking is self.breaking)
            and (self.dataset is None or self.dataset.matches(event.urn))
        )


class Handlers:
    """Calls each handler once for each new event, when the event is safely recorded.

    What a handler raises is logged and harms neither the work nor other handlers.
    """

    def __init__(self) -> None:
        self._registered: list[_Registered] = []

    def add(
        self,
        handler: ChangeHandler,
        *,
        types: Iterable[EventType | str],
        breaking: bool | None,
        dataset: str | None,
    ) -> None:
        if not callable(handler):
            raise MisuseError(f"{handler!r} cannot be called. Give a function that takes an event")
        pattern = None if dataset is None else DatasetPattern(dataset)
        wanted = frozenset(event_types(types))
        self._registered.append(_Registered(handler, wanted, breaking, pattern))

    def within(self, transaction: Transaction, event: ChangeEvent) -> None:
        """Nothing: handlers only hear of what is certain."""

    def after(self, event: ChangeEvent) -> None:
        for each in tuple(self._registered):
            if each.wants(event):
                _call(each.handler, event)


def event_types(names: Iterable[EventType | str]) -> tuple[EventType, ...]:
    """Types by name, in any case; a single one may stand alone."""
    return tuple(map(_event_type, (names,) if isinstance(names, str) else names))


def _event_type(name: EventType | str) -> EventType:
    try:
        return EventType(str(name).upper())
    except ValueError:
        raise UnknownName("event type", str(name), [each.value for each in EventType]) from None


def _call(handler: ChangeHandler, event: ChangeEvent) -> None:
    try:
        handler(event)
    except Exception:  # noqa: BLE001 - a function of the user's own may raise anything
        name = getattr(handler, "__qualname__", None) or repr(handler)
        facts = {"handler": name, "event": event.event_id, "urn": event.urn}
        _log.exception("change handler %s failed", name, extra={"facts": facts})
