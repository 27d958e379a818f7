"""The store: datasets, aspects, schema versions, change events, aliases, audit log and scans."""

from lumos.store.database import Database
from lumos.store.datasets import (
    DatasetFilter,
    DatasetState,
    FinishedScan,
    KnownDataset,
    RecordedShapes,
    SchemaRecord,
    SourceCount,
    StoredHint,
)
from lumos.store.errors import (
    NoStore,
    StoreError,
    StoreLocked,
    StoreNotUsable,
    StoreTooNew,
    StoreTooOld,
    StoreUnreachable,
)
from lumos.store.jobs import JobRegistry, LeaseLost
from lumos.store.notification_outbox import NotificationOutbox
from lumos.store.search import Facets
from lumos.store.store import Store
from lumos.store.transaction import Completer, Listener, Transaction

__all__ = [
    "Completer",
    "Database",
    "DatasetFilter",
    "DatasetState",
    "Facets",
    "FinishedScan",
    "JobRegistry",
    "KnownDataset",
    "LeaseLost",
    "Listener",
    "NoStore",
    "NotificationOutbox",
    "RecordedShapes",
    "SchemaRecord",
    "SourceCount",
    "Store",
    "StoreError",
    "StoreLocked",
    "StoreNotUsable",
    "StoreTooNew",
    "StoreTooOld",
    "StoreUnreachable",
    "StoredHint",
    "Transaction",
]
