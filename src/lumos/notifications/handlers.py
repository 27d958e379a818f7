"""User-defined functions that are called for changes."""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple, TypeAlias

from lumos.errors import MisuseError
from lumos.model.change import ChangeEvent, EventType, event_types
from lumos.model.dataset_pattern import DatasetPattern
from lumos.store import Transaction

ChangeHandler: TypeAlias = Callable[[ChangeEvent], object]
_log = logging.getLogger(__name__)


class _Registration(NamedTuple):
    handler: ChangeHandler
    types: frozenset[EventType]
    breaking: bool | None
    dataset: DatasetPattern | None

    def matches(self, event: ChangeEvent) -> bool:
        return (
            (not self.types or event.type in self.types)
            and (self.breaking is None or event.breaking is self.breaking)
            and (self.dataset is None or self.dataset.matches(event.urn))
        )


class ChangeHandlers:
    """Calls each handler once for each new event, after the event is committed.

    Exceptions of a handler are logged; they stop neither the caller nor other handlers.
    """

    def __init__(self) -> None:
        self._registrations: list[_Registration] = []

    def add(
        self,
        handler: ChangeHandler,
        *,
        types: Iterable[EventType | str] = (),
        breaking: bool | None = None,
        dataset: str | None = None,
    ) -> None:
        if not callable(handler):
            raise MisuseError(f"{handler!r} is not callable. Pass a function that takes an event.")
        pattern = None if dataset is None else DatasetPattern(dataset)
        selected_types = frozenset(event_types(types))
        self._registrations.append(_Registration(handler, selected_types, breaking, pattern))

    @contextmanager
    def registered(self, handler: ChangeHandler) -> Iterator[None]:
        """Call a handler for every new event until the context ends."""
        registration = _Registration(handler, frozenset(), None, None)
        self._registrations.append(registration)
        try:
            yield
        finally:
            self._registrations.remove(registration)

    def before_commit(self, transaction: Transaction, event: ChangeEvent) -> None:
        """Do nothing, because handlers are only called for committed events."""

    def after_commit(self, event: ChangeEvent) -> None:
        for each in tuple(self._registrations):
            if each.matches(event):
                _call(each.handler, event)


def _call(handler: ChangeHandler, event: ChangeEvent) -> None:
    try:
        handler(event)
    except Exception:  # noqa: BLE001 - user code may raise anything
        name = getattr(handler, "__qualname__", None) or repr(handler)
        context = {"handler": name, "event": event.event_id, "urn": event.urn}
        _log.exception("change handler %s failed", name, extra={"facts": context})
