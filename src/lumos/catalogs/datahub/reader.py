"""The datasets of a server as entries, and the names that they have there."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from lumos.catalogs.datahub import lineage
from lumos.catalogs.datahub.aspects import (
    CATALOG,
    Aspects,
    AspectWrite,
    Entity,
    InvalidAspect,
    aspects_after,
    check_writes,
)
from lumos.catalogs.datahub.dataset import INSTANCE, DatasetCodec, read_instance
from lumos.catalogs.datahub.names import Naming, dataset_urn, is_ambiguous
from lumos.catalogs.datahub.server import Gms, key_aspect, pages_of, repeat_if_broken
from lumos.catalogs.datahub.server_model import DataHubModel
from lumos.catalogs.interface import How, Refused
from lumos.errors import CatalogError, MisuseError
from lumos.model.catalog import CatalogEntry
from lumos.model.urn import InvalidUrn, Urn

DATASET: Final = "dataset"
_ENTRIES_AT_ONCE: Final = 100


class RenderedEntry(NamedTuple):
    """The aspects of an entry, and how those that Lumos models are held in them."""

    entity: Entity
    aspects: Aspects
    held: dict[str, How]


class DataHubReader:
    """The datasets of a server, and the names that it knows them by."""

    def __init__(self, gms: Gms, model: DataHubModel) -> None:
        self.naming = Naming()
        self._datasets = DatasetCodec(self.naming, model)
        self.model = model
        self._gms = gms
        # Names that the server was asked for; those that are there, the naming knows.
        self._asked: set[str] = set()

    def get_many(self, urns: Sequence[str]) -> dict[str, CatalogEntry]:
        """Those of some datasets that are there."""
        called = {urn: _names(urn) for urn in urns}
        pages = pages_of([name for some in called.values() for name in some])
        found: dict[str, dict[str, Any]] = {}
        for answer in self._gms.caller.each(
            pages, lambda page: self._gms.get_entities(DATASET, page)
        ):
            found.update(answer)
        self._learn(called, found)
        self.learn_names(_upstream_names(found.values()))
        there = {}
        for urn, some in called.items():
            name = self.naming.known().get(urn)
            if name is not None and name in some and name in found:
                there[urn] = self._entry(urn, name, found[name])
        return there

    def all(self, after: str | None) -> Iterator[CatalogEntry | Refused]:
        """Every dataset by URN, from the first one after a URN, or why it cannot be read."""
        for found in repeat_if_broken(
            lambda: self._gms.list_entities([DATASET], (key_aspect(DATASET), INSTANCE))
        ):
            self._know(found.urn, found.aspects)
        wanted = sorted(
            pair for pair in self.naming.known().items() if after is None or pair[0] > after
        )
        for page, answer in _read_ahead(self._gms, wanted):
            for urn, name in page:
                # What is not there any more was taken out since it was listed.
                if name not in answer:
                    continue
                try:
                    entry = self._entry(urn, name, answer[name])
                except CatalogError as problem:
                    yield Refused(urn, problem)
                else:
                    yield entry

    def as_read(self, entry: CatalogEntry) -> CatalogEntry:
        """An entry as it will be read once it is written; nothing is asked for it."""
        rendered = self.render(entry)
        return self._entry(entry.urn, rendered.entity.urn, rendered.aspects)

    def render(self, entry: CatalogEntry) -> RenderedEntry:
        """The aspects that an entry is on the server."""
        for urn in (entry.urn, *_edges(entry)):
            # From here on each name means one dataset, its own and those that edges lead to.
            self.naming.refer(urn)
        rendered = self._datasets.render(entry)
        entity, aspects = self._datasets.entity(entry.urn), aspects_after(rendered.writes)
        if CATALOG in entry.raw:
            aspects = self.model.sendable(entity, aspects)
        return RenderedEntry(entity, aspects, rendered.held)

    def there(self, urns: Sequence[str]) -> list[str]:
        """The names of those of some datasets that are there."""
        asked = {name for urn in urns for name in _names(urn)}
        self._asked -= asked
        self.learn_names(asked, every=True)
        known = self.naming.known()
        return [known[urn] for urn in urns if urn in known]

    def prepare(self, entries: Sequence[CatalogEntry]) -> None:
        """Asks for every name that has to be known before some entries can be written."""
        self.learn_names(
            name for entry in entries for urn in (entry.urn, *_edges(entry)) for name in _names(urn)
        )

    def prepare_names(self, urns: Iterable[str]) -> None:
        """Asks for every name that some datasets may have."""
        self.learn_names(name for urn in urns for name in _names(urn))

    def written(self, urn: str, name: str) -> None:
        """Takes note of a dataset that is there from now on."""
        self.naming.know(name, Urn.parse(urn).instance or None)
        self._asked.add(name)

    def erased(self, name: str) -> None:
        """Takes note of a dataset that is gone from now on."""
        self.naming.forget(name)

    def learn_names(self, some: Iterable[str], *, every: bool = False) -> None:
        """Learns which of some names are taken, and by which dataset.

        Most names can mean but one dataset, so that they need not be asked for.
        """
        new = dict.fromkeys(
            name for name in some if name not in self._asked and (every or is_ambiguous(name))
        )
        pages = pages_of(new)
        wanted = (key_aspect(DATASET), INSTANCE)
        for answer in self._gms.caller.each(
            pages, lambda page: self._gms.get_entities(DATASET, page, wanted)
        ):
            for name, aspects in answer.items():
                self._know(name, aspects)
        for name in new.keys() - self._asked:
            self.naming.forget(name)
        self._asked.update(new)

    def _learn(
        self, called: Mapping[str, Sequence[str]], found: Mapping[str, Mapping[str, Any]]
    ) -> None:
        for some in called.values():
            for name in some:
                self._asked.add(name)
                if name in found:
                    self._know(name, found[name])
                else:
                    self.naming.forget(name)

    def _know(self, name: str, aspects: Mapping[str, Any]) -> None:
        self.naming.know(name, read_instance(aspects))
        self._asked.add(name)

    def _entry(self, urn: str, name: str, aspects: Mapping[str, Any]) -> CatalogEntry:
        aspects = self.model.read(Entity(DATASET, name), aspects)
        try:
            writes = check_writes(
                AspectWrite(aspect=each, body=body) for each, body in aspects.items()
            )
        except InvalidAspect as invalid:
            raise CatalogError(
                f"{self._gms.name} has something that is not as DataHub writes it: {name} "
                f"{invalid.position}: {invalid.problem}",
                platform=self._gms.name,
            ) from invalid
        return self._datasets.read(urn, writes)


def names_of(urn: str) -> tuple[str, ...]:
    """The names that a dataset may have; fails where Lumos would write its URN in another way."""
    if not (found := _names(urn)):
        # Explains what is wrong with it.
        Urn.parse(urn)
        raise MisuseError(f"'{urn}' is not how Lumos writes the URN of a dataset.")
    return found


@lru_cache(maxsize=4_096)
def _names(urn: str) -> tuple[str, ...]:
    """The names that a dataset may have: the usual one, and one that is never another's."""
    try:
        parsed = Urn.parse(urn)
    except InvalidUrn:
        return ()
    if str(parsed) != urn:
        return ()
    usual = dataset_urn(parsed)
    if not is_ambiguous(usual):
        return (usual,)
    return tuple(dict.fromkeys((usual, dataset_urn(parsed, apart=True))))


def _edges(entry: CatalogEntry) -> Iterator[str]:
    for edge in entry.lineage.upstream if entry.lineage else ():
        yield edge.urn


def _upstream_names(states: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The names that edges lead to."""
    for aspects in states:
        body = aspects.get(lineage.UPSTREAM)
        for item in (body.get("upstreams") or ()) if isinstance(body, dict) else ():
            if isinstance(name := item.get("dataset"), str):
                yield name


def _read_ahead(
    gms: Gms, wanted: Sequence[tuple[str, str]]
) -> Iterator[tuple[list[tuple[str, str]], dict[str, dict[str, Any]]]]:
    """Pages of datasets in their order; the next one is asked for while one is worked on."""
    from concurrent.futures import ThreadPoolExecutor

    pages = list(pages_of(wanted, _ENTRIES_AT_ONCE))
    with ThreadPoolExecutor(1, thread_name_prefix="lumos-catalog") as pool:

        def begin(number: int) -> Any:
            page = [name for _, name in pages[number]]
            return pool.submit(gms.get_entities, DATASET, page)

        coming = begin(0) if pages else None
        for number, page in enumerate(pages):
            answer = coming.result() if coming is not None else {}
            coming = begin(number + 1) if number + 1 < len(pages) else None
            yield page, answer
