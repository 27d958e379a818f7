"""What the analysis of impact asks of the world: the graph, what makes datasets, their schemas."""

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

import msgspec

from lumos.impact.rules.type_uses import StatementEffect, TableVersions
from lumos.model.lineage import Edge
from lumos.model.schema import Schema

Versions = Callable[[str], TableVersions]


class Making(msgspec.Struct, frozen=True, kw_only=True):
    """How one reporter says that a dataset is made: its edges into it, and the SQL where kept.

    `tables` are the datasets that the tables of the SQL stand for, by the parts of their names.
    `unparsed` are the datasets that a statement on `line` names which could not be parsed.
    """

    origin: str
    edges: tuple[Edge, ...] = ()
    sql: str | None = None
    dialect: str | None = None
    file: str | None = None
    tables: tuple[tuple[tuple[str, ...], str], ...] = ()
    unparsed: tuple[str, ...] = ()
    line: int | None = None


class Downstream(Protocol):
    """The datasets that hang on another one."""

    def links(self, urn: str) -> Iterable[tuple[str, str]]:
        """All links from upstream to downstream that lie down the stream of a dataset."""
        ...

    def makings(self, urn: str) -> Sequence[Making]:
        """All that is known of how a dataset is made."""
        ...

    def schema(self, urn: str) -> Schema | None:
        """The present schema of a dataset, if it is known."""
        ...

    def owners(self, urn: str) -> Sequence[str]:
        """Who answers for a dataset."""
        ...


class Reasoner(Protocol):
    """Reasons through SQL, with the tables as they are and as they will be."""

    def __call__(
        self, making: Making, dataset: str, versions: Versions, *, with_fields: bool
    ) -> Sequence[StatementEffect]:
        """What changes for a dataset in each statement that makes it; none if none is found."""
        ...
