"""What people typed into DataHub's pages, which is theirs even where nobody can see it."""

from collections.abc import Mapping
from typing import Any

import msgspec

from lumos.catalogs.datahub_model import facts, schemas
from lumos.catalogs.datahub_model.edits import Edits
from lumos.catalogs.datahub_model.extras import CATALOG, carried_in, folded
from lumos.catalogs.datahub_model.lenses import State
from lumos.model.catalog import CatalogEntry
from lumos.model.schema import Schema


def sides(
    base: CatalogEntry | None, theirs: CatalogEntry | None, ours: CatalogEntry
) -> tuple[CatalogEntry | None, CatalogEntry | None]:
    """What Lumos wrote and what is there, so that a merge sees which words are people's.

    Words that they typed are not those of Lumos, though they may be the same, and words on a column
    that is missing for now are there as soon as it is.
    """
    if theirs is None or CATALOG not in theirs.raw:
        return base, theirs
    typed = _typed(theirs)
    description = (typed.get(facts.EDITED) or {}).get("description")
    if base is not None and base.documentation is not None and description is not None:
        was = (_typed(base).get(facts.EDITED) or {}).get("description")
        if was is None and base.documentation.description == description:
            unsaid = msgspec.structs.replace(base.documentation, description=None)
            base = msgspec.structs.replace(base, documentation=unsaid)
    if base is not None and base.schema is not None and typed.get(schemas.EDITS):
        before = Edits(_typed(base).get(schemas.EDITS)).descriptions()
        words = Edits(typed[schemas.EDITS]).descriptions()
        since = {path: text for path, text in words.items() if path not in before}
        base = msgspec.structs.replace(base, schema=_without_values(base.schema, since))
    if typed.get(schemas.EDITS) and ours.schema is not None and theirs.schema is not None:
        there = {field.name for field in theirs.schema.fields}
        new = [field for field in ours.schema.fields if field.name not in there]
        back = schemas.remembered(typed[schemas.EDITS], new, ours.platform)
        if back:
            fields = (*theirs.schema.fields, *back)
            theirs = msgspec.structs.replace(theirs, schema=Schema(fields=fields))
    return base, theirs


def _without_values(schema: Schema, typed: Mapping[str, str]) -> Schema:
    """A schema without the words on columns that are also people's."""
    return Schema(
        fields=tuple(
            msgspec.structs.replace(
                _said_by_lumos(field, field.name, typed),
                nested=tuple(_said_by_lumos(each, each.path, typed) for each in field.nested),
            )
            for field in schema.fields
        )
    )


def _said_by_lumos(described: Any, path: str, typed: Mapping[str, str]) -> Any:
    if described.description is None or typed.get(path) != described.description:
        return described
    return msgspec.structs.replace(described, description=None)


def _typed(entry: CatalogEntry) -> State:
    carried = carried_in(entry.raw)
    return {
        aspect: body
        for aspect in (facts.EDITED, schemas.EDITS)
        if (body := folded(carried.get(aspect, ())).get(aspect)) is not None
    }
