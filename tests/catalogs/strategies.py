"""Arbitrary entries: every aspect, the oddest names, deep nesting."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from lumos.model.catalog import (
    CatalogEntity,
    CatalogEntry,
    GlossaryTerm,
    Group,
    Job,
    Timestamps,
    User,
)
from lumos.model.dataset import (
    ColumnReads,
    ColumnStatistics,
    Cost,
    Definition,
    Documentation,
    DriftedShape,
    Governance,
    Lineage,
    Location,
    Owner,
    Ownership,
    Quality,
    QualityCheck,
    Reader,
    Schedule,
    Statistics,
    UpstreamEdge,
    Usage,
    Versioning,
    VersionRecord,
)
from lumos.model.lineage import ColumnMapping, ColumnUse, Derivation, JobRun, UseKind
from lumos.model.schema import Field, NestedField, Schema
from lumos.model.type_path import nested_parts
from lumos.model.urn import Urn
from model.strategies import ODD_NAMES, TYPES

# Names that some catalog gives a meaning of its own.
_NAMES = (
    "id", "Id", "ID", "a.b", "a/b", "a, b", "(x)", "%2C", "%25", "@", "urn:li:tag:x", "[type=int]",
    "[version=2.0].[type=string].x", "lumos.schema", "lumos.property.x", "lumos.name.2", "",
    "urn:li:structuredProperty:io.x", "größe", "名前", "🦆", "'", '"', "`", "a\nb", "\\",
)  # fmt: skip
TEXTS = st.sampled_from((*_NAMES, *ODD_NAMES)) | st.text(
    st.characters(exclude_categories=("Cs",)), max_size=8
)
WORDS = TEXTS.filter(bool)
MOMENTS = st.datetimes(
    datetime(1970, 1, 2),
    datetime(2200, 1, 1),
    timezones=st.sampled_from((UTC, timezone(timedelta(hours=2)))),
) | st.just(datetime(2024, 1, 15, 10, 30, tzinfo=UTC))
COUNTS = st.integers(0, 2**53)
SHARES = st.floats(0, 1)
URNS = st.builds(
    lambda platform, path, instance, environment: str(
        Urn.of(platform, path, instance=instance, environment=environment)
    ),
    st.sampled_from(("s3", "snowflake", "kafka", "postgres", "file", "datahub")),
    st.lists(TEXTS, min_size=1, max_size=3).filter(lambda path: path != [""]),
    st.sampled_from(("", "", "eu", "us.west", "a,b")),
    st.sampled_from(("", "", "DEV", "NON_PROD", "STAGING7")),
)


def several(values: SearchStrategy[Any], **limits: Any) -> SearchStrategy[tuple[Any, ...]]:
    return st.lists(values, **{"max_size": 3, **limits}).map(tuple)


def maybe(values: SearchStrategy[Any]) -> SearchStrategy[Any]:
    return st.none() | values


NAMES = several(TEXTS, unique=True)
PROPERTIES = st.dictionaries(TEXTS, TEXTS, max_size=4)


@st.composite
def fields(draw: st.DrawFn, types: SearchStrategy[Any] = TYPES) -> Field:
    """A column with notes on what is inside it."""
    field = Field(
        name=draw(TEXTS),
        type=draw(types),
        nullable=draw(st.booleans()),
        key=draw(st.booleans()),
        partition=draw(st.booleans()),
        default=draw(maybe(TEXTS)),
        description=draw(maybe(TEXTS)),
        tags=draw(NAMES),
        native_type=draw(maybe(TEXTS | st.just("NUMBER(38,0)") | st.just("DATE"))),
        field_id=draw(maybe(st.integers(0, 999))),
        terms=draw(NAMES),
        compliance=draw(NAMES),
        properties=draw(PROPERTIES),
    )
    notes = [
        NestedField(
            path=part.path,
            description=draw(maybe(TEXTS)),
            tags=draw(NAMES),
            default=draw(maybe(TEXTS)),
            native_type=draw(maybe(TEXTS)),
            field_id=draw(maybe(st.integers(0, 9))),
            terms=draw(NAMES),
            properties=draw(PROPERTIES),
        )
        for part in nested_parts(field)
        if draw(st.booleans())
    ]
    told = tuple(note for note in notes if note != NestedField(path=note.path))
    return msgspec.structs.replace(field, nested=told)


SCHEMAS = several(fields(), unique_by=lambda field: field.name).map(
    lambda each: Schema(fields=each)
)
EDGES = several(
    st.builds(
        UpstreamEdge,
        urn=URNS | st.sampled_from(("job:x", "lumos://airflow")),
        type=st.sampled_from(("TRANSFORMED", "COPIED", "VIEW")),
        columns=several(
            st.builds(
                ColumnMapping,
                upstream=TEXTS | st.just("items[].price"),
                downstream=TEXTS,
                transformation=maybe(TEXTS),
                derivation=maybe(st.sampled_from(Derivation)),
                cast_to=maybe(TEXTS),
                positional=st.booleans(),
                star=st.booleans(),
                file=maybe(TEXTS),
                line=maybe(st.integers(1, 99_999)),
            )
        ),
        uses=several(
            st.builds(
                ColumnUse,
                upstream=TEXTS,
                usage=st.sampled_from(UseKind),
                downstream=maybe(TEXTS),
                expression=maybe(TEXTS),
                cast_to=maybe(TEXTS),
                negated=st.booleans(),
                file=maybe(TEXTS),
                line=maybe(st.integers(1, 99_999)),
            )
        ),
    )
)
OWNERS = st.builds(
    Owner,
    name=TEXTS,
    kind=st.sampled_from(("user", "group")),
    type=st.sampled_from(("TECHNICAL_OWNER", "DATAOWNER", "NONE", "CUSTOM", "__system__none"))
    | TEXTS,
)
CARRIED = st.dictionaries(
    st.sampled_from(("atlas", "openmetadata")),
    st.dictionaries(TEXTS, st.lists(st.integers() | TEXTS, max_size=2), min_size=1, max_size=2),
    max_size=1,
)
CHECKS = st.builds(
    QualityCheck, name=TEXTS, status=st.sampled_from(("PASSED", "FAILED")), details=maybe(TEXTS)
)
AMOUNTS = st.dictionaries(TEXTS, st.floats(0, 1e6), max_size=2)
COSTS = st.builds(
    Cost,
    currency=TEXTS,
    period=TEXTS,
    own=AMOUNTS,
    attributed=AMOUNTS,
    calculated_at=maybe(MOMENTS),
)
SCHEDULES = st.builds(Schedule, cron=TEXTS, timezone=TEXTS, availability_lag_minutes=COUNTS)
ASPECTS: dict[str, SearchStrategy[Any]] = {
    "location": st.builds(
        Location, uri=TEXTS, partitioning=maybe(TEXTS), partition_keys=NAMES, identity=maybe(TEXTS)
    ),
    "schema": SCHEMAS,
    "statistics": st.builds(
        Statistics,
        file_count=COUNTS,
        row_count=maybe(COUNTS),
        last_modified=maybe(MOMENTS),
        columns=st.dictionaries(
            TEXTS, st.builds(ColumnStatistics, null_count=maybe(COUNTS), minimum=maybe(TEXTS)), max_size=3
        ),
    ),
    "drift": several(st.builds(DriftedShape, shape=TEXTS, file_count=COUNTS, examples=NAMES)),
    "definition": st.builds(Definition, sql=TEXTS, dialect=TEXTS),
    "lineage": st.builds(Lineage, upstream=EDGES, downstream=EDGES),
    "ownership": st.builds(Ownership, owners=several(OWNERS, unique=True)),
    "governance": st.builds(Governance, tags=NAMES, terms=NAMES, compliance=NAMES),
    "documentation": st.builds(
        Documentation, description=maybe(TEXTS), business_context=maybe(TEXTS), domain=maybe(TEXTS)
    ),
    "properties": PROPERTIES,
    "versioning": st.builds(
        Versioning,
        cloud_version=st.integers(1, 999).map(lambda number: f"S-{number}"),
        schema_version=st.integers(1, 99).map(lambda number: f"{number}.0.0"),
        history=several(
            st.builds(
                VersionRecord,
                cloud_version=st.integers(1, 999).map(lambda number: f"S-{number}"),
                schema_version=st.integers(1, 99).map(lambda number: f"{number}.0.0"),
                at=MOMENTS,
                changes=NAMES,
            )
        ),
    ),
    "schedule": SCHEDULES,
    "usage": st.builds(
        Usage,
        readers=several(st.builds(Reader, name=TEXTS, reads=COUNTS, last_read=maybe(MOMENTS))),
        since=maybe(st.dates()),
        columns=st.dictionaries(
            TEXTS, st.builds(ColumnReads, reads=COUNTS, last_read=maybe(st.dates())), max_size=2
        ),
    ),
    "quality": st.builds(
        Quality, score=maybe(SHARES), dimensions=st.dictionaries(TEXTS, SHARES, max_size=2),
        checks=several(CHECKS),
    ),
    "cost": COSTS,
}  # fmt: skip
TIMES = st.builds(
    Timestamps, created=maybe(MOMENTS), last_modified=maybe(MOMENTS), last_accessed=maybe(MOMENTS)
)


@st.composite
def entries(
    draw: st.DrawFn, urns: SearchStrategy[str] = URNS, **more: SearchStrategy[Any]
) -> CatalogEntry:
    """An entry with some aspects or all."""
    urn = draw(urns)
    aspects = {name: draw(maybe(values)) for name, values in {**ASPECTS, **more}.items()}
    return CatalogEntry(
        urn=urn,
        name=draw(TEXTS),
        platform=Urn.parse(urn).platform,
        format=draw(maybe(TEXTS)),
        timestamps=draw(maybe(TIMES)),
        deleted=draw(st.booleans()),
        raw=draw(CARRIED),
        **aspects,
    )


ITEMS = st.one_of(
    st.builds(
        GlossaryTerm, name=WORDS, display_name=maybe(TEXTS), definition=maybe(TEXTS),
        parent=maybe(TEXTS), related=NAMES, domain=maybe(TEXTS), owners=NAMES,
        properties=PROPERTIES, raw=CARRIED,
    ),
    st.builds(
        User, name=WORDS, display_name=maybe(TEXTS), email=maybe(TEXTS), title=maybe(TEXTS),
        active=st.booleans(), groups=NAMES, properties=PROPERTIES, raw=CARRIED,
    ),
    st.builds(
        Group, name=WORDS, display_name=maybe(TEXTS), description=maybe(TEXTS), email=maybe(TEXTS),
        members=NAMES, properties=PROPERTIES, raw=CARRIED,
    ),
    st.builds(
        Job, urn=WORDS, name=TEXTS, platform=TEXTS, inputs=several(URNS), owner=maybe(TEXTS),
        description=maybe(TEXTS), schedule=maybe(SCHEDULES), cost=maybe(COSTS),
        runs=several(st.builds(JobRun, run_id=TEXTS, job=TEXTS, started_at=MOMENTS)),
    ),
    st.builds(CatalogEntity, urn=WORDS, raw=CARRIED),
)  # fmt: skip
