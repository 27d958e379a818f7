"""Values that go into and come out of the store."""

from datetime import datetime
from typing import Final, Literal

import msgspec

from lumos.model.schema import Schema

# `missing`: its files are gone; `split`: other datasets took its place.
State = Literal["live", "missing", "split"]
# The source of datasets that no scan of this store has seen.
IMPORTED: Final = "import"


class KnownDataset(msgspec.Struct, frozen=True, kw_only=True):
    """What the store has on record about a dataset's identity, versions and fingerprints."""

    urn: str
    name: str
    platform: str
    format: str | None
    source: str
    state: State
    cloud_version: str
    schema_version: str
    schema_hash: str | None
    fingerprint: str
    content: str
    created_at: datetime
    updated_at: datetime

    @property
    def absence(self) -> str:
        """Why the dataset is not live, as the predicate of a sentence about its URN."""
        if self.state == "split":
            return (
                f"was split into other datasets on {self.updated_at:%Y-%m-%d}. "
                f"See which with: lumos show {self.urn}"
            )
        return f"is gone since {self.updated_at:%Y-%m-%d}."


class SchemaRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One schema version in a dataset's history."""

    number: int
    version: str
    cloud_version: str
    event_id: str
    recorded_at: datetime
    schema: Schema


class RecordedShapes(msgspec.Struct, frozen=True, kw_only=True):
    """What is on record about the schemas of a live dataset's files.

    `memory` is what scans remember, in the encoding of the pipeline, and `schema` the schema that
    the files declare, as JSON. A dataset that no scan has remembered yet has no memory; `schema` is
    then its recorded schema, with partition columns.
    """

    format: str | None
    schema: bytes
    memory: bytes | None


class Scan(msgspec.Struct, frozen=True, kw_only=True):
    """The last finished scan of a source and the manifest it left."""

    source: str
    scan_id: str
    manifest: str
    finished_at: datetime


class DatasetFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which datasets to list."""

    platform: str | None = None
    format: str | None = None
    source: str | None = None
    contains: str | None = None
    limit: int | None = None
