"""The columns of tables that SQL speaks of, from the store or from whoever else knows them."""

import re
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from lumos.lineage.name_index import Names
from lumos.lineage.reported import TableName
from lumos.lineage.resolution import Found, Way
from lumos.model.schema import Schema
from lumos.store import Store

_TOP: Final = re.compile(r"[.\[]")
Parts: TypeAlias = tuple[str, ...]
# Names there are told apart by their case, so that they stay as they are.
_HEED_CASE = frozenset(("postgres",))


class Schemas:
    """The schemas of datasets, each read once."""

    def __init__(self, store: Store | None) -> None:
        self._store = store
        self._read: dict[str, Schema | None] = {}
        self._spelled: dict[str, dict[str, str]] = {}

    def of(self, urn: str) -> Schema | None:
        """The schema of a dataset, if the store has it."""
        if urn not in self._read:
            found = {} if self._store is None else self._store.directory.schemas([urn])
            self._read[urn] = found.get(urn)
        return self._read[urn]

    def spelled(self, urn: str, column: str) -> str:
        """A column as its dataset spells it: SQL does not heed case where people do."""
        names = self._spelled.get(urn)
        if names is None:
            schema = self.of(urn)
            names = {}
            for name in [field.name for field in schema.fields] if schema is not None else ():
                # Of two that differ in case alone neither stands for the other.
                names[name.lower()] = "" if name.lower() in names else name
                names[name] = name
            self._spelled[urn] = names
        return names.get(column) or names.get(column.lower()) or column

    def lacks(self, urn: str, column: str) -> bool:
        """Whether it is known that a dataset has no such column."""
        schema = self.of(urn)
        if schema is None:
            return False
        names = {field.name.lower() for field in schema.fields}
        return not names & {column.lower(), _TOP.split(column.lower(), maxsplit=1)[0]}


class Columns:
    """Tells the columns of tables to whoever analyses SQL of one dialect."""

    def __init__(
        self,
        names: Names,
        schemas: Schemas,
        *,
        dialect: str | None,
        platform: str | None = None,
        known: Mapping[Parts, Mapping[str, str]] | None = None,
    ) -> None:
        self._names = names
        self._schemas = schemas
        self._dialect = dialect
        self._platform = platform
        self._known = known or {}
        # By URN: the table of a query file has several names.
        self._made: dict[str, Mapping[str, str]] = {}
        self._asked: dict[str, set[Parts]] = {}

    def learn(self, made: Mapping[Parts, Sequence[str]]) -> frozenset[Parts]:
        """Takes in what tables are made of; gives those that somebody asked for in vain."""
        by_urn = {self._find(parts).urn: columns for parts, columns in made.items()}
        news = {
            urn: dict.fromkeys(columns, "")
            for urn, columns in by_urn.items()
            if list(self._made.get(urn, ())) != list(columns)
        }
        self._made |= news
        return frozenset(parts for urn in news for parts in self._asked.get(urn, ()))

    def __call__(self, parts: Parts) -> Mapping[str, str] | None:
        columns = self._known.get(parts) or self._stored(parts)
        if columns is not None:
            return columns
        found = self._find(parts)
        if found.way is Way.AMBIGUOUS:
            return None
        columns = self._made.get(found.urn)
        if columns is None:
            self._asked.setdefault(found.urn, set()).add(parts)
        return columns

    def _find(self, parts: Parts) -> Found:
        table = TableName(parts=parts, platform=self._platform)
        return self._names.find(table, dialect=self._dialect)

    def _stored(self, parts: Parts) -> Mapping[str, str] | None:
        found = self._find(parts)
        if found.way in (Way.ASSUMED, Way.AMBIGUOUS):
            return None
        schema = self._schemas.of(found.urn)
        if schema is None:
            return None
        keeps_case = found.urn.partition("://")[2].startswith(tuple(_HEED_CASE))
        return {
            field.name if keeps_case else field.name.lower(): field.type.text
            for field in schema.fields
        }
