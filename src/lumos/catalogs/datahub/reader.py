"""Reads the datasets of a server, and looks up which DataHub URNs are taken."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, Final, NamedTuple

from lumos.catalogs.chunks import batched
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
from lumos.catalogs.datahub.lineage import UPSTREAM, upstream_urns
from lumos.catalogs.datahub.names import Naming, dataset_urn, is_ambiguous, parse_dataset_urn
from lumos.catalogs.datahub.server import (
    BATCH_SIZE,
    Gms,
    key_aspect,
    retry_once_if_interrupted,
    unexpected_response,
)
from lumos.catalogs.datahub.server_model import DataHubModel
from lumos.catalogs.interface import AspectStorage, FailedEntry
from lumos.errors import CatalogError
from lumos.model.catalog import CatalogEntry
from lumos.model.urn import Urn

DATASET: Final = "dataset"
_READ_BATCH_SIZE: Final = 100


class RenderedEntry(NamedTuple):
    """The aspects of an entry, and how DataHub stores each of them."""

    entity: Entity
    aspects: Aspects
    storage: dict[str, AspectStorage]


class DataHubReader:
    """The datasets of a server, and their DataHub URNs."""

    def __init__(self, gms: Gms, model: DataHubModel) -> None:
        self.naming = Naming()
        self.model = model
        self._datasets = DatasetCodec(self.naming, model)
        self._gms = gms
        self._looked_up: set[str] = set()

    def get_many(self, urns: Sequence[str]) -> dict[str, CatalogEntry]:
        """The datasets that exist, by URN."""
        candidates = {urn: possible_datahub_urns(urn) for urn in urns}
        datahub_urns = [datahub_urn for some in candidates.values() for datahub_urn in some]
        found: dict[str, dict[str, Any]] = {}
        for response in self._gms.caller.each(
            batched(datahub_urns, BATCH_SIZE), lambda batch: self._gms.get_entities(DATASET, batch)
        ):
            found.update(response)
        for datahub_urn in datahub_urns:
            self._looked_up.add(datahub_urn)
            if datahub_urn in found:
                self._add_name(datahub_urn, found[datahub_urn])
            else:
                self.naming.remove(datahub_urn)
        self.look_up(_upstream_datahub_urns(found.values()))
        entries = {}
        for urn, some in candidates.items():
            existing = self.naming.existing_datasets().get(urn)
            if existing in some and existing in found:
                entries[urn] = self._entry(urn, existing, found[existing])
        return entries

    def all(self, after: str | None) -> Iterator[CatalogEntry | FailedEntry]:
        """Yield all datasets after a URN, sorted by URN; FailedEntry if one cannot be read."""
        for listed in retry_once_if_interrupted(
            lambda: self._gms.list_entities([DATASET], (key_aspect(DATASET), INSTANCE))
        ):
            self._add_name(listed.urn, listed.aspects)
        wanted = sorted(
            pair
            for pair in self.naming.existing_datasets().items()
            if after is None or pair[0] > after
        )
        for batch, found in _read_ahead(self._gms, wanted):
            for urn, datahub_urn in batch:
                # Missing datasets were deleted after they were listed.
                if datahub_urn not in found:
                    continue
                try:
                    entry = self._entry(urn, datahub_urn, found[datahub_urn])
                except CatalogError as problem:
                    yield FailedEntry(urn, problem)
                else:
                    yield entry

    def as_stored(self, entry: CatalogEntry) -> CatalogEntry:
        """The entry that the server returns after this one is written; makes no call."""
        rendered = self.render(entry)
        return self._entry(entry.urn, rendered.entity.urn, rendered.aspects)

    def render(self, entry: CatalogEntry) -> RenderedEntry:
        """Encode an entry as aspects, and reserve the names that it uses."""
        for urn in (entry.urn, *upstream_urns(entry)):
            self.naming.reserve(urn)
        rendered = self._datasets.render(entry)
        entity, aspects = self._datasets.entity(entry.urn), aspects_after(rendered.writes)
        if CATALOG in entry.raw:
            aspects = self.model.sendable(entity, aspects)
        return RenderedEntry(entity, aspects, rendered.storage)

    def find_existing(self, urns: Sequence[str]) -> list[str]:
        """The DataHub URNs of the datasets that exist."""
        datahub_urns = {datahub_urn for urn in urns for datahub_urn in possible_datahub_urns(urn)}
        self._looked_up -= datahub_urns
        self.look_up(datahub_urns, only_ambiguous=False)
        existing = self.naming.existing_datasets()
        return [existing[urn] for urn in urns if urn in existing]

    def look_up_datasets(self, urns: Iterable[str]) -> None:
        """Look up all DataHub URNs that some datasets may have."""
        self.look_up(datahub_urn for urn in urns for datahub_urn in possible_datahub_urns(urn))

    def mark_written(self, urn: str, datahub_urn: str) -> None:
        """Record that a dataset exists."""
        self.naming.add(datahub_urn, Urn.parse(urn).instance or None)
        self._looked_up.add(datahub_urn)

    def look_up(self, datahub_urns: Iterable[str], *, only_ambiguous: bool = True) -> None:
        """Ask the server which DataHub URNs exist, and to which datasets they belong.

        Most URNs can belong to one dataset only and need no request.
        """
        new = dict.fromkeys(
            datahub_urn
            for datahub_urn in datahub_urns
            if datahub_urn not in self._looked_up
            and (is_ambiguous(datahub_urn) or not only_ambiguous)
        )
        aspects = (key_aspect(DATASET), INSTANCE)
        for found in self._gms.caller.each(
            batched(new, BATCH_SIZE), lambda batch: self._gms.get_entities(DATASET, batch, aspects)
        ):
            for datahub_urn, bodies in found.items():
                self._add_name(datahub_urn, bodies)
        for datahub_urn in new.keys() - self._looked_up:
            self.naming.remove(datahub_urn)
        self._looked_up.update(new)

    def _add_name(self, datahub_urn: str, aspects: Mapping[str, Any]) -> None:
        self.naming.add(datahub_urn, read_instance(aspects))
        self._looked_up.add(datahub_urn)

    def _entry(self, urn: str, datahub_urn: str, aspects: Mapping[str, Any]) -> CatalogEntry:
        aspects = self.model.read(Entity(DATASET, datahub_urn), aspects)
        try:
            writes = check_writes(
                AspectWrite(aspect=each, body=body) for each, body in aspects.items()
            )
        except InvalidAspect as invalid:
            position = f"{datahub_urn} {invalid.position}"
            raise unexpected_response(self._gms.name, position, invalid.problem) from invalid
        return self._datasets.read(urn, writes)


@lru_cache(maxsize=4_096)
def possible_datahub_urns(urn: str) -> tuple[str, ...]:
    """The DataHub URNs that a dataset may have: the usual one, and an unambiguous one."""
    if (parsed := parse_dataset_urn(urn)) is None:
        return ()
    usual = dataset_urn(parsed)
    if not is_ambiguous(usual):
        return (usual,)
    return tuple(dict.fromkeys((usual, dataset_urn(parsed, explicit_instance=True))))


def _upstream_datahub_urns(states: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The DataHub URNs of upstream datasets."""
    for aspects in states:
        body = aspects.get(UPSTREAM)
        for item in (body.get("upstreams") or ()) if isinstance(body, dict) else ():
            if isinstance(datahub_urn := item.get("dataset"), str):
                yield datahub_urn


def _read_ahead(
    gms: Gms, wanted: Iterable[tuple[str, str]]
) -> Iterator[tuple[list[tuple[str, str]], dict[str, dict[str, Any]]]]:
    """Read batches of datasets in order; the next one is requested while one is processed."""
    pending: deque[Any] = deque()
    with ThreadPoolExecutor(1, thread_name_prefix="lumos-catalog") as pool:
        for batch in batched(wanted, _READ_BATCH_SIZE):
            datahub_urns = [datahub_urn for _, datahub_urn in batch]
            pending.append((batch, pool.submit(gms.get_entities, DATASET, datahub_urns)))
            if len(pending) > 1:
                earlier, response = pending.popleft()
                yield earlier, response.result()
        for batch, response in pending:
            yield batch, response.result()
