"""The schemas of datasets: those that are stored, and what the SQL that makes others says."""

from lumos.impact.rules.downstream import Downstream, Reasoner
from lumos.impact.rules.type_uses import StatementEffect, TableVersions
from lumos.model.schema import Schema


class Schemas:
    """Schemas as they are today, each asked for once."""

    def __init__(self, downstream: Downstream, reason: Reasoner | None) -> None:
        self._downstream = downstream
        self._reason = reason
        self._found: dict[str, Schema | None] = {}
        self._inferring: set[str] = set()

    def stored(self, urn: str) -> Schema | None:
        """The schema that somebody keeps, or that was inferred before."""
        if urn not in self._found:
            self._found[urn] = self._downstream.schema(urn)
        return self._found[urn]

    def known(self, urn: str) -> Schema | None:
        """The schema that is stored, or else what the dataset's own SQL says of it."""
        known = self.stored(urn)
        if known is not None or self._reason is None or urn in self._inferring:
            return known
        self._inferring.add(urn)
        for making in self._downstream.makings(urn):
            if making.sql is None:
                continue
            effects = self._reason(making, urn, self._unchanged, with_fields=True)
            if effects and effects[0].fields and not effects[0].is_open:
                self._found[urn] = schema_of(effects[0])
                return self._found[urn]
        return None

    def _unchanged(self, urn: str) -> TableVersions:
        return TableVersions.of(urn, self.known(urn))


def schema_of(effect: StatementEffect) -> Schema:
    """The schema that a statement gives a table; of columns of one name the last counts."""
    return Schema(fields=tuple({field.name: field for field in effect.fields}.values()))
