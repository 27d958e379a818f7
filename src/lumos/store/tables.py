"""The tables of the store, the same on SQLite and PostgreSQL."""

from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import TSVECTOR
from sqlalchemy.types import TypeDecorator

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class Instant(TypeDecorator[datetime]):
    """A UTC time as whole microseconds: sorts, compares and reads alike on every database."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:  # noqa: ARG002
        return None if value is None else (value - _EPOCH) // _MICROSECOND

    def process_result_value(self, value: Any | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        return None if value is None else _EPOCH + int(value) * _MICROSECOND


class Day(TypeDecorator[date]):
    """A day in UTC, counted from 1970."""

    impl = Integer
    cache_ok = True

    def process_bind_param(self, value: date | None, dialect: Dialect) -> int | None:  # noqa: ARG002
        return None if value is None else (value - _EPOCH.date()).days

    def process_result_value(self, value: Any | None, dialect: Dialect) -> date | None:  # noqa: ARG002
        return None if value is None else _EPOCH.date() + timedelta(days=int(value))


# SQLite only counts up by itself on INTEGER, PostgreSQL needs BIGINT for a long life.
Counter = BigInteger().with_variant(Integer(), "sqlite")

metadata = MetaData(
    naming_convention={
        "pk": "pk_%(table_name)s",
        "fk": "fk_%(table_name)s_%(column_0_name)s",
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    }
)

dataset = Table(
    "dataset",
    metadata,
    Column("urn", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("platform", Text, nullable=False),
    Column("format", Text),
    Column("source", Text, nullable=False),
    Column("state", String(16), nullable=False),
    Column("cloud_version", Text, nullable=False),
    Column("schema_version", Text, nullable=False),
    Column("schema_hash", String(32), ForeignKey("schema_body.hash")),
    Column("fingerprint", String(32), nullable=False),
    Column("content", String(32), nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("updated_at", Instant, nullable=False),
    Index(None, "source"),
    Index(None, "platform", "format"),
    Index(None, "name"),
)

aspect = Table(
    "aspect",
    metadata,
    Column("urn", Text, ForeignKey("dataset.urn"), primary_key=True),
    Column("name", String(32), primary_key=True),
    Column("body", LargeBinary, nullable=False),
    Column("writer", Text, nullable=False),
    Column("updated_at", Instant, nullable=False),
)

schema_body = Table(
    "schema_body",
    metadata,
    Column("hash", String(32), primary_key=True),
    Column("shape", String(32), nullable=False),
    Column("full", String(32), nullable=False),
    Column("body", LargeBinary, nullable=False),
)

schema_version = Table(
    "schema_version",
    metadata,
    Column("urn", Text, ForeignKey("dataset.urn"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("version", Text, nullable=False),
    Column("cloud_version", Text, nullable=False),
    Column("schema_hash", String(32), ForeignKey("schema_body.hash"), nullable=False),
    Column("event_id", String(32), nullable=False),
    Column("recorded_at", Instant, nullable=False),
    UniqueConstraint("urn", "version"),
)

# What scans remember of the schemas that a dataset's files had. `schema_hash` is the schema that
# the files declare, which lacks the partition columns and annotations of the recorded one.
schema_memory = Table(
    "schema_memory",
    metadata,
    Column("urn", Text, ForeignKey("dataset.urn"), primary_key=True),
    Column("schema_hash", String(32), ForeignKey("schema_body.hash"), nullable=False),
    Column("body", LargeBinary, nullable=False),
)

change_event = Table(
    "change_event",
    metadata,
    Column("sequence", Counter, primary_key=True, autoincrement=True),
    Column("event_id", String(32), nullable=False, unique=True),
    Column("urn", Text, nullable=False),
    Column("type", String(32), nullable=False),
    Column("breaking", Boolean, nullable=False),
    Column("recorded_at", Instant, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Index(None, "urn", "sequence"),
    Index(None, "recorded_at", "sequence"),
    Index(None, "type", "recorded_at", "sequence"),
    # Few events break anything, and most who ask about changes ask for those.
    Index(
        "ix_change_event_breaking",
        "recorded_at",
        "sequence",
        sqlite_where=text("breaking = 1"),
        postgresql_where=text("breaking"),
    ),
)

alias = Table(
    "alias",
    metadata,
    Column("urn", Text, primary_key=True),
    Column("dataset_urn", Text, ForeignKey("dataset.urn"), nullable=False),
    Column("reason", Text, nullable=False),
    Column("created_at", Instant, nullable=False),
    Index(None, "dataset_urn"),
)

audit = Table(
    "audit",
    metadata,
    Column("sequence", Counter, primary_key=True, autoincrement=True),
    Column("recorded_at", Instant, nullable=False),
    Column("actor", Text, nullable=False),
    Column("origin", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("details", Text, nullable=False),
    Index(None, "recorded_at"),
)

# What search looks at: words that Lumos split itself, so that both databases find the same.
# PostgreSQL keeps them in `vector` too; SQLite in an index of its own (see `search.py`).
search_entry = Table(
    "search_entry",
    metadata,
    Column("id", Counter, primary_key=True, autoincrement=True),
    Column("urn", Text, ForeignKey("dataset.urn"), nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("path", Text, nullable=False),
    Column("fields", Text, nullable=False),
    Column("words", Text, nullable=False),
    Column("facets", Text, nullable=False),
    Column("vector", TSVECTOR().with_variant(Text(), "sqlite")),
)

scan = Table(
    "scan",
    metadata,
    Column("source", Text, primary_key=True),
    Column("scan_id", Text, nullable=False),
    Column("manifest", Text, nullable=False),
    Column("finished_at", Instant, nullable=False),
)

# What channels are told of events. A message is kept whatever becomes of it.
notification = Table(
    "notification",
    metadata,
    Column("id", Counter, primary_key=True, autoincrement=True),
    Column("event_id", String(32), nullable=False),
    Column("channel", Text, nullable=False),
    Column("urn", Text, nullable=False),
    Column("title", Text, nullable=False),
    Column("body", Text, nullable=False),
    Column("urgent", Boolean, nullable=False),
    Column("state", String(16), nullable=False),
    Column("tries", Integer, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("due_at", Instant, nullable=False),
    Column("claimed_by", Text),
    Column("claimed_until", Instant),
    Column("sent_at", Instant),
    Column("problem", Text),
    UniqueConstraint("event_id", "channel"),
    Index(None, "state", "due_at"),
)

# What is known of a dataset and is no aspect: what others told of its versions and times, what only
# one catalog has a place for, and which words about it are whose.
beside = Table(
    "beside",
    metadata,
    Column("urn", Text, ForeignKey("dataset.urn"), primary_key=True),
    Column("name", String(32), primary_key=True),
    Column("body", LargeBinary, nullable=False),
)

# Terms, users, groups, jobs and what Lumos has no kind for.
item = Table(
    "item",
    metadata,
    Column("kind", String(16), primary_key=True),
    Column("key", Text, primary_key=True),
    Column("body", LargeBinary, nullable=False),
    Column("updated_at", Instant, nullable=False),
)

# What Lumos last wrote to each catalog, so that edits made there can be told from its own words.
merge_base = Table(
    "merge_base",
    metadata,
    Column("platform", Text, primary_key=True),
    Column("kind", String(16), primary_key=True),
    Column("key", Text, primary_key=True),
    Column("body", LargeBinary, nullable=False),
)

# The catalogs that are kept true: each hears of all that changes from then on.
told_catalog = Table(
    "told_catalog",
    metadata,
    Column("id", Counter, primary_key=True, autoincrement=True),
    Column("platform", Text, nullable=False, unique=True),
    Column("since", Instant, nullable=False),
)

# What changed and a catalog has not heard of yet. The token is another one after every change.
catalog_news = Table(
    "catalog_news",
    metadata,
    Column("catalog", Counter, primary_key=True, autoincrement=False),
    Column("kind", String(16), primary_key=True),
    Column("key", Text, primary_key=True),
    Column("token", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

import_run = Table(
    "import_run",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("sequence", Integer, nullable=False, unique=True),
    Column("platform", Text, nullable=False),
    Column("file", Text, nullable=False),
    Column("snapshot", String(64), nullable=False),
    Column("state", String(16), nullable=False),
    Column("started_at", Instant, nullable=False),
    Column("updated_at", Instant, nullable=False),
    Column("reached_kind", String(16)),
    Column("reached_key", Text),
    Column("sums", LargeBinary, nullable=False),
    Index(None, "platform", "sequence"),
)

# Written before a catalog is, so that every moment of an import has a way on and a way back.
import_step = Table(
    "import_step",
    metadata,
    Column("run", String(32), ForeignKey("import_run.id"), primary_key=True),
    Column("kind", String(16), primary_key=True),
    Column("key", Text, primary_key=True),
    Column("state", String(16), nullable=False),
    Column("before", LargeBinary),
    Column("after", LargeBinary, nullable=False),
    Column("base", LargeBinary),
)

# Datasets and jobs that data flows between, whether the store has them or not.
lineage_node = Table(
    "lineage_node",
    metadata,
    Column("id", Counter, primary_key=True, autoincrement=True),
    Column("urn", Text, nullable=False, unique=True),
)

# Who tells of lineage. A reporter's word on it replaces its earlier one, and nobody else's.
# `memory` is what it must know to understand what comes later.
lineage_reporter = Table(
    "lineage_reporter",
    metadata,
    Column("id", Counter, primary_key=True, autoincrement=True),
    Column("name", Text, nullable=False, unique=True),
    Column("reported_at", Instant, nullable=False),
    Column("memory", LargeBinary),
)

# `job` is a node as well; 0 where no job is known, since nothing equals NULL in a key.
lineage_edge = Table(
    "lineage_edge",
    metadata,
    Column("id", Counter, primary_key=True, autoincrement=True),
    Column("reporter", Counter, ForeignKey("lineage_reporter.id"), nullable=False),
    Column("upstream", Counter, ForeignKey("lineage_node.id"), nullable=False),
    Column("downstream", Counter, ForeignKey("lineage_node.id"), nullable=False),
    Column("job", Counter, nullable=False),
    Column("type", String(16), nullable=False),
    Column("confidence", Float(53), nullable=False),
    Column("created_by", Text, nullable=False),
    Column("first_seen", Instant, nullable=False),
    Column("last_seen", Instant, nullable=False),
    Column("body", LargeBinary),
    UniqueConstraint("reporter", "upstream", "downstream", "job"),
    Index(None, "upstream", "downstream"),
    Index(None, "downstream", "upstream"),
)

# What each reporter last said of a job; the job itself is an item.
lineage_job = Table(
    "lineage_job",
    metadata,
    Column("reporter", Counter, ForeignKey("lineage_reporter.id"), primary_key=True),
    Column("job", Text, primary_key=True),
    Column("body", LargeBinary, nullable=False),
    Index(None, "job"),
)

# The texts of SQL that reporters took edges from; without `dataset`, all of the reporter's.
lineage_script = Table(
    "lineage_script",
    metadata,
    Column("id", Counter, primary_key=True, autoincrement=True),
    Column("reporter", Counter, ForeignKey("lineage_reporter.id"), nullable=False),
    Column("dataset", Counter, ForeignKey("lineage_node.id")),
    Column("body", LargeBinary, nullable=False),
    Index(None, "reporter"),
    Index(None, "dataset"),
)

# Statements of reporters that could not be parsed, with the tables that their texts name.
lineage_unparsed = Table(
    "lineage_unparsed",
    metadata,
    Column("id", Counter, primary_key=True, autoincrement=True),
    Column("reporter", Counter, ForeignKey("lineage_reporter.id"), nullable=False),
    Column("body", LargeBinary, nullable=False),
    Index(None, "reporter"),
)

# The owners that reporters name, whether the store has the dataset or not.
lineage_owner = Table(
    "lineage_owner",
    metadata,
    Column("reporter", Counter, ForeignKey("lineage_reporter.id"), primary_key=True),
    Column("urn", Text, primary_key=True),
    Column("body", LargeBinary, nullable=False),
    Index(None, "urn"),
)

# Another value after every change of which edges there are.
lineage_revision = Table(
    "lineage_revision",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("revision", String(32), nullable=False),
)

# Who read what on which day, whether the store has the dataset or not. `columns` counts reads by
# column, as JSON: rows of their own would be ten times as many.
usage_reads = Table(
    "usage_reads",
    metadata,
    Column("urn", Text, primary_key=True),
    Column("day", Day, primary_key=True, autoincrement=False),
    Column("reader", Text, primary_key=True),
    Column("reporter", Text, primary_key=True),
    # Reads add up under 0. A sum that somebody made has another key, and a newer one replaces it.
    Column("sum_key", BigInteger, primary_key=True, autoincrement=False),
    Column("reads", BigInteger, nullable=False),
    Column("bytes", BigInteger),
    Column("rows", BigInteger),
    Column("last_read", Instant, nullable=False),
    Column("columns", LargeBinary),
    Index(None, "reporter"),
    # The key is most of a row.
    sqlite_with_rowid=False,
)

# Which statements are counted: a sorted list of eight bytes for each, so that none counts twice.
usage_log = Table(
    "usage_log",
    metadata,
    Column("reporter", Text, primary_key=True),
    Column("day", Day, primary_key=True, autoincrement=False),
    Column("keys", LargeBinary, nullable=False),
    Index(None, "day"),
)

# What jobs used, as each reporter tells; `key` is the same for what a later report replaces.
cost_meter = Table(
    "cost_meter",
    metadata,
    Column("reporter", Text, primary_key=True),
    Column("key", String(32), primary_key=True),
    Column("target", Text, nullable=False),
    Column("started_at", Instant, nullable=False),
    Column("ended_at", Instant, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("recorded_at", Instant, nullable=False),
    Index(None, "reporter", "target"),
    Index(None, "started_at"),
)

# What people say that something costs in a month, in micro-units, from a day on.
cost_override = Table(
    "cost_override",
    metadata,
    Column("urn", Text, primary_key=True),
    Column("type", String(16), primary_key=True),
    Column("since", Day, primary_key=True, autoincrement=False),
    Column("until", Day),
    Column("amount", BigInteger, nullable=False),
    Column("currency", String(3), nullable=False),
    Column("reason", Text, nullable=False),
    Column("author", Text, nullable=False),
    Column("set_at", Instant, nullable=False),
)

# How much a dataset held since a day; a row for each day on which that changed.
storage_size = Table(
    "storage_size",
    metadata,
    Column("urn", Text, primary_key=True),
    Column("day", Day, primary_key=True, autoincrement=False),
    Column("bytes", BigInteger, nullable=False),
    # By storage class, as JSON; nothing where no class is known.
    Column("classes", LargeBinary),
    sqlite_with_rowid=False,
)

# The periods whose costs are on record, and how these were come by.
cost_period = Table(
    "cost_period",
    metadata,
    Column("name", String(32), primary_key=True),
    Column("first", Day, nullable=False),
    Column("last", Day, nullable=False),
    Column("method", String(32), nullable=False),
    Column("currency", String(3), nullable=False),
    Column("computed_at", Instant, nullable=False),
)

# Costs in micro-units as they were computed for a period, whether the store has the URN or not.
cost_figure = Table(
    "cost_figure",
    metadata,
    Column("period", String(32), ForeignKey("cost_period.name"), primary_key=True),
    Column("urn", Text, primary_key=True),
    Column("type", String(16), primary_key=True),
    Column("own", BigInteger, nullable=False),
    Column("attributed", BigInteger, nullable=False),
    Column("total", BigInteger, nullable=False),
    Column("retained", BigInteger, nullable=False),
    Index(None, "urn"),
    sqlite_with_rowid=False,
)

# Hints on which files form a dataset, applied in the order of their ids.
dataset_hint = Table(
    "dataset_hint",
    metadata,
    Column("id", Counter, primary_key=True, autoincrement=True),
    # Of paths, name and split, so that the same hint is kept once.
    Column("digest", String(32), nullable=False, unique=True),
    # A list as JSON.
    Column("paths", Text, nullable=False),
    Column("name", Text),
    Column("split", Boolean, nullable=False),
    Column("author", Text, nullable=False),
    Column("added_at", Instant, nullable=False),
)
