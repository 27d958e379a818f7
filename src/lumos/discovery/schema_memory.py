"""What scans of any root remember of the schemas of a dataset's files."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lumos.model.json_codec import from_json
from lumos.model.schema import Schema
from lumos.store import Store

if TYPE_CHECKING:
    from lumos.discovery.current_schema import RecalledMemory


def recall_memories(store: Store, urns: Mapping[str, str]) -> dict[str, "RecalledMemory"]:
    """The memories of live datasets, by the same keys as their URNs.

    A dataset that was imported, or recorded by a version that kept memories in manifests, has none
    yet: its recorded schema and drift stand in for it.
    """
    from lumos.discovery.current_schema import memory_of_record, recalled_memory

    recorded = store.recorded_shapes(set(urns.values()))
    forgotten = [urn for urn, each in recorded.items() if each.memory is None]
    drift = store.aspects_of("drift", forgotten)
    locations = store.aspects_of("location", forgotten)
    found: dict[str, RecalledMemory] = {}
    for path, urn in urns.items():
        each = recorded.get(urn)
        if each is None:
            continue
        if each.memory is not None:
            found[path] = recalled_memory(each.memory, each.schema, each.format)
            continue
        location = locations.get(urn)
        found[path] = memory_of_record(
            from_json(each.schema, Schema),
            drift.get(urn, ()),
            partition_keys=() if location is None else location.partition_keys,
            format=each.format,
        )
    return found
