"""How a dataset goes on with those that it was before, and takes in others."""

import hashlib
from collections.abc import Callable
from datetime import datetime

from lumos.model.change import ChangeEvent, EventType
from lumos.model.discovery import FoundDataset
from lumos.model.urn import Urn
from lumos.store import KnownDataset, Transaction


def event_id(*facts: str) -> str:
    """The same change always has the same id, so that finding it again records nothing."""
    return hashlib.blake2b("\n".join(facts).encode(), digest_size=16).hexdigest()


class Succession:
    """Hands histories over in a scan of one source."""

    def __init__(self, urn_of: Callable[[str], Urn], *, source: str, at: datetime) -> None:
        self._urn_of = urn_of
        self._source = source
        self._at = at

    def begin(
        self, transaction: Transaction, found: FoundDataset, urn: Urn, *, name: str
    ) -> ChangeEvent | None:
        """Renames what a dataset was before, and takes others in if it is there by then."""
        event = None
        old = self._known(transaction, found.renamed_from)
        if old is not None and transaction.known(str(urn)) is None:
            transaction.rename(old, to=str(urn), name=name, at=self._at)
            event = self._saved(transaction, EventType.RENAMED, urn, old, old, found)
        return self.complete(transaction, found, urn) or event

    def complete(
        self, transaction: Transaction, found: FoundDataset, urn: Urn
    ) -> ChangeEvent | None:
        """Takes in the datasets that are part of this one, as far as it is there."""
        event = None
        for path in filter(None, (found.renamed_from, *found.merged_from)):
            old, now = self._known(transaction, path), transaction.known(str(urn))
            if old is not None and now is not None and old.state == "live":
                transaction.absorb(old, into=str(urn), at=self._at)
                event = self._saved(transaction, EventType.MERGED, urn, old, now, found)
        return event

    def _known(self, transaction: Transaction, path: str | None) -> KnownDataset | None:
        return None if path is None else transaction.known(str(self._urn_of(path)))

    def _saved(
        self,
        transaction: Transaction,
        type: EventType,
        urn: Urn,
        old: KnownDataset,
        now: KnownDataset,
        found: FoundDataset,
    ) -> ChangeEvent:
        what = "was" if type is EventType.RENAMED else "took in"
        event = ChangeEvent(
            event_id=event_id(str(urn), type, old.urn, old.cloud_version),
            urn=str(urn),
            type=type,
            at=self._at,
            cause="scan",
            cloud_version=now.cloud_version,
            schema_version=now.schema_version,
            source_path=found.location.uri,
            old_schema=old.schema_hash,
            new_schema=now.schema_hash,
            summary=f"{what} {old.urn}",
            metadata={"source": self._source, "from": old.urn},
        )
        transaction.save_event(event)
        return event
