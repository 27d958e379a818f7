"""Plans a migration: how the target stores each aspect, the calls, and a runbook."""

import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import islice
from math import ceil
from pathlib import Path
from shlex import quote
from typing import Any, Final

from lumos.catalogs import ReadsEntries, ReadsMany, ReplacesEntries, StoresItems, WritesMany
from lumos.catalogs.migration.certificate import BATCH_SIZE
from lumos.catalogs.migration.reports import (
    Holding,
    LossyAspect,
    MigrationPlan,
    MigrationReport,
    PlannedAspect,
    PlannedCalls,
)
from lumos.catalogs.migration.verification import aspects_of, platform_of_catalog
from lumos.errors import CatalogUnavailable, LumosError
from lumos.snapshots.catalogs import SnapshotCatalog
from lumos.snapshots.format.document import DATASETS, KINDS, EntryKind
from lumos.snapshots.format.reader import OpenSnapshot, open_snapshot

# The number of entries that are read to measure a round trip.
_SAMPLE_SIZE: Final = 20
_MAX_EXAMPLES: Final = 3
# From the least exact to the exact one.
_HOLDINGS: Final = ("store", "properties", "partly", "native")


def plan_migration(
    report: MigrationReport,
    file: Path,
    catalog: SnapshotCatalog,
    *,
    catalogs: tuple[str, str],
    seconds: float,
) -> MigrationPlan:
    """The plan for a snapshot of the source, which a dry run compared with the target.

    `catalogs` are the source and the target as the user named them, for the commands; `seconds` is
    the time that the dry run took to read the source and the target completely.
    """
    platform = platform_of_catalog(catalog)
    with open_snapshot(file) as snapshot:
        aspects, lossy = _plan_aspects(snapshot, platform)
        calls = _plan_calls(report, snapshot, platform, is_remote=catalog.file is None)
        round_trip = _measure_round_trip(snapshot, platform) if calls.total else 0.0
    return MigrationPlan(
        source=report.source,
        target=report.target,
        aspects=aspects,
        lossy=lossy,
        calls=calls,
        # The import and the verification each read as much as the dry run.
        seconds=round(2 * seconds + calls.write * round_trip, 1),
        round_trip=round(round_trip, 4),
        runbook=tuple(_runbook(*map(quote, catalogs), has_needs=bool(report.needs))),
        dry_run=report,
    )


def _plan_aspects(
    snapshot: OpenSnapshot, platform: Any
) -> tuple[dict[str, PlannedAspect], tuple[LossyAspect, ...]]:
    counts: defaultdict[str, Counter[Holding]] = defaultdict(Counter)
    lossy: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for kind in KINDS:
        for value in snapshot.entries(kind):
            try:
                stored = _as_stored(platform, kind, value)
                storage = _storage_by_aspect(platform, kind, value)
            except CatalogUnavailable:
                raise
            except LumosError:
                # The target cannot store the entry; the dry run reports it as refused.
                continue
            for name, storage_kind in storage.items():
                counts[f"{kind.singular}.{name}"][storage_kind] += 1
            if stored is not None and stored != value:
                key = getattr(value, kind.key)
                source, target = aspects_of(value), aspects_of(stored)
                for name in source:
                    if source[name] != target.get(name):
                        lossy[kind.singular, name].append(key)
    aspects = {
        name: PlannedAspect(
            source=each.total(), holding=min(each, key=_HOLDINGS.index), counts=dict(each)
        )
        for name, each in sorted(counts.items())
    }
    return aspects, tuple(
        LossyAspect(
            aspect=f"{kind}.{name}",
            entries=len(keys),
            examples=tuple(keys[:_MAX_EXAMPLES]),
            why=f"{platform.kind} cannot store it exactly; snapshot and store have all of it",
        )
        for (kind, name), keys in sorted(lossy.items())
    )


def _storage_by_aspect(platform: Any, kind: EntryKind, value: Any) -> dict[str, Holding]:
    """How the target stores each aspect of an entry, as the import will report it."""
    if kind is not DATASETS or not isinstance(platform, ReplacesEntries):
        # The store has fields for everything.
        is_native = platform is None or kind is DATASETS or isinstance(platform, StoresItems)
        return dict.fromkeys(aspects_of(value), "native" if is_native else "store")
    storage = platform.storage_of(value)
    raw = storage.get("raw", "properties")
    names = value.__struct_fields__
    # Every catalog can mark datasets as deleted.
    others: dict[str, Holding] = {"deleted": "native"}
    return {
        name: storage.get(name) or others.get(name, "properties" if name in names else raw)
        for name in aspects_of(value)
    }


def _as_stored(platform: Any, kind: EntryKind, value: Any) -> Any:
    """An entry as the target returns it after a write; None if it cannot store the kind."""
    if kind is DATASETS:
        return platform.as_stored(value) if isinstance(platform, ReplacesEntries) else value
    return platform.item_as_stored(value) if isinstance(platform, StoresItems) else None


def _plan_calls(
    report: MigrationReport, snapshot: OpenSnapshot, platform: Any, *, is_remote: bool
) -> PlannedCalls:
    """The calls for the import and the verification; files and the store need none."""
    if not is_remote or platform is None:
        return PlannedCalls(read=0, write=0)
    totals = report.imported.sums.kinds
    changed = {name: each.created + each.changed for name, each in totals.items()}
    datasets = changed.pop(DATASETS.plural, 0)
    batch = platform.batch_size if isinstance(platform, WritesMany) else 1
    writes = ceil(datasets / batch) + (
        sum(changed.values()) if isinstance(platform, StoresItems) else 0
    )
    header = snapshot.header.counts
    entries = header.datasets if header else 0
    per_read = BATCH_SIZE if isinstance(platform, ReadsMany) else 1
    return PlannedCalls(read=2 * ceil(entries / per_read), write=writes)


def _measure_round_trip(snapshot: OpenSnapshot, platform: Any) -> float:
    """The seconds that the target needs to answer one call."""
    if not isinstance(platform, ReadsEntries):
        return 0.0
    keys = [entry.urn for entry in islice(snapshot.entries(DATASETS), _SAMPLE_SIZE)]
    start = time.perf_counter()
    for _ in range(3):
        platform.get_many(keys)
    return (time.perf_counter() - start) / 3


def _runbook(source: str, target: str, *, has_needs: bool) -> Iterator[str]:
    pair = f"{source} {target}"
    if has_needs:
        yield (
            "Decide on the names that need a mapping and write mapping.yaml; its lines: "
            f"lumos migrate {pair} --dry-run"
        )
    mapping = " --mapping mapping.yaml" if has_needs else ""
    yield f"Back up the target: lumos export before.jsonl.zst --platform {target}"
    yield (
        f"Migrate, and keep the exported source: lumos migrate {pair}{mapping} -o source.jsonl.zst"
    )
    yield f"If it is interrupted, continue: lumos migrate {pair}{mapping} --resume"
    yield f"Compare both sides: lumos diff {pair}{mapping}"
    yield (
        "Keep the certificate that the migration wrote, and check it later: "
        "lumos migrate verify CERTIFICATE"
    )
    yield f"If the result is not wanted, restore the target: lumos migrate {pair} --rollback"
