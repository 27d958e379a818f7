"""What datasets and jobs are called, and under which team, domain, platform and tags they count."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date
from functools import cached_property
from typing import Any, Final

from lumos.cost.reports import GroupBy
from lumos.model.catalog import Job
from lumos.model.dataset import Ownership
from lumos.model.urn import SCHEME, Urn
from lumos.store import Store

# Names that nobody has are not mistaken for somebody's.
NOBODY: Final[Mapping[GroupBy, str]] = {
    "team": "(no owner)",
    "domain": "(no domain)",
    "platform": "(no platform)",
    "tag": "(no tag)",
}


class Labels:
    """The words of one store about all that costs something; each kind is read when asked for."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def name(self, urn: str) -> str:
        """A short name, with the folder where several are called the same."""
        name = self._plain_name(urn)
        if name not in self._ambiguous or urn in self._jobs or not urn.startswith(SCHEME):
            return name
        return "/".join(Urn.parse(urn).path[-2:])

    def _plain_name(self, urn: str) -> str:
        if urn in self._jobs:
            return self._jobs[urn].name
        if urn in self._datasets:
            return self._datasets[urn][0]
        return Urn.parse(urn).path[-1] if urn.startswith(SCHEME) else urn

    def team(self, urn: str) -> str:
        """The teams of a dataset or job in one word."""
        return ", ".join(self.of("team", urn))

    def of(self, by: GroupBy, urn: str) -> tuple[str, ...]:
        """The groups that a dataset or job counts under; of a job, else those of what it writes."""
        found = self._own(by, urn)
        if not found and urn in self._jobs:
            outputs = self._jobs[urn].outputs
            found = tuple(dict.fromkeys(each for one in outputs for each in self._own(by, one)))
        return found or (NOBODY[by],)

    def owners(self, urn: str) -> tuple[str, ...]:
        """Everybody who answers for a dataset or job, people and groups.

        Of a job that nobody owns, those who answer for what it writes.
        """
        if urn in self._jobs:
            job = self._jobs[urn]
            told = [job.owner] if job.owner else []
            return _names(told or (name for each in job.outputs for name in self.owners(each)))
        ownership = self._ownership.get(urn)
        return _names(each.name for each in ownership.owners) if ownership else ()

    def run_days(self, urn: str) -> list[date]:
        """The days on which a job ran to its end, as far as it is known."""
        job = self._jobs.get(urn)
        runs = () if job is None else job.runs
        return [each.started_at.date() for each in runs if each.state == "COMPLETE"]

    def tagged(self, tag: str) -> tuple[str, ...]:
        """The datasets that have a tag."""
        wanted = tag.casefold()
        return tuple(
            urn
            for urn, each in self._governance.items()
            if any(name.casefold() == wanted for name in each.tags)
        )

    @property
    def tags(self) -> frozenset[str]:
        """All tags that some dataset has."""
        return frozenset(name for each in self._governance.values() for name in each.tags)

    def _own(self, by: GroupBy, urn: str) -> tuple[str, ...]:
        job = self._jobs.get(urn)
        match by:
            case "platform":
                if job is not None:
                    return (job.platform,)
                if urn in self._datasets:
                    return (self._datasets[urn][1],)
                return (Urn.parse(urn).platform,) if urn.startswith(SCHEME) else ()
            case "team":
                if job is not None:
                    return tuple(filter(None, [job.owner]))
                return _teams(self._ownership.get(urn))
            case "domain":
                documentation = self._documentation.get(urn)
                return tuple(filter(None, [documentation and documentation.domain]))
            case "tag":
                governance = self._governance.get(urn)
                return _names(governance.tags) if governance else ()

    @cached_property
    def _datasets(self) -> dict[str, tuple[str, str]]:
        listed = self._store.directory.datasets()
        return {each.urn: (each.name, each.platform) for each in listed}

    @cached_property
    def _ambiguous(self) -> frozenset[str]:
        names = Counter(name for name, _ in self._datasets.values())
        return frozenset(name for name, times in names.items() if times > 1)

    @cached_property
    def _jobs(self) -> dict[str, Job]:
        return {job.urn: job for job in self._store.lineage.jobs()}

    @cached_property
    def _ownership(self) -> dict[str, Ownership]:
        return self._store.aspects("ownership")

    @cached_property
    def _documentation(self) -> dict[str, Any]:
        return self._store.aspects("documentation")

    @cached_property
    def _governance(self) -> dict[str, Any]:
        return self._store.aspects("governance")


def _teams(ownership: Ownership | None) -> tuple[str, ...]:
    """The groups that own a dataset, or else the people."""
    if ownership is None:
        return ()
    groups = _names(each.name for each in ownership.owners if each.kind == "group")
    return groups or _names(each.name for each in ownership.owners)


def _names(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))
