"""What Lumos knows: datasets, aspects, schema versions, change events, aliases, audit, scans."""

from lumos.store.database import Database
from lumos.store.errors import (
    NoStore,
    StoreError,
    StoreLocked,
    StoreNotUsable,
    StoreTooNew,
    StoreTooOld,
)
from lumos.store.hints import StoredHint
from lumos.store.listening import Completer, Listener
from lumos.store.notification_outbox import NotificationOutbox
from lumos.store.records import (
    DatasetFilter,
    KnownDataset,
    RecordedShapes,
    Scan,
    SchemaRecord,
    State,
)
from lumos.store.search import Facets
from lumos.store.store import Store
from lumos.store.transaction import Transaction

__all__ = [
    "Completer",
    "Database",
    "DatasetFilter",
    "Facets",
    "KnownDataset",
    "Listener",
    "NoStore",
    "NotificationOutbox",
    "RecordedShapes",
    "Scan",
    "SchemaRecord",
    "State",
    "Store",
    "StoreError",
    "StoreLocked",
    "StoreNotUsable",
    "StoreTooNew",
    "StoreTooOld",
    "StoredHint",
    "Transaction",
]
