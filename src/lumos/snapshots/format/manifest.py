"""The counts and hashes of a snapshot, which are updated entry by entry."""

import hashlib
from typing import Any

import msgspec

from lumos.model.catalog import CatalogEntry
from lumos.snapshots.format.codec import canonical
from lumos.snapshots.format.document import (
    DATASETS,
    FORMAT,
    FORMAT_VERSION,
    KINDS,
    EntryKind,
    SnapshotCounts,
    SnapshotFacts,
    SnapshotHashes,
    SnapshotHeader,
)

_MODULUS = 1 << 256


class ManifestBuilder:
    """Counts entries and sums up their hashes."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {kind.plural: 0 for kind in KINDS}
        self._sums: dict[str, int] = {kind.plural: 0 for kind in KINDS}
        self._deleted = 0
        self._edges = 0
        self._owners: set[tuple[str, str]] = set()
        self._tags: set[str] = set()

    def add(self, kind: EntryKind, value: Any, content_hash: str) -> None:
        """Count an entry."""
        self._counts[kind.plural] += 1
        self._sums[kind.plural] += int(content_hash, 16)
        if kind is DATASETS:
            if (lineage := value.lineage) is not None:
                self._edges += len(lineage.upstream)
            if (ownership := value.ownership) is not None:
                for owner in ownership.owners:
                    self._owners.add((owner.kind, owner.name))
            if (governance := value.governance) is not None:
                self._tags.update(governance.tags)
            if isinstance(value, CatalogEntry) and value.deleted:
                self._deleted += 1

    def summary(self) -> dict[str, Any]:
        """The counts and sums as plain values, for `add_summary`."""
        return {
            "found": self._counts,
            "sums": {name: f"{total % _MODULUS:x}" for name, total in self._sums.items()},
            "deleted": self._deleted,
            "edges": self._edges,
            "owners": sorted(self._owners),
            "tags": sorted(self._tags),
        }

    def add_summary(self, summary: dict[str, Any]) -> None:
        """Add the summary of another builder."""
        for name, count in summary["found"].items():
            self._counts[name] += count
            self._sums[name] += int(summary["sums"][name], 16)
        self._deleted += summary["deleted"]
        self._edges += summary["edges"]
        self._owners.update((kind, name) for kind, name in summary["owners"])
        self._tags.update(summary["tags"])

    @property
    def counts(self) -> SnapshotCounts:
        return SnapshotCounts(
            **self._counts,
            deleted=self._deleted,
            lineage_edges=self._edges,
            owners=len(self._owners),
            tags=len(self._tags),
        )

    def hashes(self, header: SnapshotHeader) -> SnapshotHashes:
        """The hashes of a snapshot with this header and the entries added so far."""
        sums = {name: f"{total % _MODULUS:064x}" for name, total in self._sums.items()}
        return hashes_of(header, sums)


def header_of_facts(facts: SnapshotFacts, totals: ManifestBuilder) -> SnapshotHeader:
    """The header of a snapshot with these entries."""
    header = SnapshotHeader(
        format=FORMAT,
        format_version=FORMAT_VERSION,
        counts=totals.counts,
        **msgspec.structs.asdict(facts),
    )
    return msgspec.structs.replace(header, hashes=totals.hashes(header))


def hashes_of(header: SnapshotHeader, sums: dict[str, str]) -> SnapshotHashes:
    """The hashes of a snapshot, given the sums of the content hashes of each kind."""
    header_hash = facts_hash(header)
    lines = [f"header {header_hash}", *(f"{kind.plural} {sums[kind.plural]}" for kind in KINDS)]
    overall = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    return SnapshotHashes(header=header_hash, overall=overall, **sums)


def facts_hash(header: SnapshotHeader) -> str:
    """The hash of the header; excludes the export time, so that it only depends on the state."""
    plain = msgspec.to_builtins(header)
    hashed_fields = {
        name: value for name, value in plain.items() if name not in ("exported_at", "hashes")
    }
    return hashlib.sha256(canonical(hashed_fields)).hexdigest()
