"""Writes datasets to Atlas: entities with columns in bulk, and lineage as processes."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from lumos.catalogs.atlas import types
from lumos.catalogs.atlas.entries import (
    AtlasEntity,
    business_definitions,
    column_name,
    lookup_of,
    relationships,
)
from lumos.catalogs.atlas.items import AtlasTerms
from lumos.catalogs.atlas.reader import AtlasReader, as_json, foreign_location
from lumos.catalogs.atlas.server import AtlasServer
from lumos.catalogs.chunks import in_halves
from lumos.catalogs.interface import AspectStorage, FailedEntry, WrittenEntry
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import Lineage
from lumos.model.json_codec import to_json
from lumos.model.paths import lineage_column
from lumos.model.urn import name_in

BATCH_SIZE = 100
_LINEAGE_PROPERTY = "lumos.lineage"


class DatasetChange(NamedTuple):
    """A dataset to write: its entity before and after the write."""

    entry: CatalogEntry
    before: AtlasEntity | None
    after: AtlasEntity
    storage: dict[str, AspectStorage]

    @property
    def old(self) -> AtlasEntity | None:
        """The entity to update, or None; instead of a deleted entity, a new one is created."""
        return None if self.before is None or self.before.deleted else self.before

    @property
    def is_needed(self) -> bool:
        return self.before is None or not _is_same(self.before, self.after)

    @property
    def has_new_lineage(self) -> bool:
        """Whether processes or relationships have to be written."""
        old, new = self.old, self.after
        if old is None:
            return bool(new.attributes["upstream"] or new.relations)
        if old.relations != new.relations:
            return True
        if not (old.attributes["upstream"] or new.attributes["upstream"]):
            return False
        return _lineage(old) != _lineage(new) or old.columns.keys() != new.columns.keys()


class AtlasWriter:
    """Writes changes; every write is idempotent."""

    def __init__(self, server: AtlasServer, terms: AtlasTerms, reader: AtlasReader) -> None:
        self._server = server
        self._terms = terms
        self._reader = reader

    def change(self, entry: CatalogEntry, before: AtlasEntity | None) -> DatasetChange:
        """Compute what has to be written for an entry."""
        after, storage = self._reader.codec.render(entry, before)
        if before is not None:
            for name, column in after.columns.items():
                # Preserve what entries do not model: business metadata, and how classifications
                # propagate.
                old = before.columns.get(name)
                if old is not None:
                    column.business = old.business
                    column.output_of = () if before.deleted else old.output_of
                    column.classifications |= {
                        each: old.classifications[each]
                        for each in column.classifications
                        if each in old.classifications
                    }
            after.output_of = () if before.deleted else before.output_of
            # Other datasets have created the relationships of a placeholder.
            existing = before.relations if before.attributes.get("placeholder") else {}
            after.relations = {**existing, **after.relations}
            after.former_ends = tuple(before.relations)
            # Processes of other tools already represent these edges.
            own_edges = set(before.attributes["upstream"] or ())
            foreign_edges = set(before.upstream) - own_edges
            upstream = after.attributes["upstream"]
            after.attributes["upstream"] = [urn for urn in upstream if urn not in foreign_edges]
        return DatasetChange(entry, before, after, storage)

    def write(self, changes: Sequence[DatasetChange]) -> Iterator[WrittenEntry | FailedEntry]:
        """Write datasets, and then the lineage of those that succeeded."""
        self._server.define_types()
        entities = [
            entity for each in changes for entity in (each.after, *each.after.columns.values())
        ]
        self._server.define_classifications(
            {name for entity in entities for name in entity.classifications}
        )
        self._terms.create({term for entity in entities for term in entity.terms})
        for change in changes:
            definitions = business_definitions(change.entry, change.after)
            if change.after.is_foreign:
                definitions[types.METADATA] = types.METADATA_ATTRIBUTES
            self._server.define_business_metadata(definitions)
        written: list[DatasetChange] = []
        for change, problem in in_halves(changes, self._post):
            if problem is None:
                written.append(change)
            else:
                yield FailedEntry(change.entry.urn, problem)
        existing = {each.entry.urn: each.after for each in written}
        lineages = {
            each.entry.urn: each.entry.lineage or Lineage()
            for each in written
            if each.has_new_lineage and not each.after.deleted
        }
        recreated = [each.before for each in written if each.before and each.before.deleted]
        if others := self._reader.downstream_of(recreated) - existing.keys():
            existing |= (other_entities := self._reader.many(sorted(others)))
            lineages |= self._lineages(other_entities)

        def write_lineage(urns: Sequence[str]) -> None:
            self.write_lineage({urn: lineages[urn] for urn in urns}, existing)

        problems = dict(in_halves(list(lineages), write_lineage))
        # Last: the edges in business metadata mean that the processes have been written.
        complete = {each.entry.urn: each for each in written if not problems.get(each.entry.urn)}

        def set_business(urns: Sequence[str]) -> None:
            for urn in urns:
                self._set_business(complete[urn])

        problems |= dict(in_halves(list(complete), set_business))
        self._server.delete([each.after.guid for each in written if each.after.deleted])
        for change in written:
            if (failure := problems.get(change.entry.urn)) is not None:
                yield FailedEntry(change.entry.urn, failure)
            else:
                yield WrittenEntry(urn=change.entry.urn, changed=True, held=change.storage)

    def erase(self, urns: Sequence[str]) -> None:
        """Delete datasets with their columns and processes, but not the lineage of others."""
        erased = [
            entity for versions in self._reader.versions(urns).values() for entity in versions
        ]
        existing = self._reader.many([urn for urn in urns if foreign_location(urn)])
        foreign = [each for each in existing.values() if each.is_foreign]
        dependents = self._reader.downstream_of(erased) - set(urns)
        parts = [
            each for entity in (*erased, *foreign) for each in (entity, *entity.columns.values())
        ]
        processes = [guid for each in parts for guid in each.output_of]
        self._server.delete([*processes, *(entity.guid for entity in erased if not entity.deleted)])
        guids_to_purge = [each.guid for each in reversed(parts) if not each.is_foreign]
        self._server.purge([*processes, *guids_to_purge])
        for entity in foreign:
            self._server.set_business_metadata(entity.guid, entity.business)
        remaining = self._reader.many(sorted(dependents))
        self.write_lineage(self._lineages(remaining), remaining)

    def remove_placeholders(self) -> None:
        """Delete placeholders that no lineage refers to any more."""
        unused = [
            entity.guid
            for _, entity in self._reader.all(placeholders=True)
            if not entity.input_of and not entity.relations
        ]
        self._server.delete(unused)
        self._server.purge(unused)

    def _lineages(self, entities: Mapping[str, AtlasEntity]) -> dict[str, Lineage]:
        return {
            urn: self._reader.entry(urn, entity).lineage or Lineage()
            for urn, entity in entities.items()
            if not entity.deleted
        }

    def _post(self, changes: Sequence[DatasetChange]) -> None:
        """Create or update datasets and their columns, and set their GUIDs."""
        entities: list[dict[str, Any]] = []
        posted: list[AtlasEntity] = []
        terms: dict[str, Any] = {}
        for change in changes:
            old, new, urn = change.old, change.after, change.entry.urn
            rows = [(urn, old, new)]
            for column, entity in new.columns.items():
                before = old.columns.get(column) if old else None
                rows.append((column_name(urn, column), before, entity))
            for name, before, entity in rows:
                body = self._body(name, before, entity)
                entity.guid = f"-{len(entities) + 1}" if before is None else before.guid
                body["guid"] = entity.guid
                if before is None and entity is not new:
                    relation = {"dataset": {"guid": new.guid, "typeName": types.DATASET}}
                    body.setdefault("relationshipAttributes", {}).update(relation)
                if entity is new and change.has_new_lineage:
                    # Written with the processes, so that an interrupted write does not look
                    # complete.
                    body["attributes"].pop("upstream", None)
                if before is None or _has_changes(body):
                    entities.append(body)
                    posted.append(entity)
                if before is not None and not set(entity.terms) <= set(before.terms):
                    terms[entity.guid] = {
                        "meanings": {
                            self._terms.guid(term): _relation(types.TERM_RELATION, types.TERM)
                            for term in entity.terms
                        }
                    }
        guids = self._server.post(entities)
        self._server.relate(terms)
        self._update_existing(changes)
        for entity in posted:
            entity.guid = guids.get(entity.guid, entity.guid)

    def _update_existing(self, changes: Sequence[DatasetChange]) -> None:
        """Write changes that bulk writes ignore: classifications, labels and removed columns."""
        headers: dict[str, Any] = {}
        removed: list[str] = []
        for old, new in ((each.old, each.after) for each in changes):
            if old is None:
                continue
            pairs = [(old, new)]
            for name, column in old.columns.items():
                if name in new.columns:
                    pairs.append((column, new.columns[name]))
                else:
                    removed += [*column.output_of, column.guid]
            if new.deleted:
                removed += old.output_of
            for before, after in pairs:
                if before.classifications != after.classifications:
                    headers[before.guid] = {
                        "guid": before.guid, "typeName": before.type_name,
                        "attributes": {"qualifiedName": before.qualified_name},
                        "classifications": as_json(after.classifications.values()),
                    }  # fmt: skip
            if old.labels != new.labels:
                self._server.set_labels(old.guid, new.labels)
        self._server.set_classifications(headers)
        self._server.delete(removed)

    def _set_business(self, change: DatasetChange) -> None:
        """Write changes of business metadata, which bulk writes ignore."""
        if change.old is None:
            return
        if (business := _business(change.after)) != _business(change.old):
            self._server.set_business_metadata(change.old.guid, business)

    def _body(self, name: str, old: AtlasEntity | None, new: AtlasEntity) -> dict[str, Any]:
        """The entity to post; of an existing one only the differences, to preserve edits."""
        before = {} if old is None else old.attributes
        attributes = {
            key: value
            for key, value in new.attributes.items()
            if key == "name" or not _is_equal(before.get(key), value)
        }
        if new.is_foreign:
            attributes = {
                key: attributes[key] for key in ("name", "description") if key in attributes
            }
        if old is not None and "description" in attributes:
            if new.is_foreign:
                text = attributes.pop("description")
                attributes["userDescription"] = None if text == old.tool_text else text
            elif old.has_user_text:
                attributes["userDescription"] = None
        attributes["qualifiedName"] = name if old is None else old.qualified_name
        body: dict[str, Any] = {"typeName": new.type_name, "attributes": attributes}
        if old is None:
            body["classifications"] = as_json(new.classifications.values())
            body["labels"] = list(new.labels)
        if old is None and new.business:
            body["businessAttributes"] = new.business
        if new.custom != (old.custom if old else {}):
            body["customAttributes"] = new.custom
        relations = {} if old is None else dict(old.single)
        if new.terms != (old.terms if old else ()):
            relations["meanings"] = [
                {"guid": self._terms.guid(term), "typeName": types.TERM} for term in new.terms
            ]
        if relations:
            body["relationshipAttributes"] = relations
        return body

    def write_lineage(
        self, lineages: Mapping[str, Lineage], existing: Mapping[str, AtlasEntity]
    ) -> None:
        """Write the lineage of datasets as processes, one for each dataset and derived column.

        `existing` are the entities of these datasets, and of other datasets if they are known.
        """
        if not lineages:
            return
        edges = {urn: existing[urn].attributes["upstream"] or [] for urn in lineages}
        related = (each for urn in lineages for each in relationships(existing[urn].relations))
        names = {each.qualified_name for each in related if each.type_name == types.DATASET}
        unknown = {each for upstream in edges.values() for each in upstream} | names
        unknown -= existing.keys()
        known = {**existing, **self._reader.many(sorted(unknown))}
        entities: list[dict[str, Any]] = []
        guids = {urn: entity.guid for urn, entity in known.items() if not entity.deleted}
        for urn in sorted(unknown - known.keys()):
            guids[urn] = f"-{len(entities) + 1}"
            entities.append(_placeholder(urn, guids[urn]))
        unused: list[str] = []
        existing_processes: list[tuple[str, Sequence[tuple[str, str]]]] = []

        def add_process(
            type: str, name: str, output: AtlasEntity, inputs: Sequence[tuple[str, str]]
        ) -> None:
            if inputs:
                entities.append(_process(type, name, output, inputs))
                existing_processes.extend((process, inputs) for process in output.output_of)
            else:
                unused.extend(output.output_of)

        for urn, lineage in lineages.items():
            entity = existing[urn]
            if not entity.is_foreign:
                entities.append(_edges(urn, entity))
            inputs = [
                (guids[each], known[each].type_name if each in known else types.DATASET)
                for each in edges[urn]
                if each in guids
            ]
            add_process(types.PROCESS, urn, entity, inputs)
            sources = _column_sources(lineage, known)
            for name, column in entity.columns.items():
                add_process(
                    types.COLUMN_PROCESS, column_name(urn, name), column, sources.get(name, [])
                )
        for number, body in enumerate(entities, 1):
            body.setdefault("guid", f"-{number}")
        created = self._server.post(entities)
        targets = {(types.DATASET, urn): created.get(guid, guid) for urn, guid in guids.items()}
        relations = {
            process: {
                "inputs": {
                    created.get(guid, guid): _relation(types.INPUT_RELATION, type)
                    for guid, type in inputs
                }
            }
            for process, inputs in existing_processes
        }
        for entity in (existing[urn] for urn in lineages):
            if entity.relations or entity.former_ends:
                relations[entity.guid] = self._ends(entity, targets | self._reader.targets)
        self._server.relate(relations)
        self._server.delete(unused)

    def _ends(
        self, entity: AtlasEntity, targets: Mapping[tuple[str, str], str]
    ) -> dict[str, dict[str, Any]]:
        """The relationships of an entity by end and target; those of other ends are deleted."""
        return {
            end: {
                targets[each.target]: _relation(
                    each.relationship_type, each.type_name, each.attributes
                )
                for each in relationships({end: entity.relations.get(end)})
                if each.target in targets
            }
            for end in (*entity.relations, *entity.former_ends)
        }


def _column_sources(
    lineage: Lineage, known: Mapping[str, AtlasEntity]
) -> dict[str, list[tuple[str, str]]]:
    """The GUIDs and types of the columns that each column is derived from, if Atlas has them."""
    sources: dict[str, dict[tuple[str, str], None]] = {}
    for edge in lineage.upstream:
        entity = known.get(edge.urn)
        for mapping in edge.columns:
            # Atlas has columns only, no nested fields.
            column = lineage_column(mapping.upstream)
            if entity is not None and not entity.deleted and column in entity.columns:
                source = entity.columns[column]
                reference = source.guid, source.type_name
                sources.setdefault(mapping.downstream, {})[reference] = None
    return {column: list(guids) for column, guids in sources.items()}


def _edges(urn: str, entity: AtlasEntity) -> dict[str, Any]:
    names = ("name", "upstream")
    attributes = {"qualifiedName": urn, **{name: entity.attributes[name] for name in names}}
    return {"typeName": types.DATASET, "guid": entity.guid, "attributes": attributes}


def _relation(
    type: str, target: str, attributes: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any]:
    """A relationship of a type to an entity of the type `target`."""
    return {"typeName": type, "end": target, "attributes": dict(attributes)}


def _process(
    type: str, name: str, output: AtlasEntity, inputs: Sequence[tuple[str, str]]
) -> dict[str, Any]:
    attributes = {
        "qualifiedName": f"{name}#lineage", "name": output.attributes["name"],
        "inputs": [{"guid": guid, "typeName": each} for guid, each in inputs],
        "outputs": [{"guid": output.guid, "typeName": output.type_name}],
    }  # fmt: skip
    return {"typeName": type, "attributes": attributes}


def _placeholder(urn: str, guid: str) -> dict[str, Any]:
    attributes = {
        "qualifiedName": urn, "name": name_in(urn), "lookup": lookup_of(urn), "placeholder": True,
    }  # fmt: skip
    return {"typeName": types.DATASET, "guid": guid, "attributes": attributes}


def _business(entity: AtlasEntity) -> dict[str, Any]:
    """The business metadata of an entity, including that of Lumos if another tool wrote it."""
    own = {name: entity.attributes.get(name) for name in ("upstream", "properties")}
    if not entity.is_foreign or not any(own.values()):
        return entity.business
    text = to_json(own["properties"]).decode()
    return {**entity.business, types.METADATA: {**own, "properties": text}}


def _lineage(entity: AtlasEntity) -> tuple[Any, Any]:
    properties = entity.attributes["properties"] or {}
    packed = {key: text for key, text in properties.items() if key.startswith(_LINEAGE_PROPERTY)}
    return entity.attributes["upstream"] or [], packed


def _has_changes(body: Mapping[str, Any]) -> bool:
    """Whether the body of an existing entity contains more than the names that identify it."""
    relations = body.get("relationshipAttributes") or {}
    return (
        not body["attributes"].keys() <= {"name", "qualifiedName"}
        or "meanings" in relations
        or "customAttributes" in body
    )


def _is_same(before: AtlasEntity, after: AtlasEntity) -> bool:
    """Whether nothing has to be written."""
    is_same = before.deleted == after.deleted and all(
        _is_equal(before.attributes.get(key), value) for key, value in after.attributes.items()
    )
    if not is_same or after.deleted:
        # Atlas drops everything else of deleted entities.
        return is_same
    return (
        (before.terms, before.custom) == (after.terms, after.custom)
        and before.relations == after.relations
        and before.classifications == after.classifications
        and before.labels == after.labels
        and before.business == after.business
        and before.columns.keys() == after.columns.keys()
        and all(_is_same(before.columns[name], column) for name, column in after.columns.items())
    )


def _is_equal(one: Any, other: Any) -> bool:
    """Whether attributes are equal; empty lists and maps equal None."""
    return (None if one in ([], {}) else one) == (None if other in ([], {}) else other)
