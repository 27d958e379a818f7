"""How a step of a dataset's versions that no scan took is written down."""

import hashlib
from collections.abc import Callable, Sequence
from datetime import datetime

import msgspec

from lumos.model.change import ChangeEvent
from lumos.model.dataset import Location
from lumos.model.version import CloudVersion, Level, SchemaVersion
from lumos.store import KnownDataset, Transaction


class Steps:
    """Takes steps with a prefix; `written` is told which datasets took one."""

    def __init__(self, *, prefix: str, written: Callable[[Sequence[str]], None]) -> None:
        self.prefix = prefix
        self._written = written

    def after(self, known: KnownDataset, level: Level, *, at: datetime) -> KnownDataset:
        """The dataset one step further."""
        cloud_version = CloudVersion.parse(known.cloud_version).next(prefix=self.prefix)
        schema_version = SchemaVersion.parse(known.schema_version).next(level)
        return msgspec.structs.replace(
            known,
            cloud_version=str(cloud_version),
            schema_version=str(schema_version),
            updated_at=at,
        )

    def write(
        self,
        transaction: Transaction,
        after: KnownDataset,
        event: ChangeEvent,
        *,
        begins_version: bool,
    ) -> None:
        """Writes a step."""
        transaction.save(after)
        transaction.save_event(event)
        if begins_version and after.schema_hash is not None:
            transaction.save_schema_version(after, event)

    def written(self, urns: Sequence[str]) -> None:
        """Tells others, once the steps are safe."""
        self._written(urns)


def source_path(transaction: Transaction, urn: str) -> str | None:
    """Where the data of a dataset lies, as far as it is on record."""
    location: Location | None = transaction.aspect(urn, "location")
    return None if location is None else location.uri


def step_id(*facts: str) -> str:
    """The same step always has the same id."""
    return hashlib.blake2b("\n".join(facts).encode(), digest_size=16).hexdigest()
