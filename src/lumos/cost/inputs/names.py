"""Which nodes of the graph are meant by names: of datasets, of jobs, and of what ran."""

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from lumos.config import Settings
from lumos.cost.inputs.nodes import Wiring
from lumos.errors import MisuseError, did_you_mean
from lumos.model.metering import Metered
from lumos.model.urn import SCHEME, InvalidUrn, Urn
from lumos.store.errors import AmbiguousName, UnknownDataset

if TYPE_CHECKING:
    from lumos.lineage.name_index import Names
    from lumos.model.catalog import Job
    from lumos.store import Store

_ANY_ENGINE: Final = "job"
_NEITHER: Final = re.compile(r"[^a-z0-9]+")


class Finder:
    """Finds nodes by whatever people and reporters call them."""

    def __init__(self, store: "Store", settings: Settings, wiring: Wiring) -> None:
        self._store = store
        self._settings = settings
        self._wiring = wiring
        self._of_metered: dict[tuple[str, bool, tuple[str, ...]], tuple[int, ...]] = {}

    def urn(self, node: int) -> str:
        """What a node is called."""
        return self._wiring.urns[node]

    def node(self, name: str) -> int:
        """The dataset or job that a person names; a name that means nothing is an error."""
        if (urn := self._jobs_by_name.get(name)) is not None:
            return self._wiring.places[urn]
        if name in self._wiring.places:
            return self._wiring.places[name]
        urn = self._store.find(name)
        if urn not in self._wiring.places:
            raise self._store.unknown(name)
        return self._wiring.places[urn]

    def configured(self, name: str, where: str) -> int:
        """The same, of a name in the configuration; an error says where it stands."""
        try:
            return self.node(name)
        except (UnknownDataset, AmbiguousName) as problem:
            raise MisuseError(f"{where} in the configuration names '{name}'. {problem}") from None

    def moved(self, moves: Mapping[str, str]) -> dict[str, str]:
        """Storage classes by the URNs of the datasets that are named."""
        found = {}
        for name, storage_class in moves.items():
            urn = self._wiring.urns[self.node(name)]
            if urn not in self._wiring.datasets:
                raise MisuseError(f"{urn} is a job and has no storage class. Name a dataset.")
            found[urn] = storage_class
        return found

    @property
    def jobs(self) -> "Iterator[tuple[int, Job]]":
        """All jobs that lineage knows."""
        for urn, job in self._wiring.jobs.items():
            yield self._wiring.places[urn], job

    def jobs_of(self, name: str) -> tuple[int, ...]:
        """The job that a person names, or those that write the dataset that is named."""
        try:
            node = self.node(name)
        except UnknownDataset:
            nearest = did_you_mean(name, [job.name for _, job in self.jobs])
            raise MisuseError(
                f"No job named '{name}'.{nearest} Lineage names jobs: lumos lineage ingest PATH"
            ) from None
        if self._wiring.is_job[node]:
            return (node,)
        jobs = tuple(each for each in self._wiring.writers(node) if self._wiring.is_job[each])
        if not jobs:
            raise MisuseError(
                f"No job that writes {self._wiring.urns[node]} is known. "
                "Lineage names jobs: lumos lineage ingest PATH"
            )
        return jobs

    def metered(self, metered: Metered) -> tuple[int, ...]:
        """The nodes that something is to be charged to; none where nobody knows it."""
        key = metered.target, metered.is_dataset, metered.outputs
        if key not in self._of_metered:
            self._of_metered[key] = self._charged(metered)
        return self._of_metered[key]

    def _charged(self, metered: Metered) -> tuple[int, ...]:
        name = metered.target
        if name in self._wiring.places:
            return (self._wiring.places[name],)
        if metered.is_dataset:
            return self._dataset(name)
        if (urn := self._jobs_by_name.get(name)) is not None:
            return (self._wiring.places[urn],)
        parts = self._jobs_by_application.get(_letters(name), ())
        if parts:
            return tuple(self._wiring.places[urn] for urn in parts)
        if (node := self._jobs_by_urn.get(name)) is not None:
            return (node,)
        outputs = sorted({node for place in metered.outputs for node in self._at(place)})
        return (self._wiring.add_job(_job_urn(metered), outputs),) if outputs else ()

    def _dataset(self, name: str) -> tuple[int, ...]:
        try:
            urn = self._store.lookup(name)
        except (AmbiguousName, InvalidUrn):
            return ()
        node = None if urn is None else self._wiring.places.get(urn)
        return () if node is None else (node,)

    def _at(self, place: str) -> tuple[int, ...]:
        """The dataset that lies in a place."""
        from lumos.lineage.reported import Place
        from lumos.lineage.resolution import Way

        found = self._names.find(Place(uri=place))
        is_there = found.way is Way.PLACE and found.urn in self._wiring.datasets
        return (self._wiring.places[found.urn],) if is_there else ()

    @cached_property
    def _names(self) -> "Names":
        from lumos.lineage.name_index import names_of

        return names_of(self._settings, self._store)

    @cached_property
    def _jobs_by_name(self) -> dict[str, str]:
        """Jobs by names that only one of them has, also with the namespace before it."""
        found: dict[str, str] = {}
        twice: set[str] = set()
        for urn, job in self._wiring.jobs.items():
            for name in names_of_job(job):
                if found.setdefault(name, urn) != urn:
                    twice.add(name)
        return {name: urn for name, urn in found.items() if name not in twice}

    @cached_property
    def _jobs_by_urn(self) -> dict[str, int]:
        """Jobs that are known as steps of edges alone, by all ends of their URNs."""
        found: dict[str, int] = {}
        twice: set[str] = set()
        for node in np.flatnonzero(self._wiring.is_job).tolist():
            urn = self._wiring.urns[node]
            if urn in self._wiring.jobs:
                continue
            segments = urn.removeprefix(SCHEME).split("/")[1:]
            for start in range(len(segments)):
                name = "/".join(segments[start:])
                if found.setdefault(name, node) != node:
                    twice.add(name)
        return {name: node for name, node in found.items() if name not in twice}

    @cached_property
    def _jobs_by_application(self) -> dict[str, tuple[str, ...]]:
        """Jobs that are steps of one application, as those are that Spark tells lineage of."""
        found: dict[str, dict[str, None]] = {}
        for urn, job in self._wiring.jobs.items():
            first, dot, _ = job.name.partition(".")
            parent = job.properties.get("parent", "").rpartition("/")[2]
            for name in (first if dot else "", parent):
                if letters := _letters(name):
                    found.setdefault(letters, {})[urn] = None
        return {name: tuple(urns) for name, urns in found.items()}


def names_of_job(job: "Job") -> tuple[str, ...]:
    """What a job is called by those who tell of it."""
    namespace = job.properties.get("namespace")
    named = (job.urn, job.name)
    return (*named, f"{namespace}/{job.name}") if namespace else named


def _letters(name: str) -> str:
    return _NEITHER.sub("", name.lower())


def _job_urn(metered: Metered) -> str:
    if metered.target.startswith(SCHEME):
        return metered.target
    try:
        return str(Urn.of(metered.engine, (metered.target,)))
    except InvalidUrn:
        return str(Urn.of(_ANY_ENGINE, (metered.target,)))
