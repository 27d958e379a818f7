"""Columns and labels of entities in the stub of OpenMetadata."""

from collections.abc import Iterator, Mapping
from typing import Any

from .openmetadata_kinds import Entity


def columns_of(facts: Mapping[str, Any]) -> list[dict[str, Any]] | None:
    for holder, key in (
        (facts, "columns"),
        (facts.get("dataModel"), "columns"),
        (facts.get("messageSchema"), "schemaFields"),
    ):
        if isinstance(holder, Mapping) and isinstance(holder.get(key), list):
            return list(holder[key])
    return None


def all_columns(facts: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    waiting = list(columns_of(facts) or ())
    while waiting:
        column = waiting.pop()
        yield column
        waiting += column.get("children") or ()


def keep_columns(
    was: list[dict[str, Any]] | None, now: list[dict[str, Any]] | None, *, is_bot: bool
) -> None:
    """Words and labels of columns outlive a PUT."""
    known = {column["name"]: column for column in was or ()}
    for column in now or ():
        before = known.get(column["name"], {})
        if before.get("description") and (is_bot or "description" not in column):
            column["description"] = before["description"]
        if labels := joined_labels(before.get("tags") or [], column.get("tags") or []):
            column["tags"] = labels
        keep_columns(before.get("children"), column.get("children"), is_bot=is_bot)


def joined_labels(was: list[Any], now: list[Any]) -> list[Any]:
    return list({label["tagFQN"]: label for label in (*now, *was)}.values())


def columns_in(entity: Entity) -> set[str]:
    """The qualified names of all columns of an entity."""
    return {each["fullyQualifiedName"] for each in all_columns(entity.facts)}


def root_of(entity: Entity) -> Entity:
    while entity.above:
        entity = next(iter(entity.above.values()))
    return entity
