"""The tables of the store, the same on SQLite and PostgreSQL.

Some tables have other names in Python than in databases, where names never change.
"""

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


class InstantColumn(TypeDecorator[datetime]):
    """A UTC time as microseconds since 1970, which all databases sort and compare alike."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:  # noqa: ARG002
        return None if value is None else (value - _EPOCH) // _MICROSECOND

    def process_result_value(self, value: Any | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002
        return None if value is None else _EPOCH + int(value) * _MICROSECOND


class DayColumn(TypeDecorator[date]):
    """A day in UTC, as the number of days since 1970."""

    impl = Integer
    cache_ok = True

    def process_bind_param(self, value: date | None, dialect: Dialect) -> int | None:  # noqa: ARG002
        return None if value is None else (value - _EPOCH.date()).days

    def process_result_value(self, value: Any | None, dialect: Dialect) -> date | None:  # noqa: ARG002
        return None if value is None else _EPOCH.date() + timedelta(days=int(value))


# SQLite auto-increments INTEGER only; PostgreSQL needs BIGINT for large numbers.
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
    Column("created_at", InstantColumn, nullable=False),
    Column("updated_at", InstantColumn, nullable=False),
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
    Column("updated_at", InstantColumn, nullable=False),
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
    Column("recorded_at", InstantColumn, nullable=False),
    UniqueConstraint("urn", "version"),
)

# The state of scans about the schemas of a dataset's files. `schema_hash` is the schema that
# the files declare, without the partition columns and annotations of the recorded one.
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
    Column("recorded_at", InstantColumn, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Index(None, "urn", "sequence"),
    Index(None, "recorded_at", "sequence"),
    Index(None, "type", "recorded_at", "sequence"),
    # A partial index: few events are breaking, and most queries select these.
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
    Column("created_at", InstantColumn, nullable=False),
    Index(None, "dataset_urn"),
)

audit = Table(
    "audit",
    metadata,
    Column("sequence", Counter, primary_key=True, autoincrement=True),
    Column("recorded_at", InstantColumn, nullable=False),
    Column("actor", Text, nullable=False),
    Column("origin", Text, nullable=False),
    Column("action", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("details", Text, nullable=False),
    Column("kind", Text, nullable=False, server_default="user"),
    # The state before and after the action, as JSON.
    Column("before", Text),
    Column("after", Text),
    Column("request_id", Text, nullable=False, server_default=""),
    # The hash of this row and of the hash of the row before it.
    Column("hash", Text, nullable=False, server_default=""),
    Index(None, "recorded_at"),
)

# One row: the number of audit rows and the hash of the last one.
audit_head = Table(
    "audit_head",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("sequence", BigInteger, nullable=False),
    Column("hash", Text, nullable=False),
)

api_token = Table(
    "api_token",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("role", Text, nullable=False),
    Column("digest", Text, nullable=False),
    Column("created_by", Text, nullable=False),
    Column("created_at", InstantColumn, nullable=False),
    Column("expires_at", InstantColumn),
    Column("revoked_at", InstantColumn),
    Column("last_used_at", InstantColumn),
)

# Reports of the gate that CI systems sent.
gate_result = Table(
    "gate_result",
    metadata,
    Column("id", Text, primary_key=True),
    Column("recorded_at", InstantColumn, nullable=False),
    Column("recorded_by", Text, nullable=False),
    Column("repository", Text, nullable=False),
    Column("pr", Integer),
    Column("head", Text, nullable=False),
    Column("verdict", Text, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Index(None, "repository", "recorded_at"),
)

# The text that search indexes, split into words by Lumos so that both databases find the same
# datasets. PostgreSQL indexes the words in `vector`, SQLite in FTS5 tables (see `search.py`).
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
    Column("finished_at", InstantColumn, nullable=False),
)

# Messages about events, one for each event and channel; sent messages are not deleted.
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
    Column("created_at", InstantColumn, nullable=False),
    Column("due_at", InstantColumn, nullable=False),
    Column("claimed_by", Text),
    Column("claimed_until", InstantColumn),
    Column("sent_at", InstantColumn),
    Column("problem", Text),
    # The owner whom a reminder is for.
    Column("recipient", Text),
    UniqueConstraint("event_id", "channel"),
    Index(None, "state", "due_at"),
)
# The due times of reminders that were handled, and how far they had read the change log.
reminder_run = Table(
    "reminder_run",
    metadata,
    Column("reminder", Text, primary_key=True),
    Column("due_at", InstantColumn, primary_key=True, autoincrement=False),
    Column("ran_at", InstantColumn, nullable=False),
    Column("position", BigInteger, nullable=False),
)

# Annotations of datasets and fields by reporter. PostgreSQL limits the length of index entries, so
# the key has a hash of reporter, path, slot and name (`digest`), and the index a hash of the
# reporter (`reporter_key`). A value of NULL removes the value that other reporters set.
annotation = Table(
    "annotation",
    metadata,
    Column("urn", Text, ForeignKey("dataset.urn"), primary_key=True),
    Column("digest", String(32), primary_key=True),
    Column("path", Text, nullable=False),
    Column("slot", String(32), nullable=False),
    Column("name", Text, nullable=False),
    Column("value", Text),
    Column("reporter", Text, nullable=False),
    Column("reporter_key", BigInteger, nullable=False),
    Column("author", Text),
    Column("recorded_at", InstantColumn),
    Index(None, "reporter_key"),
    sqlite_with_rowid=False,
)

# Extras of a dataset that are not aspects: versions, times and lineage from imports, and fields
# that only one catalog has.
extras = Table(
    "beside",
    metadata,
    Column("urn", Text, ForeignKey("dataset.urn"), primary_key=True),
    Column("name", String(32), primary_key=True),
    Column("body", LargeBinary, nullable=False),
)

# Terms, users, groups, jobs and entities of kinds that Lumos does not model.
item = Table(
    "item",
    metadata,
    Column("kind", String(16), primary_key=True),
    Column("key", Text, primary_key=True),
    Column("body", LargeBinary, nullable=False),
    Column("updated_at", InstantColumn, nullable=False),
)

# Entries as Lumos last wrote them to each catalog, to recognize edits that were made there.
merge_base = Table(
    "merge_base",
    metadata,
    Column("platform", Text, primary_key=True),
    Column("kind", String(16), primary_key=True),
    Column("key", Text, primary_key=True),
    Column("body", LargeBinary, nullable=False),
)

# The catalogs that Lumos publishes to: every change is put into their outboxes.
catalog_subscription = Table(
    "told_catalog",
    metadata,
    Column("id", Counter, primary_key=True, autoincrement=True),
    Column("platform", Text, nullable=False, unique=True),
    Column("since", InstantColumn, nullable=False),
)

# Changes that are not published to a catalog yet. Every change sets a new token.
catalog_outbox = Table(
    "catalog_news",
    metadata,
    Column("catalog", Counter, primary_key=True, autoincrement=False),
    Column("kind", String(16), primary_key=True),
    Column("key", Text, primary_key=True),
    Column("token", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

# Values that users of a catalog and Lumos changed differently, as a list in JSON; the users' values
# won.
catalog_conflict = Table(
    "catalog_conflict",
    metadata,
    Column("catalog", Counter, primary_key=True, autoincrement=False),
    Column("kind", String(16), primary_key=True),
    Column("key", Text, primary_key=True),
    Column("found_at", InstantColumn, nullable=False),
    Column("body", LargeBinary, nullable=False),
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
    Column("started_at", InstantColumn, nullable=False),
    Column("updated_at", InstantColumn, nullable=False),
    Column("reached_kind", String(16)),
    Column("reached_key", Text),
    Column("sums", LargeBinary, nullable=False),
    Index(None, "platform", "sequence"),
)

# Written before the catalog, so that an import can be resumed and rolled back at any time.
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

# Datasets and jobs that lineage mentions, in the store or not.
lineage_node = Table(
    "lineage_node",
    metadata,
    Column("id", Counter, primary_key=True, autoincrement=True),
    Column("urn", Text, nullable=False, unique=True),
)

# Sources of lineage. A report replaces the earlier one of the same reporter only.
# `memory` is the state that a reporter needs to interpret later input.
lineage_reporter = Table(
    "lineage_reporter",
    metadata,
    Column("id", Counter, primary_key=True, autoincrement=True),
    Column("name", Text, nullable=False, unique=True),
    Column("reported_at", InstantColumn, nullable=False),
    Column("memory", LargeBinary),
)

# `job` is a node as well, or 0 without a job, since NULL is not equal to NULL in a key.
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
    Column("first_seen", InstantColumn, nullable=False),
    Column("last_seen", InstantColumn, nullable=False),
    Column("body", LargeBinary),
    UniqueConstraint("reporter", "upstream", "downstream", "job"),
    Index(None, "upstream", "downstream"),
    Index(None, "downstream", "upstream"),
)

# Each reporter's last report of a job or of a consumer of datasets, by URN; the merged report is an
# item.
lineage_item = Table(
    "lineage_job",
    metadata,
    Column("reporter", Counter, ForeignKey("lineage_reporter.id"), primary_key=True),
    Column("job", Text, primary_key=True),
    Column("body", LargeBinary, nullable=False),
    Index(None, "job"),
)

# SQL texts that reporters derived edges from; without `dataset`, for all edges of the reporter.
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

# Statements that could not be parsed, with the tables that they mention.
lineage_unparsed = Table(
    "lineage_unparsed",
    metadata,
    Column("id", Counter, primary_key=True, autoincrement=True),
    Column("reporter", Counter, ForeignKey("lineage_reporter.id"), nullable=False),
    Column("body", LargeBinary, nullable=False),
    Index(None, "reporter"),
)

# Owners by reporter, including owners of datasets that are not in the store.
lineage_owner = Table(
    "lineage_owner",
    metadata,
    Column("reporter", Counter, ForeignKey("lineage_reporter.id"), primary_key=True),
    Column("urn", Text, primary_key=True),
    Column("body", LargeBinary, nullable=False),
    Index(None, "urn"),
)

# One row: a random revision that changes whenever edges are added or removed.
lineage_revision = Table(
    "lineage_revision",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("revision", String(32), nullable=False),
)

# Reads by dataset (in the store or not), day and reader. `columns` counts
# reads by column as JSON, since separate rows would be ten times as many.
usage_reads = Table(
    "usage_reads",
    metadata,
    Column("urn", Text, primary_key=True),
    Column("day", DayColumn, primary_key=True, autoincrement=False),
    Column("reader", Text, primary_key=True),
    Column("reporter", Text, primary_key=True),
    # Rows with key 0 count reads one by one. Rows with another key are totals that a source
    # reported; a newer total with the same key replaces them.
    Column("sum_key", BigInteger, primary_key=True, autoincrement=False),
    Column("reads", BigInteger, nullable=False),
    Column("bytes", BigInteger),
    Column("rows", BigInteger),
    Column("last_read", InstantColumn, nullable=False),
    Column("columns", LargeBinary),
    Index(None, "reporter"),
    # Without a separate index for the key, since the key is most of the row.
    sqlite_with_rowid=False,
)

# The 8-byte keys of counted statements, as a sorted list, so no statement is counted twice.
usage_log = Table(
    "usage_log",
    metadata,
    Column("reporter", Text, primary_key=True),
    Column("day", DayColumn, primary_key=True, autoincrement=False),
    Column("keys", LargeBinary, nullable=False),
    Index(None, "day"),
)

# Metered usage of jobs by reporter; a later report with the same `key` replaces it.
cost_meter = Table(
    "cost_meter",
    metadata,
    Column("reporter", Text, primary_key=True),
    Column("key", String(32), primary_key=True),
    Column("target", Text, nullable=False),
    Column("started_at", InstantColumn, nullable=False),
    Column("ended_at", InstantColumn, nullable=False),
    Column("body", LargeBinary, nullable=False),
    Column("recorded_at", InstantColumn, nullable=False),
    Index(None, "reporter", "target"),
    Index(None, "started_at"),
)

# Monthly costs that users set, in micro-units, from a day on.
cost_override = Table(
    "cost_override",
    metadata,
    Column("urn", Text, primary_key=True),
    Column("type", String(16), primary_key=True),
    Column("since", DayColumn, primary_key=True, autoincrement=False),
    Column("until", DayColumn),
    Column("amount", BigInteger, nullable=False),
    Column("currency", String(3), nullable=False),
    Column("reason", Text, nullable=False),
    Column("author", Text, nullable=False),
    Column("set_at", InstantColumn, nullable=False),
)

# The size of a dataset from a day on; one row for each day on which it changed.
storage_size = Table(
    "storage_size",
    metadata,
    Column("urn", Text, primary_key=True),
    Column("day", DayColumn, primary_key=True, autoincrement=False),
    Column("bytes", BigInteger, nullable=False),
    # Bytes by storage class as JSON, or NULL if the classes are unknown.
    Column("classes", LargeBinary),
    sqlite_with_rowid=False,
)

# The periods with recorded costs, and how these were computed.
cost_period = Table(
    "cost_period",
    metadata,
    Column("name", String(32), primary_key=True),
    Column("first", DayColumn, nullable=False),
    Column("last", DayColumn, nullable=False),
    Column("method", String(32), nullable=False),
    Column("currency", String(3), nullable=False),
    Column("computed_at", InstantColumn, nullable=False),
)

# The costs computed for a period in micro-units, by URN (in the store or not).
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
    # The digest of paths, name and split, so that the same hint is stored once.
    Column("digest", String(32), nullable=False, unique=True),
    # A list as JSON.
    Column("paths", Text, nullable=False),
    Column("name", Text),
    Column("split", Boolean, nullable=False),
    Column("author", Text, nullable=False),
    Column("added_at", InstantColumn, nullable=False),
)

# The registry of jobs: queued, running and finished ones.
job = Table(
    "job",
    metadata,
    Column("id", Counter, primary_key=True, autoincrement=True),
    Column("kind", String(32), nullable=False),
    # JSON, like the progress, the completed steps and the result.
    Column("arguments", LargeBinary, nullable=False),
    Column("state", String(16), nullable=False),
    Column("priority", Integer, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("max_attempts", Integer, nullable=False),
    Column("not_before", InstantColumn, nullable=False),
    Column("time_limit", Integer),
    Column("idempotency_key", Text, unique=True),
    Column("concurrency_key", Text),
    Column("concurrency_limit", Integer, nullable=False),
    Column("progress", LargeBinary),
    Column("completed_steps", LargeBinary, nullable=False),
    Column("result", LargeBinary),
    Column("error", Text),
    # Increases with each attempt; a worker with an older token can no longer write.
    Column("token", BigInteger, nullable=False),
    Column("worker", Text),
    Column("lease_until", InstantColumn),
    Column("cancel_requested", Boolean, nullable=False),
    Column("requested_by", Text, nullable=False),
    # Headers as JSON, with which an attempt continues the trace of the request.
    Column("trace", LargeBinary),
    Column("created_at", InstantColumn, nullable=False),
    Column("started_at", InstantColumn),
    Column("finished_at", InstantColumn),
    Index(None, "state", "priority", "id"),
    Index(None, "state", "lease_until"),
    Index(None, "concurrency_key", "state"),
    Index(None, "finished_at"),
    # Ids of deleted jobs are not used again: messages and logs may still name them.
    sqlite_autoincrement=True,
)

# The last lines of each job's log.
job_log = Table(
    "job_log",
    metadata,
    Column("job", Counter, ForeignKey("job.id"), primary_key=True, autoincrement=False),
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("at", InstantColumn, nullable=False),
    Column("text", Text, nullable=False),
    sqlite_with_rowid=False,
)

# Schedules of jobs; `next_due` is the next due time without a job.
schedule = Table(
    "schedule",
    metadata,
    Column("name", Text, primary_key=True),
    Column("kind", String(32), nullable=False),
    Column("arguments", LargeBinary, nullable=False),
    Column("cron", Text, nullable=False),
    Column("timezone", Text, nullable=False),
    Column("jitter", Integer, nullable=False),
    Column("catch_up", String(8), nullable=False),
    Column("paused", Boolean, nullable=False),
    Column("next_due", InstantColumn, nullable=False),
    Column("last_due", InstantColumn),
    Column("last_job", BigInteger),
    Column("priority", Integer, nullable=False),
    Column("max_attempts", Integer, nullable=False),
    Column("time_limit", Integer),
    Column("created_by", Text, nullable=False),
    Column("created_at", InstantColumn, nullable=False),
)

# The due times that were handled, each once; skipped due times have no job.
schedule_run = Table(
    "schedule_run",
    metadata,
    Column("schedule", Text, primary_key=True),
    Column("due_at", InstantColumn, primary_key=True, autoincrement=False),
    Column("job", BigInteger),
)

# Releases that were announced.
release = Table(
    "release",
    metadata,
    Column("name", Text, primary_key=True),
    Column("at", InstantColumn, nullable=False),
    Column("created_at", InstantColumn, nullable=False),
    Column("created_by", Text, nullable=False),
)

# The refresh of a dataset after a release, as JSON.
release_refresh = Table(
    "release_refresh",
    metadata,
    Column("release", Text, ForeignKey("release.name"), primary_key=True),
    Column("urn", Text, primary_key=True),
    Column("content", LargeBinary, nullable=False),
)
