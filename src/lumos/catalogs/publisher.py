"""Tells a catalog what it has not heard of yet: after the commit, some entries at a time.

What is told is what the store knows by then, merged with what people wrote in the catalog. A
catalog that is down keeps nobody from working: its news wait. An entry that it refuses waits by
itself. Telling the same twice does no harm, so that a process may be killed anywhere.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeAlias

from lumos.catalogs import (
    Conflict,
    DeletesEntries,
    HoldsItems,
    Platform,
    ReadsEntries,
    Refused,
    ReplacesEntries,
    WritesInBatches,
    WritesMany,
)
from lumos.catalogs.interface import readable, sides_in
from lumos.catalogs.reports import PublishConflict, PublishReport, RefusedPublish
from lumos.catalogs.three_way_merge import merged_item
from lumos.errors import CatalogError, CatalogUnavailable, LumosError
from lumos.model.catalog import CatalogEntry
from lumos.model.json_codec import from_json, to_json
from lumos.model.privacy import for_catalogs
from lumos.progress import Progress
from lumos.snapshots.catalogs import jobs_with_known_ends
from lumos.snapshots.format.document import (
    DATASETS,
    GLOSSARY,
    GROUPS,
    JOBS,
    OTHERS,
    USERS,
    EntryKind,
)
from lumos.snapshots.import_merge import merge_imported, written_by_lumos
from lumos.snapshots.store_entries import entry_of
from lumos.store import Store
from lumos.store.catalog_outbox import OutboxEntry
from lumos.store.database import LockHeld

# What others refer to comes first.
_ORDER: Final = (GLOSSARY, USERS, GROUPS, OTHERS, DATASETS, JOBS)
# A file is written anew each time, a server is asked.
_IN_A_FILE: Final = 5000
_ON_A_SERVER: Final = 200
# What is made from a dataset that was new to the catalog is told once more.
_ROUNDS: Final = 3

_Load: TypeAlias = list[tuple[EntryKind, Sequence[OutboxEntry]]]


class _PublishedEntry(NamedTuple):
    """A piece of news that the catalog has heard, and what Lumos claims there from now on."""

    kind: EntryKind
    news: OutboxEntry
    claim: Any | None
    is_new: bool


class CatalogPublisher:
    """Tells one catalog of what one store knows."""

    def __init__(
        self,
        store: Store,
        platform: Platform,
        *,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store = store
        self._platform = platform
        self._clock = clock

    @property
    def is_first(self) -> bool:
        """Whether the catalog was never told of this store."""
        return not self._store.catalog_outbox.is_subscribed(self._platform.name)

    def note_all(self) -> None:
        """Lets everything be news to the catalog, as it is when it is told for the first time."""
        name = self._platform.name

        def note(transaction: Any) -> None:
            transaction.catalog_outbox.subscribe(name, at=self._clock())
            transaction.catalog_outbox.add_all(name)

        self._store.transact(note)

    def deliver(self, progress: "Progress | None" = None) -> PublishReport:
        """Tells the catalog of all news, or of as many as it takes; one process at a time."""
        publishing = _Publishing(self._store, self._platform, progress)
        if self.is_first:
            self._store.transact(
                lambda transaction: transaction.catalog_outbox.subscribe(
                    self._platform.name, at=self._clock()
                )
            )
        elif not self._store.catalog_outbox.counts(self._platform.name):
            return publishing.report()
        try:
            with self._store.lock(f"catalog {self._platform.name}"):
                publishing.run()
        except LockHeld:
            publishing.put_off("another process is telling it just now")
        return publishing.report()


class _Publishing:
    """One delivery, and what it comes to."""

    def __init__(self, store: Store, platform: Platform, progress: "Progress | None") -> None:
        self._store = store
        self._platform: Any = platform
        self._announce = progress
        self._sums = dict.fromkeys(("told", "unchanged", "hidden", "items"), 0)
        self._refused: dict[tuple[str, str], RefusedPublish] = {}
        self._conflicts: list[PublishConflict] = []
        self._problem: str | None = None
        self._status: int | None = None
        self._is_down = False

    def put_off(self, problem: str, status: int | None = None, *, is_down: bool = False) -> None:
        """Lets the rest wait."""
        self._problem, self._status, self._is_down = problem, status, is_down

    def run(self) -> None:
        for _ in range(_ROUNDS):
            begun, expected = 0, sum(self._waiting().values())
            for load in self._loads():
                if self._announce is not None:
                    share = begun / max(expected, begun, 1)
                    self._announce(f"Telling {self._platform.kind}", share=share, unit="entries")
                self._publish_load(load)
                begun += sum(len(news) for _, news in load)
                if self._problem is not None:
                    return
            if not begun:
                return

    def report(self) -> PublishReport:
        waiting = self._waiting()
        return PublishReport(
            platform=self._platform.name,
            kind=self._platform.kind,
            told=self._sums["told"],
            unchanged=self._sums["unchanged"],
            hidden=self._sums["hidden"],
            items=self._sums["items"],
            waiting=waiting.get(DATASETS.plural, 0) or sum(waiting.values()),
            refused=tuple(self._refused.values()),
            conflicts=tuple(self._conflicts),
            problem=self._problem,
            status=self._status,
            is_down=self._is_down,
        )

    def _waiting(self) -> dict[str, int]:
        """How much waits and was not refused just now, by kind."""
        waiting = self._store.catalog_outbox.counts(self._platform.name)
        for kind, _ in self._refused:
            if waiting.get(kind):
                waiting[kind] -= 1
        return waiting

    @cached_property
    def _size(self) -> int:
        if isinstance(self._platform, WritesInBatches):
            return _IN_A_FILE
        return self._platform.most if isinstance(self._platform, WritesMany) else _ON_A_SERVER

    @cached_property
    def _jobs_at(self) -> dict[str, set[str]]:
        """Which jobs read or write a dataset."""
        return self._store.lineage.jobs_by_dataset()

    def _loads(self) -> Iterator[_Load]:
        """All news, as much at a time as is told together."""
        load: _Load = []
        room = self._size
        for kind in _ORDER:
            after: str | None = None
            while page := self._store.catalog_outbox.pending(
                self._platform.name, kind.plural, after=after, limit=room
            ):
                after = page[-1].key
                news = [each for each in page if (kind.plural, each.key) not in self._refused]
                if news:
                    load.append((kind, news))
                room -= len(news)
                if room <= 0:
                    yield load
                    load, room = [], self._size
        if load:
            yield load

    def _publish_load(self, load: _Load) -> None:
        """Tells some news, and keeps what was told: all of it in a file, else as far as it went."""
        told: list[_PublishedEntry] = []
        is_batch = isinstance(self._platform, WritesInBatches)
        batch: AbstractContextManager[None] = self._platform.batch() if is_batch else nullcontext()
        before, conflicts = dict(self._sums), list(self._conflicts)
        try:
            with batch:
                for kind, news in load:
                    tell = self._datasets if kind is DATASETS else self._items
                    for each in tell(kind, news):
                        told.append(each)
        except (LumosError, OSError) as problem:
            status = problem.status if isinstance(problem, CatalogError) else None
            is_down = isinstance(problem, CatalogUnavailable)
            self.put_off(str(problem), status, is_down=is_down)
            if is_batch:
                told, self._sums, self._conflicts = [], before, conflicts
        self._store.transact(lambda transaction: self._keep(transaction, told))

    def _keep(self, transaction: Any, told: Sequence[_PublishedEntry]) -> None:
        name = self._platform.name
        for kind in _ORDER:
            done = [each for each in told if each.kind is kind]
            if not done:
                continue
            bases = {
                each.news.key: None if each.claim is None else to_json(each.claim) for each in done
            }
            transaction.journal.save_bases(name, kind.plural, bases)
            if kind is DATASETS:
                new = [each.news.key for each in done if each.is_new]
                transaction.catalog_outbox.add_downstream(name, new)
                jobs = {job for urn in new for job in self._jobs_at.get(urn, ())}
                # One that was told before was told without what is new; others are told anyway.
                told_jobs = transaction.journal.bases(name, JOBS.plural, jobs)
                transaction.catalog_outbox.add_again(name, JOBS.plural, told_jobs.keys())
            transaction.catalog_outbox.mark_published(
                name, kind.plural, [each.news for each in done]
            )

    def _bases(self, kind: EntryKind, keys: Sequence[str]) -> dict[str, Any]:
        known = self._store.journal.bases(self._platform.name, kind.plural, keys)
        return {key: from_json(body, kind.type) for key, body in known.items()}

    def _refuse(self, kind: EntryKind, refused: Refused) -> None:
        key = kind.plural, refused.urn
        self._refused[key] = RefusedPublish(
            kind=kind.singular, key=refused.urn, problem=str(refused.problem)
        )

    def _note_conflicts(self, key: str, conflicts: Sequence[Conflict]) -> None:
        self._conflicts += [
            PublishConflict(key=key, path=each.path, theirs=each.theirs, ours=each.ours)
            for each in conflicts
        ]

    def _datasets(self, kind: EntryKind, news: Sequence[OutboxEntry]) -> Iterator[_PublishedEntry]:
        keys = [each.key for each in news]
        stored = self._store.entries.get_many(keys)
        bases: dict[str, CatalogEntry] = self._bases(kind, keys)
        by_key = {each.key: each for each in news}
        live = {
            key: for_catalogs(entry_of(each))
            for key, each in stored.items()
            if each.known.state == "live"
        }
        gone = [key for key in keys if key not in live]
        # What Lumos never wrote there, or has hidden already, is none of its business.
        hidden = {
            key: _hidden(bases[key]) for key in gone if key in bases and not bases[key].deleted
        }
        for key in gone:
            if key not in hidden:
                yield _PublishedEntry(kind, by_key[key], bases.get(key), is_new=False)
        for key, changed in self._written(live, hidden, bases):
            claim = written_by_lumos(bases.get(key), live.get(key) or hidden[key], omitted=())
            yield _PublishedEntry(kind, by_key[key], claim, is_new=key not in bases)
            self._sums["hidden" if key in hidden else "told"] += 1
            self._sums["unchanged"] += not changed and key in live

    def _written(
        self,
        live: Mapping[str, CatalogEntry],
        hidden: Mapping[str, CatalogEntry],
        bases: Mapping[str, CatalogEntry],
    ) -> Iterator[tuple[str, bool]]:
        """The datasets that the catalog took, and whether that changed anything there."""
        platform = self._platform
        if not (isinstance(platform, ReadsEntries) and isinstance(platform, ReplacesEntries)):
            yield from self._emitted(live, hidden)
            return
        theirs, unread = readable(platform, [*live, *hidden])
        for refused in unread.values():
            self._refuse(DATASETS, refused)
        merged = {
            key: each
            for key, ours in {**live, **hidden}.items()
            if key not in unread
            and (
                each := merge_imported(
                    *sides_in(platform, bases.get(key), theirs.get(key), ours), ours, omitted=()
                )
            )
        }
        # Nothing is made anew only to be hidden.
        yield from ((key, False) for key in hidden if key not in merged and key not in unread)
        entries = [each.entry for each in merged.values()]
        for written in platform.put_many(entries, over=theirs):
            if isinstance(written, Refused):
                self._refuse(DATASETS, written)
            else:
                self._note_conflicts(written.urn, merged[written.urn].conflicts)
                yield written.urn, written.changed

    def _emitted(
        self, live: Mapping[str, CatalogEntry], hidden: Mapping[str, CatalogEntry]
    ) -> Iterator[tuple[str, bool]]:
        """The datasets that a catalog took which can neither be read nor written exactly."""
        for key, entry in {**live, **hidden}.items():
            try:
                if key in live:
                    self._platform.emit(entry.dataset)
                elif isinstance(self._platform, DeletesEntries):
                    self._platform.delete(key)
            except CatalogUnavailable:
                raise
            except LumosError as problem:
                self._refuse(DATASETS, Refused(key, problem))
            else:
                yield key, True

    def _items(self, kind: EntryKind, news: Sequence[OutboxEntry]) -> Iterator[_PublishedEntry]:
        platform = self._platform
        if not isinstance(platform, HoldsItems):
            yield from (_PublishedEntry(kind, each, None, is_new=False) for each in news)
            return
        keys = [each.key for each in news]
        bases, ours = self._bases(kind, keys), self._items_of(kind, keys)
        theirs: dict[str, Any] = platform.get_items(kind.type, keys)
        put: dict[str, Any] = {}
        for key, item in ours.items():
            base = bases.get(key)
            known = None if base is None else platform.item_as_held(base)
            merged = merged_item(known, theirs.get(key), item)
            self._note_conflicts(key, merged.conflicts)
            if platform.item_as_held(merged.item) != theirs.get(key):
                put[key] = merged.item
        refused = set()
        for problem in platform.put_items(list(put.values())):
            self._refuse(kind, problem)
            refused.add(problem.urn)
        for each in news:
            # What Lumos never wrote there is none of its business.
            is_gone = each.key not in ours and each.key in bases and each.key in theirs
            if is_gone:
                platform.erase_item(theirs[each.key])
            if each.key not in refused:
                self._sums["items"] += is_gone or each.key in put
                yield _PublishedEntry(kind, each, ours.get(each.key), is_new=False)

    def _items_of(self, kind: EntryKind, keys: Sequence[str]) -> dict[str, Any]:
        bodies = self._store.entries.get_items(kind.plural, keys)
        items = {key: from_json(body, kind.type) for key, body in bodies.items()}
        if kind is not JOBS:
            return items
        return {job.urn: job for job in jobs_with_known_ends(self._store, items.values())}


def _hidden(claim: CatalogEntry) -> CatalogEntry:
    """No more of a dataset than that it is gone."""
    return CatalogEntry(urn=claim.urn, name=claim.name, platform=claim.platform, deleted=True)
