"""How a dataset goes on with those that it was before, takes in others, and comes apart."""

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

from lumos.annotations.attribution import respelled, seen_again
from lumos.annotations.rules import paths_of
from lumos.model.change import ChangeEvent, EventType
from lumos.model.dataset import Location
from lumos.model.dataset_pattern import strip_extensions
from lumos.model.discovery import FoundDataset
from lumos.model.urn import Urn
from lumos.model.words import Words
from lumos.schemas.wording import split_summary
from lumos.store import KnownDataset, Transaction

# What people and reporters state; the rest is measured and starts again with each part.
_INHERITED: Final = ("documentation", "ownership", "governance", "properties", "schedule")
_MOST_PARTS: Final = 1_000


def event_id(*facts: str) -> str:
    """The same change always has the same id, so that finding it again records nothing."""
    return hashlib.blake2b("\n".join(facts).encode(), digest_size=16).hexdigest()


def dataset_name(found: FoundDataset, urn: Urn) -> str:
    """What people call a found dataset."""
    return strip_extensions(urn.name) if found.name is None else found.name


class Inheritance(NamedTuple):
    """What a part takes over from the dataset that it was split from."""

    aspects: Mapping[str, Any] = {}
    annotations: Mapping[str, Words] = {}


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

    def origin(
        self, transaction: Transaction, found: FoundDataset, known: KnownDataset | None
    ) -> KnownDataset | None:
        """The dataset that a found one was a part of until now.

        A part that is found later than the others, such as an unreadable file, still has one.
        """
        old = self._known(transaction, found.split_from)
        if old is None or old.state == "missing" or (old.state == "split" and known is not None):
            return None
        return old

    def inherit(
        self, transaction: Transaction, old: KnownDataset, found: FoundDataset, urn: Urn
    ) -> Inheritance:
        """What was stated about a dataset, as far as it fits a part that has nothing of its own."""
        own = {name for name in _INHERITED if transaction.aspect(str(urn), name) is not None}
        aspects = {name: transaction.aspect(old.urn, name) for name in _INHERITED}
        if properties := aspects["properties"]:
            # Those of the platform describe the old table itself.
            aspects["properties"] = {
                name: text
                for name, text in properties.items()
                if not name.startswith(f"{old.platform}.")
            }
        paths = {"", *paths_of(found.schema)}
        stated = {} if transaction.remarks.get(str(urn)) else transaction.remarks.get(old.urn)
        annotations = {
            reporter: {key: word for key, word in words.items() if key.path in paths}
            for reporter, words in respelled(stated, found.schema).items()
        }
        return Inheritance(
            {name: value for name, value in aspects.items() if value and name not in own},
            seen_again(annotations, found.schema, found.told, urn.platform),
        )

    def split(
        self, transaction: Transaction, path: str, parts: Mapping[Urn, FoundDataset]
    ) -> ChangeEvent | None:
        """Records that a dataset came apart, and retires it unless one part goes on with its URN.

        Nothing is recorded where it is known already.
        """
        old = self._known(transaction, path)
        urns = sorted(map(str, parts))
        if old is None or old.state != "live" or urns == [old.urn]:
            return None
        goes_on = old.urn in urns
        # The cloud version of a part that goes on moves with the split itself, so that it cannot
        # tell a repeated scan from a second split after the parts were merged again.
        begun = (
            transaction.last_event_id(old.urn, EventType.MERGED) if goes_on else old.cloud_version
        )
        location: Location | None = transaction.aspect(old.urn, "location")
        event = ChangeEvent(
            event_id=event_id(old.urn, EventType.SPLIT, begun or "", *urns),
            urn=old.urn,
            type=EventType.SPLIT,
            at=self._at,
            cause="scan",
            cloud_version=old.cloud_version,
            schema_version=old.schema_version,
            source_path=None if location is None else location.uri,
            old_schema=old.schema_hash,
            new_schema=old.schema_hash,
            summary=split_summary(_labels(parts)),
            metadata={
                "source": self._source,
                "part_count": len(urns),
                "parts": " ".join(urns[:_MOST_PARTS]),
            },
        )
        is_new = transaction.save_event(event)
        if not goes_on:
            transaction.retire(old, at=self._at)
        if not is_new:
            return None
        sizes = {str(urn): found.statistics.total_size_bytes for urn, found in parts.items()}
        transaction.costs.divide_overrides(old.urn, sizes)
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


def _labels(parts: Mapping[Urn, FoundDataset]) -> list[str]:
    """The names of some datasets, with their folder where several have the same name."""
    ordered = sorted(parts.items(), key=lambda part: str(part[0]))
    names = [dataset_name(found, urn) for urn, found in ordered]
    times = Counter(names)
    return [
        name if times[name] == 1 else "/".join(urn.path[-2:])
        for name, (urn, _) in zip(names, ordered, strict=True)
    ]
