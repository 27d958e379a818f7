"""Writes datasets to Atlas: entities with columns in bulk, and lineage as processes."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from lumos.catalogs.atlas import types
from lumos.catalogs.atlas.entries import AtlasEntity, column_name, lookup_of
from lumos.catalogs.atlas.items import AtlasTerms
from lumos.catalogs.atlas.reader import AtlasReader, as_json
from lumos.catalogs.atlas.server import AtlasServer
from lumos.catalogs.chunks import in_halves
from lumos.catalogs.interface import AspectStorage, FailedEntry, WrittenEntry
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import Lineage
from lumos.model.urn import name_in

MOST = 100
_LINEAGE_PROPERTY = "lumos.lineage"


class DatasetChange(NamedTuple):
    """A dataset to write: as it is, and as it will be."""

    entry: CatalogEntry
    before: AtlasEntity | None
    after: AtlasEntity
    how: dict[str, AspectStorage]

    @property
    def old(self) -> AtlasEntity | None:
        """The entity that is updated; Atlas never changes deleted ones but creates new ones."""
        return None if self.before is None or self.before.deleted else self.before

    @property
    def is_needed(self) -> bool:
        return self.before is None or not _is_same(self.before, self.after)

    @property
    def has_new_lineage(self) -> bool:
        old, new = self.old, self.after
        if old is None:
            return bool(new.attributes["upstream"])
        if not (old.attributes["upstream"] or new.attributes["upstream"]):
            return False
        return _lineage(old) != _lineage(new) or old.columns.keys() != new.columns.keys()


class AtlasWriter:
    """Writes changes; what it writes can be written again without harm."""

    def __init__(self, server: AtlasServer, terms: AtlasTerms, reader: AtlasReader) -> None:
        self._server = server
        self._terms = terms
        self._reader = reader

    def change(self, entry: CatalogEntry, before: AtlasEntity | None) -> DatasetChange:
        """What has to be written of an entry."""
        after, how = self._reader.entries.held(entry)
        if before is not None:
            for name, column in after.columns.items():
                # Entries do not say how the classifications of columns propagate.
                known = before.columns[name].classifications if name in before.columns else {}
                column.classifications |= {
                    each: known[each] for each in column.classifications if each in known
                }
            # Processes of other tools draw these edges.
            kept = set(before.attributes["upstream"] or ())
            drawn = set(before.upstream) - kept
            upstream = after.attributes["upstream"]
            after.attributes["upstream"] = [urn for urn in upstream if urn not in drawn]
        return DatasetChange(entry, before, after, how)

    def write(self, changes: Sequence[DatasetChange]) -> Iterator[WrittenEntry | FailedEntry]:
        """Write datasets, and then the lineage of those that succeeded."""
        self._server.define_types()
        named = [held for each in changes for held in (each.after, *each.after.columns.values())]
        self._server.define_classifications(
            {name for held in named for name in held.classifications}
        )
        self._terms.create({term for held in named for term in held.terms})
        written: list[DatasetChange] = []
        for change, problem in in_halves(changes, self._post):
            if problem is None:
                written.append(change)
            else:
                yield FailedEntry(change.entry.urn, problem)
        there = {each.entry.urn: each.after for each in written}
        lineages = {
            each.entry.urn: each.entry.lineage or Lineage()
            for each in written
            if each.has_new_lineage and not each.after.deleted
        }
        revived = [each.before for each in written if each.before and each.before.deleted]
        if others := self._reader.read_from(revived) - there.keys():
            there |= (others_there := self._reader.many(sorted(others)))
            lineages |= self._lineages(others_there)

        def draw(urns: Sequence[str]) -> None:
            self.draw({urn: lineages[urn] for urn in urns}, there)

        problems = dict(in_halves(list(lineages), draw))
        self._server.delete([each.after.guid for each in written if each.after.deleted])
        for change in written:
            if (failure := problems.get(change.entry.urn)) is not None:
                yield FailedEntry(change.entry.urn, failure)
            else:
                yield WrittenEntry(urn=change.entry.urn, changed=True, held=change.how)

    def erase(self, urns: Sequence[str]) -> None:
        """Remove datasets with their columns and processes; the lineage of others stays."""
        gone = [held for some in self._reader.versions(urns).values() for held in some]
        dependents = self._reader.read_from(gone) - set(urns)
        parts = [each for held in gone for each in (held, *held.columns.values())]
        processes = [guid for each in parts for guid in each.made_by]
        self._server.delete([*processes, *(held.guid for held in gone if not held.deleted)])
        self._server.purge([*processes, *(each.guid for each in reversed(parts))])
        there = self._reader.many(sorted(dependents))
        self.draw(self._lineages(there), there)

    def remove_placeholders(self) -> None:
        """Remove entities that no lineage refers to any more."""
        unused = [held.guid for _, held in self._reader.placeholders() if not held.read_by]
        self._server.delete(unused)
        self._server.purge(unused)

    def _lineages(self, there: Mapping[str, AtlasEntity]) -> dict[str, Lineage]:
        return {
            urn: self._reader.entry(urn, held).lineage or Lineage()
            for urn, held in there.items()
            if not held.deleted
        }

    def _post(self, changes: Sequence[DatasetChange]) -> None:
        """Create or update datasets and their columns, and note their GUIDs."""
        entities: list[dict[str, Any]] = []
        helds: list[AtlasEntity] = []

        def add(
            type: str, name: str, old: AtlasEntity | None, new: AtlasEntity, parent: str = ""
        ) -> None:
            new.guid = f"-{len(entities) + 1}" if old is None else old.guid
            body = self._body(type, name, old, new)
            if parent:
                relation = {"dataset": {"guid": parent, "typeName": types.DATASET}}
                body.setdefault("relationshipAttributes", {}).update(relation)
            if old is None or not _is_same(old, new, alone=True):
                entities.append(body)
                helds.append(new)

        for change in changes:
            old, new, urn = change.old, change.after, change.entry.urn
            add(types.DATASET, urn, old, new)
            if change.has_new_lineage and entities and entities[-1]["guid"] == new.guid:
                # Written with the processes: an interrupted write must not look complete.
                entities[-1]["attributes"].pop("upstream", None)
            for column, held in new.columns.items():
                before = old.columns.get(column) if old else None
                add(types.COLUMN, column_name(urn, column), before, held, parent=new.guid)
        guids = self._server.post(entities)
        self._set_rest(changes)
        for held in helds:
            held.guid = guids.get(held.guid, held.guid)

    def _set_rest(self, changes: Sequence[DatasetChange]) -> None:
        """Set what a bulk write only sets in new entities, and delete removed columns."""
        headers: dict[str, Any] = {}
        removed: list[str] = []
        for old, new in ((each.old, each.after) for each in changes):
            if old is None:
                continue
            pairs = [(types.DATASET, old, new)]
            for name, column in old.columns.items():
                if name in new.columns:
                    pairs.append((types.COLUMN, column, new.columns[name]))
                else:
                    removed += [*column.made_by, column.guid]
            if new.deleted:
                removed += old.made_by
            for type, before, after in pairs:
                if before.classifications != after.classifications:
                    headers[before.guid] = {
                        "guid": before.guid, "typeName": type,
                        "attributes": {"qualifiedName": before.qualified_name},
                        "classifications": as_json(after.classifications.values()),
                    }  # fmt: skip
            if old.labels != new.labels:
                self._server.set_labels(old.guid, new.labels)
        self._server.set_classifications(headers)
        self._server.delete(removed)

    def _body(
        self, type: str, name: str, old: AtlasEntity | None, new: AtlasEntity
    ) -> dict[str, Any]:
        """The entity to post; of an existing one only what differs, so that edits are kept."""
        before = {} if old is None else old.attributes
        attributes = {
            key: value
            for key, value in new.attributes.items()
            if key == "name" or not _is_equal(before.get(key), value)
        }
        if old is not None and old.has_user_text and "description" in attributes:
            attributes["userDescription"] = None
        attributes["qualifiedName"] = name
        body: dict[str, Any] = {"typeName": type, "guid": new.guid, "attributes": attributes}
        if old is None:
            body["classifications"] = as_json(new.classifications.values())
            body["labels"] = list(new.labels)
        if new.custom != (old.custom if old else {}):
            body["customAttributes"] = new.custom
        if new.terms != (old.terms if old else ()):
            meanings = [
                {"guid": self._terms.guid(term), "typeName": types.TERM} for term in new.terms
            ]
            body["relationshipAttributes"] = {"meanings": meanings}
        return body

    def draw(self, lineages: Mapping[str, Lineage], there: Mapping[str, AtlasEntity]) -> None:
        """Draw the lineage of datasets as processes, one for each dataset and derived column.

        `there` are the entities of these datasets, and of others as far as they are known.
        """
        if not lineages:
            return
        edges = {urn: there[urn].attributes["upstream"] or [] for urn in lineages}
        unknown = {each for some in edges.values() for each in some} - there.keys()
        known = {**there, **self._reader.many(sorted(unknown))}
        entities: list[dict[str, Any]] = []
        guids = {urn: held.guid for urn, held in known.items() if not held.deleted}
        for urn in sorted(unknown - known.keys()):
            guids[urn] = f"-{len(entities) + 1}"
            entities.append(_placeholder(urn, guids[urn]))
        unused: list[str] = []
        for urn, lineage in lineages.items():
            held = there[urn]
            entities.append(_edges(urn, held))
            inputs = [guids[each] for each in edges[urn] if each in guids]
            if edges[urn]:
                entities.append(_process(types.PROCESS, types.DATASET, urn, held, inputs))
            else:
                unused += held.made_by
            sources = _column_sources(lineage, known)
            for name, column in held.columns.items():
                if from_columns := sources.get(name):
                    of = (types.COLUMN_PROCESS, types.COLUMN, column_name(urn, name))
                    entities.append(_process(*of, column, from_columns))
                else:
                    unused += column.made_by
        for number, entity in enumerate(entities, 1):
            entity.setdefault("guid", f"-{number}")
        self._server.post(entities)
        self._server.delete(unused)


def _column_sources(lineage: Lineage, known: Mapping[str, AtlasEntity]) -> dict[str, list[str]]:
    """The GUIDs of the columns that each column is derived from, as far as Atlas has them."""
    sources: dict[str, dict[str, None]] = {}
    for edge in lineage.upstream:
        held = known.get(edge.urn)
        for mapping in edge.columns:
            if held is not None and not held.deleted and mapping.upstream in held.columns:
                guid = held.columns[mapping.upstream].guid
                sources.setdefault(mapping.downstream, {})[guid] = None
    return {column: list(guids) for column, guids in sources.items()}


def _edges(urn: str, held: AtlasEntity) -> dict[str, Any]:
    names = ("name", "upstream")
    attributes = {"qualifiedName": urn, **{name: held.attributes[name] for name in names}}
    return {"typeName": types.DATASET, "guid": held.guid, "attributes": attributes}


def _process(
    type: str, of: str, name: str, output: AtlasEntity, inputs: Sequence[str]
) -> dict[str, Any]:
    attributes = {
        "qualifiedName": f"{name}#lineage", "name": output.attributes["name"],
        "inputs": [{"guid": guid, "typeName": of} for guid in inputs],
        "outputs": [{"guid": output.guid, "typeName": of}],
    }  # fmt: skip
    return {"typeName": type, "attributes": attributes}


def _placeholder(urn: str, guid: str) -> dict[str, Any]:
    attributes = {
        "qualifiedName": urn, "name": name_in(urn), "lookup": lookup_of(urn), "placeholder": True,
    }  # fmt: skip
    return {"typeName": types.DATASET, "guid": guid, "attributes": attributes}


def _lineage(held: AtlasEntity) -> tuple[Any, Any]:
    properties = held.attributes["properties"] or {}
    packed = {key: text for key, text in properties.items() if key.startswith(_LINEAGE_PROPERTY)}
    return held.attributes["upstream"] or [], packed


def _is_same(before: AtlasEntity, after: AtlasEntity, *, alone: bool = False) -> bool:
    """Whether nothing has to be written; `alone` leaves out what bulk writes do not write."""
    is_same = before.deleted == after.deleted and all(
        _is_equal(before.attributes.get(key), value) for key, value in after.attributes.items()
    )
    if not is_same or after.deleted:
        # Atlas drops all else of deleted entities.
        return is_same
    if (before.terms, before.custom) != (after.terms, after.custom):
        return False
    return alone or (
        before.classifications == after.classifications
        and before.labels == after.labels
        and before.columns.keys() == after.columns.keys()
        and all(_is_same(before.columns[name], held) for name, held in after.columns.items())
    )


def _is_equal(one: Any, other: Any) -> bool:
    """Whether attributes are equal; empty lists and maps are the same as none."""
    return (None if one in ([], {}) else one) == (None if other in ([], {}) else other)
