"""Datasets as aspects, and back."""

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
from lumos.catalogs.datahub.codec import Codec, Rendered, read_own
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
from lumos.model.catalog import CatalogEntry
from lumos.model.schema import Schema
from lumos.model.urn import Urn

INSTANCE: Final = "dataPlatformInstance"
NATIVE: Final = frozenset(
    {"schema", "lineage", "ownership", "governance", "documentation", "properties", "definition"}
)


class DatasetCodec(Codec[CatalogEntry]):
    """Datasets, under the names that they have in one file or server.

    Writes that a server cannot hold, such as patches and time series, are packed into the custom
    properties, and come back as long as nobody changes the aspect.
    """

    type: Any = CatalogEntry
    shown: ClassVar[frozenset[str]] = NATIVE | {"name", "timestamps"}
    custom = common.PROPERTIES

    def __init__(self, naming: Naming, server: ServerModel | None = None) -> None:
        super().__init__(server)
        self._naming = naming
        self._last_schema: tuple[Any, Any, str, Schema | None] = (None, None, "", None)

    def entity(self, key: str) -> Entity:
        native = self._naming.datahub(key)
        assert native is not None, "entries have URNs of datasets"
        return Entity("dataset", native)

    def key(self, item: CatalogEntry) -> str:
        return item.urn

    def custom_properties(self, item: CatalogEntry) -> dict[str, str]:
        properties = item.properties or {}
        return {key: text for key, text in properties.items() if not common.is_structured(key)}

    def read(self, key: str, writes: Sequence[AspectWrite]) -> CatalogEntry:
        return super().read(key, _since_creation(writes))

    def render(self, item: CatalogEntry) -> Rendered:
        kept = writes_in_raw(item.raw)
        deletions = [each for each in chain(*kept.values()) if each.removes_entity]
        if self.server is not None or not deletions:
            return super().render(item)
        others = {
            aspect: [each for each in group if not each.removes_entity]
            for aspect, group in kept.items()
        }
        is_hidden = common.read_deleted(aspects_after(others.get(common.STATUS, ())))
        raw = {**raw_of_others(item.raw), CATALOG: to_raw(others)}
        rendered = super().render(
            msgspec.structs.replace(item, raw=raw, deleted=item.deleted and is_hidden)
        )
        # The deletion comes last; a dataset that is there again was not deleted.
        writes = [*rendered.writes, *deletions] if item.deleted else rendered.writes
        return Rendered(writes, rendered.held)

    def current(self, writes: Iterable[AspectWrite]) -> Aspects:
        found = list(writes)
        aspects = aspects_after(found)
        if any(write.removes_entity for write in found):
            common.write_deleted(aspects, True)
        return aspects

    def read_native(self, key: str, aspects: Aspects) -> CatalogEntry:
        urn = _parsed(key)
        own = read_own(aspects, common.PROPERTIES, CatalogEntry)
        properties = {**own, **common.read_structured(aspects)}
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
        urn, now = _parsed(item.urn), self.read_native(item.urn, aspects)
        native = self._write_identity(aspects, item, now, is_new=is_new)
        if now.schema != item.schema and write_schema(
            aspects, item.schema, urn.platform, item.name
        ):
            rows, edits = aspects.get(SCHEMA), aspects.get(EDITS)
            self._last_schema = (rows, edits, urn.platform, item.schema)
        if now.lineage != item.lineage:
            lineage.write_lineage(aspects, item.lineage, self._naming, native)
        if now.ownership != item.ownership:
            common.write_ownership(aspects, item.ownership)
        if now.governance != item.governance:
            common.write_governance(aspects, item.governance)
        if now.definition != item.definition:
            common.write_definition(aspects, item.definition)
        common.write_documentation(aspects, item.documentation)
        common.write_timestamps(aspects, item.timestamps)
        common.write_deleted(aspects, item.deleted)
        common.write_structured(aspects, item.properties or {})

    def packable_raw(self, item: CatalogEntry, kept: Writes) -> dict[str, Any]:
        others = raw_of_others(item.raw)
        if self.server is None or not kept:
            return others
        lost = self._unheld(item.urn, kept)
        if any(each.removes_entity for each in chain(*lost.values())) and common.STATUS in kept:
            # The dataset is hidden by a status that stands for the deletion.
            lost[common.STATUS] = kept[common.STATUS]
        if lost and kept.get(common.PROPERTIES) == []:
            # This aspect is there only because something is packed into it.
            lost[common.PROPERTIES] = []
        if not lost:
            return others
        # Sorted, so that the same is packed as the same text.
        packed: dict[str, Any] = msgspec.json.decode(
            msgspec.json.encode({**others, CATALOG: to_raw(lost)}, order="sorted")
        )
        return packed

    def unchanged_raw(self, item: CatalogEntry, aspects: Aspects) -> dict[str, Any]:
        if self.server is None:
            return {}
        try:
            packed = writes_in_raw(item.raw)
        except InvalidAspect:
            # Not packed by Lumos.
            return {}
        is_erased = item.deleted and any(each.removes_entity for each in chain(*packed.values()))
        found: Writes = {}
        for aspect, group in packed.items():
            now = self._normal_body(item.urn, aspects, aspect)
            is_status = is_erased and aspect == common.STATUS
            if is_status or any(each.removes_entity for each in group):
                is_unchanged = is_erased
            elif aspect == common.PROPERTIES and not group:
                is_unchanged = (now or {}) in ({}, {"name": item.name})
            else:
                then = self.server.sendable(self.entity(item.urn), aspects_after(group))
                is_unchanged = self._normal_body(item.urn, then, aspect) == now
            if is_unchanged:
                found[aspect] = group
        return to_raw(found)

    def normalize(self, entity: Entity, write: AspectWrite) -> AspectWrite:
        return super().normalize(entity, lineage.without_stated_urns(write))

    def _unheld(self, urn: str, kept: Writes) -> Writes:
        """The writes that a server would not return as they are."""
        assert self.server is not None, "a file holds all writes"
        entity, found = self.entity(urn), {}
        for aspect, group in kept.items():
            sent = self.server.sendable(entity, aspects_after(group))
            back = self.server.normalize(entity, sent)
            if [AspectWrite(aspect=name, body=body) for name, body in back.items()] != group:
                found[aspect] = group
        return found

    def _normal_body(self, urn: str, aspects: Aspects, aspect: str) -> Any:
        if aspect not in aspects:
            return None
        write = AspectWrite(aspect=aspect, body=aspects[aspect])
        return self.normalize(self.entity(urn), write).body

    def _write_identity(
        self, aspects: Aspects, item: CatalogEntry, now: CatalogEntry, *, is_new: bool
    ) -> str:
        """Writes a dataset's name and instance; returns its URN in DataHub.

        The name of a dataset that is not new is written only if it changes: an aspect with nothing
        but a name would replace what is kept in `raw`.
        """
        urn, native = _parsed(item.urn), self.entity(item.urn).urn
        if now.name != item.name or (is_new and common.PROPERTIES not in aspects):
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
        """The schema in some aspects, which mostly is the one that was read last."""
        rows, edits = aspects.get(SCHEMA), aspects.get(EDITS)
        if rows is None:
            return None
        if self._last_schema[:3] != (rows, edits, platform):
            self._last_schema = (rows, edits, platform, read_schema(aspects, platform))
        return self._last_schema[3]


def read_instance(aspects: Mapping[str, Any]) -> str | None:
    """The platform instance that a dataset is in."""
    return instance_name((aspects.get(INSTANCE) or {}).get("instance") or "")


_parsed = lru_cache(maxsize=4_096)(Urn.parse)


def _since_creation(writes: Sequence[AspectWrite]) -> Sequence[AspectWrite]:
    """The writes without those before a deletion after which the dataset was created again."""
    ends = [number for number, each in enumerate(writes) if each.removes_entity]
    later = writes[ends[-1] + 1 :] if ends else []
    return later if any(each.replaces for each in later) else writes


def merge_sides(
    base: CatalogEntry | None, theirs: CatalogEntry | None, ours: CatalogEntry
) -> tuple[CatalogEntry | None, CatalogEntry | None]:
    """What Lumos wrote and what is there, so that a merge knows which descriptions are people's.

    A description that people typed is theirs even if Lumos wrote the same. Annotations of a column
    that is missing for now come back with the column.
    """
    if theirs is None or CATALOG not in theirs.raw:
        return base, theirs
    typed = _typed_aspects(theirs)
    description = (typed.get(EDITED) or {}).get("description")
    if base is not None and base.documentation is not None and description is not None:
        was = (_typed_aspects(base).get(EDITED) or {}).get("description")
        if was is None and base.documentation.description == description:
            without = msgspec.structs.replace(base.documentation, description=None)
            base = msgspec.structs.replace(base, documentation=without)
    if base is not None and base.schema is not None and typed.get(EDITS):
        before = Edits(_typed_aspects(base).get(EDITS)).descriptions()
        descriptions = Edits(typed[EDITS]).descriptions()
        since = {path: text for path, text in descriptions.items() if path not in before}
        base = msgspec.structs.replace(base, schema=_without_values(base.schema, since))
    if typed.get(EDITS) and ours.schema is not None and theirs.schema is not None:
        there = {field.name for field in theirs.schema.fields}
        new = [field for field in ours.schema.fields if field.name not in there]
        back = fields_with_edits(typed[EDITS], new, ours.platform)
        if back:
            fields = (*theirs.schema.fields, *back)
            theirs = msgspec.structs.replace(theirs, schema=Schema(fields=fields))
    return base, theirs


def _without_values(schema: Schema, typed: Mapping[str, str]) -> Schema:
    """A schema without the descriptions that people typed as well."""
    return Schema(
        fields=tuple(
            msgspec.structs.replace(
                _without_typed(field, field.name, typed),
                nested=tuple(_without_typed(each, each.path, typed) for each in field.nested),
            )
            for field in schema.fields
        )
    )


def _without_typed(described: Any, path: str, typed: Mapping[str, str]) -> Any:
    if described.description is None or typed.get(path) != described.description:
        return described
    return msgspec.structs.replace(described, description=None)


def _typed_aspects(entry: CatalogEntry) -> Aspects:
    carried = writes_in_raw(entry.raw)
    return {
        aspect: body
        for aspect in (EDITED, EDITS)
        if (body := aspects_after(carried.get(aspect, ())).get(aspect)) is not None
    }
