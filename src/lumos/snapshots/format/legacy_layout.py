"""Converts the two layouts that snapshots had before format 1.0.

The nested layout has everything below the key `lumos_snapshot`, and has, for example,
`quality_score`, `version_history` and URNs of DataHub. The flat layout starts with the key
`lumos_version`, and has lineage as plain URNs, owners as `user` or `group`, and scores in per cent.
Values that format 1.0 does not have are stored below `founding`, by their path.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, TypeGuard

import msgspec

from lumos.errors import MisuseError
from lumos.model.conversions.sql_types import Dialect, type_from_sql
from lumos.model.types import Unknown, parse_type
from lumos.model.urn import DEFAULT_ENVIRONMENT, SCHEME, InvalidUrn, Urn, separator_of
from lumos.snapshots.format.codec import MalformedJson
from lumos.snapshots.format.document import (
    DATASETS,
    FORMAT,
    GLOSSARY,
    JOBS,
    EntryKind,
    pop_unknown_keys,
)

_COUNT_NAMES: Final = ("datasets", "lineage_edges", "owners", "tags")

NESTED: Final = "lumos_snapshot"
FLAT: Final = "lumos_version"
HEADER_KEYS: Final = (
    *(FLAT, "version", "export_timestamp", "source_platform", "statistics", "metadata"),
)
LEGACY_EXTRAS: Final = "founding"
# The paths of header values in both layouts.
NESTED_PATHS: Final = {
    "exported_at": f"{NESTED}.exported_at",
    "scope": f"{NESTED}.metadata.export_scope",
    "counts.datasets": f"{NESTED}.metadata.total_datasets",
    "counts.lineage_edges": f"{NESTED}.metadata.total_lineage_relationships",
}
FLAT_PATHS: Final = {
    "exported_at": "export_timestamp",
    **{f"counts.{name}": f"statistics.{name}" for name in _COUNT_NAMES},
}

_DATAHUB_DATASET: Final = re.compile(
    r"urn:li:dataset:\((?:urn:li:dataPlatform:)?(?P<platform>[^,]+),(?P<name>.*),(?P<env>[^,)]+)\)",
    re.DOTALL,
)
_DATAHUB_NAME: Final = re.compile(r"urn:li:[A-Za-z]+:(?P<name>.+)", re.DOTALL)
# Types are parsed in the dialect of the dataset's platform first, then in the other dialects.
_DIALECTS: Final[tuple[Dialect, ...]] = ("postgres", "hive", "snowflake", "bigquery")
_LINEAGE_TYPES: Final = ("TRANSFORMED", "COPIED", "VIEW")
# Edge types that only repeat the direction of the edge.
_DIRECTIONS: Final = ("produces", "consumes")
_PERCENT: Final = 100


class LegacyObject(NamedTuple):
    """An object of a legacy layout, and its path.

    Values are removed from it when they are converted, so that the unknown values remain.
    """

    path: str
    values: dict[str, Any]

    def _take_first(self, names: tuple[str, ...]) -> tuple[str, Any]:
        """Remove the first value that exists under these names; return its path and the value."""
        for name in names:
            if (value := self.values.pop(name, None)) is not None:
                return f"{self.path}.{name}", value
        return self.path, None

    def take(self, *names: str) -> Any:
        """Remove and return the first value that exists under these names."""
        return self._take_first(names)[1]

    def part(self, name: str) -> "LegacyObject":
        """Remove and return the object under a name, or an empty one."""
        return legacy_object(f"{self.path}.{name}", self.values.pop(name, None))

    def items(self, name: str) -> list[tuple[str, Any]]:
        """Remove and return the list under a name; each item has its path."""
        value = self.values.pop(name, None)
        path = f"{self.path}.{name}"
        if value is None:
            return []
        if not isinstance(value, list):
            raise MalformedJson(path, f"Expected `array`, got {value!r}")
        return [(f"{path}[{index}]", each) for index, each in enumerate(value)]

    def time(self, *names: str) -> str | None:
        """Remove and return the first time under these names, in UTC if it has no zone."""
        path, value = self._take_first(names)
        return None if value is None else _time(path, value)

    def rest(self, **converted: Any) -> dict[str, Any]:
        """The remaining values, and the given converted values."""
        return {
            name: value for name, value in self.values.items() if value is not None
        } | without_empty(**converted)

    def number(self, *names: str) -> float | None:
        """Remove and return the first number under these names."""
        path, value = self._take_first(names)
        return None if value is None else _number(path, value)

    def numbers(self) -> dict[str, float]:
        """Remove and return all remaining numbers."""
        numbers = {name: value for name, value in self.values.items() if is_number(value)}
        for name in numbers:
            del self.values[name]
        return numbers


def legacy_object(path: str, value: object) -> LegacyObject:
    """The value as an object; None becomes an empty object."""
    if value is None:
        return LegacyObject(path, {})
    if not isinstance(value, dict):
        raise MalformedJson(path, f"Expected `object`, got {value!r}")
    return LegacyObject(path, dict(value))


def header_of_nested(plain: Mapping[str, Any]) -> dict[str, Any]:
    """The header of a snapshot in the nested layout."""
    head = legacy_object(f".{NESTED}", plain.get(NESTED))
    summary = head.part("metadata")
    counts = {
        "datasets": summary.take("total_datasets"),
        "lineage_edges": summary.take("total_lineage_relationships"),
    }
    return _header(head, counts, scope=summary.take("export_scope"))


def header_of_flat(plain: Mapping[str, Any]) -> dict[str, Any]:
    """The header of a snapshot in the flat layout."""
    head = legacy_object("", dict(plain))
    totals = head.part("statistics")
    return _header(head, {name: totals.take(name) for name in _COUNT_NAMES}, scope=None)


def _header(head: LegacyObject, counts: Mapping[str, Any], *, scope: object) -> dict[str, Any]:
    exported_at = head.time("exported_at", "export_timestamp")
    if exported_at is None:
        key = "exported_at" if head.path else "export_timestamp"
        raise MalformedJson(f"{head.path}.{key}", "Missing export time")
    return without_empty(
        format=FORMAT,
        format_version="1.1",
        exported_at=exported_at,
        exported_by=head.take("exported_by") or "unknown",
        platform=head.take("source_platform"),
        target_platform=head.take("target_platform"),
        scope=scope or "all",
        counts=without_empty(**counts),
    )


def convert_entry(kind: EntryKind, plain: Any) -> dict[str, Any]:
    """Convert an entry of either layout to format 1.0."""
    if kind is DATASETS:
        converted, unknown_values = _dataset(legacy_object("", plain))
    elif kind is JOBS:
        converted, unknown_values = _job(legacy_object("", plain)), {}
    else:
        item = legacy_object("", {"name": plain} if isinstance(plain, str) else plain)
        converted, unknown_values = _convert_named_item(kind, item), {}
    extras = pop_unknown_keys(kind, converted)
    legacy_extras = unknown_values | extras
    # Drop objects that have become empty.
    return without_empty(**converted) | without_empty(
        raw={LEGACY_EXTRAS: legacy_extras} if legacy_extras else None
    )


def _job(job: LegacyObject) -> dict[str, Any]:
    urn = _urn(".urn", job.take("urn"))
    datasets = {
        name: [_urn(path, each) for path, each in job.items(name)] for name in ("inputs", "outputs")
    }
    return job.values | without_empty(urn=urn, **datasets)


def _convert_named_item(kind: EntryKind, item: LegacyObject) -> dict[str, Any]:
    name = item.take("name", "user", "group", "term", "username", "id", "urn")
    if kind is GLOSSARY and "definition" not in item.values:
        return item.rest(name=_plain_name(name), definition=item.take("description"))
    return item.rest(name=_plain_name(name))


def _plain_name(name: Any) -> Any:
    """The name in a URN of DataHub; other names are returned unchanged."""
    match = _DATAHUB_NAME.fullmatch(name) if isinstance(name, str) else None
    return name if match is None else match["name"]


def _dataset(dataset: LegacyObject) -> tuple[dict[str, Any], dict[str, Any]]:
    """The converted dataset, and the values that format 1.0 does not have."""
    urn = Urn.parse(_urn(".urn", dataset.take("urn"), dataset.take("environment")))
    # In format 1.0, the database is a part of the URN's path.
    database = dataset.take("database")
    properties = dataset.part("properties")
    documentation = dataset.part("documentation")
    converted = without_empty(
        urn=str(urn),
        name=dataset.take("name") or urn.name,
        platform=dataset.take("platform") or urn.platform,
        format=dataset.take("format"),
        schema=_schema(dataset.part("schema"), urn.platform),
        lineage=_lineage(dataset.part("lineage")),
        ownership=_ownership(dataset.part("ownership")),
        governance=_governance(dataset.part("governance"), dataset.items("tags")),
        documentation=documentation.rest(
            description=documentation.take("description") or properties.take("description"),
        ),
        properties=_properties(properties),
        versioning=_versioning(dataset.part("versioning")),
        cost=_cost(dataset.part("cost")),
        quality=_quality(dataset.part("quality")),
        timestamps=_timestamps(dataset.part("timestamps")),
        schedule=dataset.take("schedule"),
        usage=dataset.take("usage"),
    )
    unknown_values = dict(dataset.values)
    if database is not None and database not in urn.path:
        unknown_values["database"] = database
    unknown_values |= {f"properties.{name}": value for name, value in properties.values.items()}
    return converted, unknown_values


def without_empty(**values: Any) -> dict[str, Any]:
    """The values that are not empty."""
    return {name: value for name, value in values.items() if value not in (None, {}, [])}


def _schema(schema: LegacyObject, platform: str) -> dict[str, Any]:
    if schema.values.get("fields") is None:
        return schema.values
    fields = [_field(legacy_object(path, each), platform) for path, each in schema.items("fields")]
    return schema.values | {"fields": fields}


def _field(field: LegacyObject, platform: str) -> dict[str, Any]:
    type_text = field.take("type")
    if not isinstance(type_text, str):
        raise MalformedJson(f"{field.path}.type", f"Expected `str`, got {type_text!r}")
    type = _type(type_text, platform)
    pii = field.values.pop("pii") if isinstance(field.values.get("pii"), bool) else False
    tags = [*(field.take("tags") or ()), *(["PII"] if pii else ())]
    default = field.take("default")
    native = None if type == type_text.upper() else type_text
    return field.rest(
        type=type,
        default=default if default is None else _text(default),
        tags=tags,
        terms=field.take("glossary_terms", "terms"),
        native_type=field.take("native_type") or native,
    )


def _type(text: str, platform: str) -> str:
    try:
        return parse_type(text).text
    except (MisuseError, ValueError):
        dialects = sorted(_DIALECTS, key=lambda dialect: dialect != platform)
        candidates = (type_from_sql(text, dialect) for dialect in dialects)
        known = next((type for type in candidates if not isinstance(type, Unknown)), None)
        return type_from_sql(text, "hive").text if known is None else known.text


def _lineage(lineage: LegacyObject) -> dict[str, Any]:
    return lineage.rest(
        upstream=[_edge(path, each) for path, each in lineage.items("upstream")],
        downstream=[_edge(path, each) for path, each in lineage.items("downstream")],
    )


def _edge(path: str, value: object) -> dict[str, Any]:
    if isinstance(value, str):
        return {"urn": _urn(path, value)}
    edge = legacy_object(path, value)
    if str(edge.values.get("relationship_type")).lower() in _DIRECTIONS:
        edge.take("relationship_type")
    type = edge.take("type")
    if type is not None and str(type).lower() in _DIRECTIONS:
        type = None
    elif type is not None and str(type).upper() not in _LINEAGE_TYPES:
        raise MalformedJson(f"{path}.type", f"Expected {', '.join(_LINEAGE_TYPES)}, got {type!r}")
    return edge.rest(
        urn=_urn(f"{path}.urn", edge.take("urn")),
        type=type and str(type).upper(),
        columns=edge.take("columns", "column_mappings"),
    )


def _ownership(ownership: LegacyObject) -> dict[str, Any]:
    return ownership.rest(owners=[_owner(path, each) for path, each in ownership.items("owners")])


def _owner(path: str, value: object) -> dict[str, Any]:
    owner = legacy_object(path, {"user": value} if isinstance(value, str) else value)
    group, user = owner.take("group"), owner.take("user", "name")
    if isinstance(urn := owner.take("urn"), str):
        group = _plain_name(urn) if ":corpGroup:" in urn else group
        user = _plain_name(urn) if group is None else user
    if group is None and user is None:
        raise MalformedJson(path, "Expected an owner with a `urn`, a `user` or a `group`")
    return owner.rest(
        name=user if group is None else group,
        kind=None if group is None else "group",
        type=owner.take("type"),
    )


def _governance(governance: LegacyObject, tags: list[tuple[str, Any]]) -> dict[str, Any]:
    return governance.rest(
        tags=[_plain_name(tag) for _, tag in (*governance.items("tags"), *tags)],
        terms=[
            _plain_name(term)
            for name in ("glossary_terms", "terms")
            for _, term in governance.items(name)
        ],
        compliance=governance.take("compliance"),
    )


def _properties(properties: LegacyObject) -> dict[str, str]:
    custom = properties.part("custom_properties")
    return {name: _text(value) for name, value in custom.values.items()}


def _versioning(versioning: LegacyObject) -> dict[str, Any]:
    history = []
    for path, each in versioning.items("version_history"):
        step = legacy_object(path, each)
        history.append(
            step.rest(
                cloud_version=step.take("version", "cloud_version"),
                schema_version=step.take("schema_version"),
                at=step.time("timestamp", "at"),
                changes=step.take("changes"),
            )
        )
    return versioning.rest(history=history)


def _cost(cost: LegacyObject) -> dict[str, Any]:
    own = {
        "storage": cost.number("monthly_storage_cost"),
        "compute": cost.number("monthly_compute_cost"),
    }
    if not (
        converted := without_empty(
            own=without_empty(**own), calculated_at=cost.time("last_calculated")
        )
    ):
        return cost.values
    return cost.rest(currency=cost.take("currency") or "USD", period="monthly", **converted)


def _quality(quality: LegacyObject) -> dict[str, Any]:
    measured_at = quality.time("last_profiled", "last_validated")
    metrics = quality.part("quality_metrics")
    if metrics.values or "quality_score" in quality.values:
        score = quality.number("quality_score")
        dimensions = metrics.numbers()
        quality.values.update(without_empty(quality_metrics=metrics.values))
        return quality.rest(score=score, measured_at=measured_at, dimensions=dimensions)
    score = quality.number("score")
    freshness = quality.time("freshness")
    shares = quality.numbers()
    return quality.rest(
        score=_share(score),
        measured_at=measured_at,
        freshness=freshness,
        dimensions={name: _share(value) for name, value in shares.items()},
    )


def _share(per_cent: float | None) -> float | None:
    # Round the result, because a division can add digits: 99.2 becomes 0.992.
    return None if per_cent is None else round(per_cent / _PERCENT, 12)


def _timestamps(timestamps: LegacyObject) -> dict[str, Any]:
    names = ("created", "last_modified", "last_accessed")
    return timestamps.rest(**{name: timestamps.time(name) for name in names})


def _urn(path: str, value: object, environment: object = None) -> str:
    if not isinstance(value, str):
        raise MalformedJson(path, f"Expected `str`, got {value!r}")
    default_environment = str(environment or DEFAULT_ENVIRONMENT)
    try:
        if value.startswith(SCHEME):
            urn = Urn.parse(value)
            is_default = urn.environment == DEFAULT_ENVIRONMENT
            return str(
                msgspec.structs.replace(urn, environment=default_environment) if is_default else urn
            )
        if match := _DATAHUB_DATASET.fullmatch(value):
            segments = match["name"].split(separator_of(match["platform"]))
            return str(Urn.of(match["platform"], segments, environment=match["env"]))
    except InvalidUrn as problem:
        raise MalformedJson(path, str(problem)) from None
    raise MalformedJson(path, f"'{value}' is not the URN of a dataset")


def _time(path: str, value: object) -> str:
    try:
        time = msgspec.convert(value, datetime)
    except msgspec.ValidationError:
        raise MalformedJson(
            path, f"Expected a time such as 2024-01-15T10:30:00Z, got {value!r}"
        ) from None
    return time.isoformat() if time.tzinfo else time.replace(tzinfo=UTC).isoformat()


def _number(path: str, value: object) -> float:
    if not is_number(value):
        raise MalformedJson(path, f"Expected a number, got {value!r}")
    return value


def is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
