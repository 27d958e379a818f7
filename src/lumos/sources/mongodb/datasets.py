"""Datasets made from what a collection showed and what was known of it before."""

from typing import Any, Final
from urllib.parse import quote

import msgspec

from lumos.model.dataset import Location, Statistics
from lumos.model.discovery import FoundDataset, SourceMetadata
from lumos.model.schema import Schema, fingerprint
from lumos.model.types import quoted_text
from lumos.sources.interface import Remembered
from lumos.sources.mongodb.masking import masked
from lumos.sources.mongodb.sampling import Answer
from lumos.sources.mongodb.schema import Rules, observed_schema, steadied, with_key

# How options of a collection are called where people read them.
_TOLD: Final = {
    "viewOn": "view_on",
    "pipeline": "pipeline",
    "validator": "validator",
    "validationLevel": "validation_level",
    "validationAction": "validation_action",
    "timeseries": "timeseries",
    "expireAfterSeconds": "expires_after_seconds",
    "collation": "collation",
    "clusteredIndex": "clustered_index",
}

# What a view is; under another one its documents have nothing of those before.
_DEFINITION: Final = ("view_on", "pipeline")


def path_of(database: str, name: str) -> str:
    """The one text for a collection's name, whatever marks are in it."""
    return "/".join(quote(part, safe="") for part in (database, name))


def dataset_of(path: str, answer: Answer, known: Remembered | None, address: str) -> FoundDataset:
    """A collection or view under the server's own names."""
    work = answer.work
    options: dict[str, Any] = msgspec.json.decode(work.options)
    told = SourceMetadata(properties=_properties(answer, options))
    schema = _schema(answer, options, told, known)
    return FoundDataset(
        path=path,
        name=f"{work.database}.{work.name}",
        format=work.kind,
        location=Location(uri=f"{address}/{path}", identity=work.identity),
        schema=schema,
        statistics=Statistics(
            row_count=answer.documents,
            total_size_bytes=answer.bytes or 0,
            total_size_exact=False,
        ),
        drift=(),
        content=_content(work.kind, told, schema),
        told=told,
    )


def _schema(
    answer: Answer, options: dict[str, Any], told: SourceMetadata, known: Remembered | None
) -> Schema:
    validator = options.get("validator")
    rules = Rules.of(
        validator if isinstance(validator, dict) else {},
        # Otherwise documents may be as they like.
        enforced=options.get("validationAction", "error") != "warn"
        and options.get("validationLevel", "strict") == "strict",
    )
    has_key = answer.work.kind == "collection"
    observed = observed_schema(answer.seen, rules, has_key=has_key)
    if known is None:
        return with_key(observed) if has_key and not answer.seen.count else observed
    is_other = any(known.told.get(name) != told.properties.get(name) for name in _DEFINITION)
    # Of an empty collection nothing can be said, so that what was known stays.
    whole = (answer.whole or is_other) and answer.seen.count > 0
    return steadied(observed, known.schema, whole=whole)


def _properties(answer: Answer, options: dict[str, Any]) -> dict[str, str]:
    told = {
        name: each if isinstance(each, str) else msgspec.json.encode(masked(each)).decode()
        for option, name in _TOLD.items()
        if (each := options.get(option)) not in (None, {}, [])
    }
    if options.get("capped"):
        told["capped"] = _capped(options)
    if answer.shard_key is not None:
        told["shard_key"] = answer.shard_key
    told |= {f"index.{name}": text for name, text in answer.indexes.items()}
    return told


def _capped(options: dict[str, Any]) -> str:
    most = options.get("max")
    documents = f", {most} documents" if most else ""
    return f"{options.get('size', 0)} bytes{documents}"


def _content(format: str, told: SourceMetadata, schema: Schema) -> str:
    """Changes with all that is told beside the schema; that documents come and go is not seen."""
    facts = {
        **told.properties,
        # Several types of BSON may be one type in the algebra.
        **{f" type {field.name}": field.native_type for field in schema.fields},
        " format": format,
    }
    return fingerprint(
        f"{quoted_text(name)} {quoted_text(text)}"
        for name, text in sorted(facts.items())
        if text is not None
    )
