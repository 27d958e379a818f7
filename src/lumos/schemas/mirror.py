"""Mirrors schema history as readable text files, for `storage.backend: file`."""

from collections.abc import Iterable
from pathlib import Path

from lumos.model.urn import Urn
from lumos.storage import storage_of
from lumos.store import Store


def mirror_schemas(store: Store, urns: Iterable[str], *, folder: Path) -> None:
    """Writes every schema version of the datasets as `<platform>/<path>/<version>.schema`."""
    from lumos.schemas.files import place_of

    for urn in urns:
        place = (folder / "schemas" / place_of(Urn.parse(urn))).with_suffix("")
        for record in store.history(urn):
            text = (
                f"# {urn}\n# {record.cloud_version}, {record.recorded_at:%Y-%m-%d %H:%M:%S} UTC\n"
            )
            file = place / f"{record.version}.schema"
            if not file.exists():
                storage_of(str(file)).write(str(file), f"{text}{record.schema}\n".encode())
