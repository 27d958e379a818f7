"""Compares whole estates: fingerprints first, schemas only where these differ."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from lumos.errors import MisuseError
from lumos.model.change import Finding
from lumos.model.json_codec import from_json, to_json, to_plain
from lumos.model.schema import Schema
from lumos.schemas.comparison import compare
from lumos.schemas.compatibility import judge
from lumos.schemas.findings import change_rows


class Known(NamedTuple):
    """A dataset in a snapshot: its full fingerprint, and its schema as a value or as its JSON."""

    fingerprint: str
    schema: Schema | bytes
    format: str | None = None

    @classmethod
    def of(cls, schema: Schema, format: str | None = None) -> "Known":
        """A schema with the fingerprint that it has."""
        return cls(schema.full, schema, format)


class Differences(NamedTuple):
    """What differs between two snapshots, by URN; datasets that are the same are left out."""

    changed: dict[str, tuple[Finding, ...]]
    added: tuple[str, ...]
    removed: tuple[str, ...]


def differences(before: Mapping[str, Known], after: Mapping[str, Known]) -> Differences:
    """What differs between two snapshots of an estate."""
    changed: dict[str, tuple[Finding, ...]] = {}
    added: list[str] = []
    for urn, new in after.items():
        old = before.get(urn)
        if old is None:
            added.append(urn)
        elif old[0] != new[0] and (findings := findings_between(old, new)):
            changed[urn] = findings
    # All of the first that the second has not were removed.
    is_removed = len(before) > len(after) - len(added)
    removed = tuple(urn for urn in before if urn not in after) if is_removed else ()
    return Differences(changed, tuple(added), removed)


def findings_between(before: Known, after: Known) -> tuple[Finding, ...]:
    """The judged changes of one dataset, for the format that it has now."""
    return judge(compare(_schema(before), _schema(after)), format=after.format)


def table_rows(urn: str, before: bytes, after: bytes, format: str | None) -> list[dict[str, Any]]:
    """The rows of `change_rows` for a table: with the URN, and both sides as JSON."""
    try:
        findings = findings_between(Known("", before), Known("", after, format))
    except (msgspec.MsgspecError, MisuseError) as problem:
        raise MisuseError(f"The schemas of {urn} cannot be compared: {problem}") from problem
    return [
        {
            **to_plain(row),
            "urn": urn,
            "before": to_json(row.before).decode(),
            "after": to_json(row.after).decode(),
        }
        for row in change_rows(urn, findings)
    ]


def _schema(known: Known) -> Schema:
    return known.schema if isinstance(known.schema, Schema) else from_json(known.schema, Schema)
