"""Encodes datasets as aspects, and decodes them."""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, ClassVar, Final

import msgspec

from lumos.catalogs.datahub import common_aspects as common
from lumos.catalogs.datahub import lineage
from lumos.catalogs.datahub.aspects import (
    CATALOG,
    Aspects,
    AspectWrite,
    Entity,
    InvalidAspect,
    ServerModel,
    Writes,
    aspects_after,
    raw_of_others,
    to_raw,
    update_aspect,
    writes_in_raw,
)
from lumos.catalogs.datahub.codec import Codec, RenderedItem, read_unpacked_properties
from lumos.catalogs.datahub.common_aspects import EDITED
from lumos.catalogs.datahub.names import (
    Naming,
    instance_name,
    instance_urn,
    lumos_urn,
    platform_urn,
)
from lumos.catalogs.datahub.schema import (
    EDITS,
    SCHEMA,
    Edits,
    fields_with_edits,
    read_schema,
    write_schema,
)
from lumos.catalogs.interface import SeparatesUserEdits
from lumos.model.catalog import CatalogEntry
from lumos.model.schema import Schema
from lumos.model.urn import Urn

INSTANCE: Final = "dataPlatformInstance"
NATIVE: Final = frozenset(
    {"schema", "lineage", "ownership", "governance", "documentation", "properties", "definition"}
)


class DatasetCodec(Codec[CatalogEntry]):
    """Encodes datasets with the names of one file or server.

    Writes that a server cannot store, such as patches and time series, are packed into the custom
    properties, and restored unless the aspect was edited.
    """

    type: Any = CatalogEntry
    visible_fields: ClassVar[frozenset[str]] = NATIVE | {"name", "timestamps"}
    custom = common.PROPERTIES

    def __init__(self, naming: Naming, server: ServerModel | None = None) -> None:
        super().__init__(server)
        self._naming = naming
        self._last_schema: tuple[Any, Any, str, Schema | None] = (None, None, "", None)

    def entity(self, key: str) -> Entity:
        native = self._naming.to_datahub(key)
        assert native is not None, f"{key} is not the URN of a dataset"
        return Entity("dataset", native)

    def key(self, item: CatalogEntry) -> str:
        return item.urn

    def custom_properties(self, item: CatalogEntry) -> dict[str, str]:
        properties = item.properties or {}
        return {key: text for key, text in properties.items() if not common.is_structured(key)}

    def read(self, key: str, writes: Sequence[AspectWrite]) -> CatalogEntry:
        return super().read(key, _since_last_creation(writes))

    def render(self, item: CatalogEntry) -> RenderedItem:
        raw_writes = writes_in_raw(item.raw)
        deletions = [each for each in chain(*raw_writes.values()) if each.removes_entity]
        if self.server is not None or not deletions:
            return super().render(item)
        others = {
            aspect: [each for each in group if not each.removes_entity]
            for aspect, group in raw_writes.items()
        }
        is_hidden = common.read_deleted(aspects_after(others.get(common.STATUS, ())))
        raw = {**raw_of_others(item.raw), CATALOG: to_raw(others)}
        rendered = super().render(
            msgspec.structs.replace(item, raw=raw, deleted=item.deleted and is_hidden)
        )
        # The deletion comes last, unless the dataset exists again.
        writes = [*rendered.writes, *deletions] if item.deleted else rendered.writes
        return RenderedItem(writes, rendered.storage)

    def current(self, writes: Iterable[AspectWrite]) -> Aspects:
        all_writes = list(writes)
        aspects = aspects_after(all_writes)
        if any(write.removes_entity for write in all_writes):
            common.write_deleted(aspects, True)
        return aspects

    def read_native(self, key: str, aspects: Aspects) -> CatalogEntry:
        urn = _parse_urn(key)
        user_properties = read_unpacked_properties(aspects, common.PROPERTIES, CatalogEntry)
        properties = {**user_properties, **common.read_structured(aspects)}
        return CatalogEntry(
            urn=key,
            name=common.read_name(aspects, urn.name),
            platform=urn.platform,
            schema=self._schema(aspects, urn.platform),
            lineage=lineage.read_lineage(aspects, self._naming),
            ownership=common.read_ownership(aspects),
            governance=common.read_governance(aspects),
            documentation=common.read_documentation(aspects),
            properties=properties or None,
            definition=common.read_definition(aspects),
            timestamps=common.read_timestamps(aspects),
            deleted=common.read_deleted(aspects),
        )

    def write_native(self, aspects: Aspects, item: CatalogEntry, *, is_new: bool) -> None:
        urn, current = _parse_urn(item.urn), self.read_native(item.urn, aspects)
        native = self._write_identity(aspects, item, current, is_new=is_new)
        if current.schema != item.schema and write_schema(
            aspects, item.schema, urn.platform, item.name
        ):
            rows, edits = aspects.get(SCHEMA), aspects.get(EDITS)
            self._last_schema = (rows, edits, urn.platform, item.schema)
        if current.lineage != item.lineage:
            lineage.write_lineage(aspects, item.lineage, self._naming, native)
        if current.ownership != item.ownership:
            common.write_ownership(aspects, item.ownership)
        if current.governance != item.governance:
            common.write_governance(aspects, item.governance)
        if current.definition != item.definition:
            common.write_definition(aspects, item.definition)
        common.write_documentation(aspects, item.documentation)
        common.write_timestamps(aspects, item.timestamps)
        common.write_deleted(aspects, item.deleted)
        common.write_structured(aspects, item.properties or {})

    def raw_to_pack(self, item: CatalogEntry, raw_writes: Writes) -> dict[str, Any]:
        others = raw_of_others(item.raw)
        if self.server is None or not raw_writes:
            return others
        not_storable = self._find_not_storable(item.urn, raw_writes)
        is_erased = any(each.removes_entity for each in chain(*not_storable.values()))
        if is_erased and common.STATUS in raw_writes:
            # A server marks the dataset as deleted in its status instead of deleting it.
            not_storable[common.STATUS] = raw_writes[common.STATUS]
        if not_storable and raw_writes.get(common.PROPERTIES) == []:
            # The aspect only exists because Lumos stores packed values in it.
            not_storable[common.PROPERTIES] = []
        if not not_storable:
            return others
        # Sorted, so that equal values are packed as equal texts.
        packed: dict[str, Any] = msgspec.json.decode(
            msgspec.json.encode({**others, CATALOG: to_raw(not_storable)}, order="sorted")
        )
        return packed

    def unedited_raw(self, item: CatalogEntry, aspects: Aspects) -> dict[str, Any]:
        if self.server is None:
            return {}
        try:
            packed = writes_in_raw(item.raw)
        except InvalidAspect:
            # Lumos did not pack this.
            return {}
        is_erased = item.deleted and any(each.removes_entity for each in chain(*packed.values()))
        unedited: Writes = {}
        for aspect, group in packed.items():
            current = self._normal_body(item.urn, aspects, aspect)
            is_status = is_erased and aspect == common.STATUS
            if is_status or any(each.removes_entity for each in group):
                is_unedited = is_erased
            elif aspect == common.PROPERTIES and not group:
                is_unedited = (current or {}) in ({}, {"name": item.name})
            else:
                sent = self.server.sendable(self.entity(item.urn), aspects_after(group))
                is_unedited = self._normal_body(item.urn, sent, aspect) == current
            if is_unedited:
                unedited[aspect] = group
        return to_raw(unedited)

    def normalize(self, entity: Entity, write: AspectWrite) -> AspectWrite:
        return super().normalize(entity, lineage.without_explicit_urns(write))

    def _find_not_storable(self, urn: str, raw_writes: Writes) -> Writes:
        """The writes that a server would not return unchanged."""
        assert self.server is not None, "files store all writes"
        entity, found = self.entity(urn), {}
        for aspect, group in raw_writes.items():
            sent = self.server.sendable(entity, aspects_after(group))
            returned = self.server.normalize(entity, sent)
            if [AspectWrite(aspect=name, body=body) for name, body in returned.items()] != group:
                found[aspect] = group
        return found

    def _normal_body(self, urn: str, aspects: Aspects, aspect: str) -> Any:
        if aspect not in aspects:
            return None
        write = AspectWrite(aspect=aspect, body=aspects[aspect])
        return self.normalize(self.entity(urn), write).body

    def _write_identity(
        self, aspects: Aspects, item: CatalogEntry, current: CatalogEntry, *, is_new: bool
    ) -> str:
        """Write a dataset's name and instance; return its DataHub URN.

        The name of an existing dataset is only written if it changes: otherwise, an aspect with
        only a name would replace the one in `raw`.
        """
        urn, native = _parse_urn(item.urn), self.entity(item.urn).urn
        if current.name != item.name or (is_new and common.PROPERTIES not in aspects):
            common.write_name(aspects, item.name)
        if urn.instance:
            if read_instance(aspects) != urn.instance:
                instance = instance_urn(urn.platform, urn.instance)
                platform = platform_urn(urn.platform)
                update_aspect(aspects, INSTANCE, platform=platform, instance=instance)
        elif lumos_urn(native, read_instance(aspects)) != urn:
            update_aspect(aspects, INSTANCE, instance=None)
        return native

    def _schema(self, aspects: Aspects, platform: str) -> Schema | None:
        """Decode the schema; the last one is cached, since it is read several times."""
        rows, edits = aspects.get(SCHEMA), aspects.get(EDITS)
        if rows is None:
            return None
        if self._last_schema[:3] != (rows, edits, platform):
            self._last_schema = (rows, edits, platform, read_schema(aspects, platform))
        return self._last_schema[3]


def read_instance(aspects: Mapping[str, Any]) -> str | None:
    return instance_name((aspects.get(INSTANCE) or {}).get("instance") or "")


_parse_urn = lru_cache(maxsize=4_096)(Urn.parse)


def _since_last_creation(writes: Sequence[AspectWrite]) -> Sequence[AspectWrite]:
    """The writes after the last deletion, if the dataset was created again after it."""
    deletions = [number for number, each in enumerate(writes) if each.removes_entity]
    later = writes[deletions[-1] + 1 :] if deletions else []
    return later if any(each.replaces for each in later) else writes


class DataHubCatalog(SeparatesUserEdits):
    """The behaviour that a DataHub server and a DataHub file have in common."""

    native: ClassVar[frozenset[str]] = NATIVE
    shows_display_names: ClassVar[bool] = True

    def adjust_for_merge(
        self, base: CatalogEntry | None, theirs: CatalogEntry | None, ours: CatalogEntry
    ) -> tuple[CatalogEntry | None, CatalogEntry | None]:
        """Adjust `base` and `theirs`, so that a merge recognizes descriptions of users.

        A description that users entered is an edit even if Lumos had written the same text. If a
        removed column returns, the edits that users had made to it apply again.
        """
        if theirs is None or CATALOG not in theirs.raw:
            return base, theirs
        user_edits = _edited_aspects(theirs)
        description = (user_edits.get(EDITED) or {}).get("description")
        if base is not None and base.documentation is not None and description is not None:
            earlier = (_edited_aspects(base).get(EDITED) or {}).get("description")
            if earlier is None and base.documentation.description == description:
                documentation = msgspec.structs.replace(base.documentation, description=None)
                base = msgspec.structs.replace(base, documentation=documentation)
        if base is not None and base.schema is not None and user_edits.get(EDITS):
            before = Edits(_edited_aspects(base).get(EDITS)).descriptions()
            descriptions = Edits(user_edits[EDITS]).descriptions()
            new_descriptions = {
                path: text for path, text in descriptions.items() if path not in before
            }
            base = msgspec.structs.replace(
                base, schema=_without_user_descriptions(base.schema, new_descriptions)
            )
        if user_edits.get(EDITS) and ours.schema is not None and theirs.schema is not None:
            names = {field.name for field in theirs.schema.fields}
            new_fields = [field for field in ours.schema.fields if field.name not in names]
            annotated = fields_with_edits(user_edits[EDITS], new_fields, ours.platform)
            if annotated:
                fields = (*theirs.schema.fields, *annotated)
                theirs = msgspec.structs.replace(theirs, schema=Schema(fields=fields))
        return base, theirs


def _without_user_descriptions(schema: Schema, user_descriptions: Mapping[str, str]) -> Schema:
    """Remove the descriptions that users entered with the same text."""
    return Schema(
        fields=tuple(
            msgspec.structs.replace(
                _without_user_description(field, field.name, user_descriptions),
                nested=tuple(
                    _without_user_description(each, each.path, user_descriptions)
                    for each in field.nested
                ),
            )
            for field in schema.fields
        )
    )


def _without_user_description(field: Any, path: str, user_descriptions: Mapping[str, str]) -> Any:
    if field.description is None or user_descriptions.get(path) != field.description:
        return field
    return msgspec.structs.replace(field, description=None)


def _edited_aspects(entry: CatalogEntry) -> Aspects:
    raw_writes = writes_in_raw(entry.raw)
    return {
        aspect: body
        for aspect in (EDITED, EDITS)
        if (body := aspects_after(raw_writes.get(aspect, ())).get(aspect)) is not None
    }
