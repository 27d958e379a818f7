"""What the stub of OpenMetadata holds, and what becomes of it by PUT, PATCH and DELETE.

All of it as a server of release 1.13.4 was seen to do it, see `test_stub_openmetadata.py`.
"""

import copy
import re
from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from .openmetadata_columns import all_columns, columns_of, joined_labels, keep_columns, root_of
from .openmetadata_kinds import (
    BUILT_IN_CLASSIFICATIONS,
    KINDS,
    REFERENCES,
    Entity,
    FailedEntry,
    Kind,
    Writer,
)
from .openmetadata_texts import quoted, sanitised

_EMAIL = re.compile(r"[\S.!#$%&*+/=?^_`{|}~-]+@\S+\.\S+")
_WITH_LENGTH = frozenset({"CHAR", "VARCHAR", "BINARY", "VARBINARY"})
_LABEL = ("tagFQN", "source", "labelType", "state", "style")
_REFERRED_TO = frozenset(
    {"user", "team", "domain", "glossaryTerm", "tag", "dataProduct", "chart", "dashboardDataModel",
     "dashboard", "table"}
)  # fmt: skip
# Fields of the answers that no request sets.
_TOLD = frozenset(
    {"id", "name", "fullyQualifiedName", "version", "updatedAt", "updatedBy", "deleted", "href",
     "serviceType", "isBot", "isAdmin", "provider", "changeDescription", "database"}
)  # fmt: skip


class Estate:
    """All entities."""

    def __init__(self) -> None:
        self._by_id: dict[str, Entity] = {}
        self._by_name: dict[str, dict[str, Entity]] = {type: {} for type in KINDS}
        self._order: dict[str, list[tuple[str, str]]] = {type: [] for type in KINDS}
        self._below: dict[str, set[str]] = defaultdict(set)
        self._terms: dict[str, dict[str, Entity]] = defaultdict(dict)
        self._emails: dict[str, Entity] = {}
        self.properties: dict[str, dict[str, Any]] = defaultdict(dict)
        # Those that hold numbers, by type and name.
        self.numbers: set[tuple[str, str]] = set()
        self.edges: dict[tuple[str, str], dict[str, Any]] = {}
        self._ends: dict[str, set[tuple[str, str]]] = defaultdict(set)
        self._moment = 1_700_000_000_000
        self._fill()

    def _fill(self) -> None:
        writer = Writer("admin")
        self.put("team", {"name": "Organization", "teamType": "Organization"}, writer)
        for name, facts in (
            ("admin", {"isAdmin": True}),
            ("ingestion-bot", {"isBot": True}),
        ):
            user, _ = self.put("user", {"name": name, "email": f"{name}@open-metadata.org"}, writer)
            user.facts |= facts
        for name, tags in BUILT_IN_CLASSIFICATIONS.items():
            body = {"name": name, "description": name}
            self.put("classification", body, writer)[0].facts |= {
                "provider": "system",
                "mutuallyExclusive": True,
            }
            for tag in tags:
                body = {"classification": name, "name": tag, "description": tag}
                self.put("tag", body, writer)[0].facts["provider"] = "system"

    # Finding

    def named(self, type: str, fqn: str, *, include: str = "non-deleted") -> Entity:
        key = fqn.lower() if type == "user" else fqn
        found = self._by_name[type].get(key) or self._by_name[type].get(quoted(key))
        return self._shown(type, fqn, found, include)

    def with_id(self, type: str, id: str, *, include: str = "non-deleted") -> Entity:
        found = self._by_id.get(id)
        return self._shown(type, id, found if found and found.kind.type == type else None, include)

    @staticmethod
    def _shown(type: str, key: str, found: Entity | None, include: str) -> Entity:
        hidden = {"non-deleted": True, "deleted": False}.get(include)
        if found is None or found.deleted is hidden:
            raise FailedEntry(404, f"{type} instance for {key} not found")
        return found

    def listed(self, type: str, after: tuple[str, str] = ("", "")) -> Iterator[Entity]:
        """Entities by name, from the first one after a name and an id."""
        order = self._order[type]
        for at in range(bisect_right(order, after), len(order)):
            yield self._by_id[order[at][1]]

    def reference(self, id: str) -> dict[str, Any]:
        return self._by_id[id].reference

    def below(self, entity: Entity) -> Iterator[Entity]:
        for id in self._below[entity.id]:
            yield self._by_id[id]

    # Telling

    def told(self, entity: Entity, fields: frozenset[str] | None = None) -> dict[str, Any]:
        """An entity as it is answered; `fields` None tells all."""
        told: dict[str, Any] = {
            "id": entity.id,
            "name": entity.name,
            "fullyQualifiedName": entity.fqn,
            "version": entity.version,
            "updatedAt": entity.updated_at,
            "updatedBy": entity.updated_by,
            "deleted": entity.deleted,
        }
        shown = entity.kind.fields if fields is None else fields
        optional = entity.kind.optional
        for key, value in entity.facts.items():
            if key not in optional or key in shown:
                told[key] = value
        for key, above in entity.above.items():
            if key not in optional or key in shown:
                told[key] = above.reference
        for key, others in entity.refers.items():
            if key in shown and key == "dashboard":
                told |= {"dashboard": others[0].reference} if others else {}
            elif key in shown:
                told[key] = self._references(key, others)
        if entity.kind.type == "user" and "teams" in shown:
            told["teams"] = [each.reference for each in self._teams(entity)]
        if entity.kind.type in ("user", "team") and "owns" in shown:
            told["owns"] = [each.reference for each in self._owned(entity)]
        if "usageCount" in optional and "usageCount" in shown:
            told["usageCount"] = self._uses(entity)
        for key in ("tags", "owners", "domains"):
            if key in optional and key in shown:
                told.setdefault(key, [])
        told = copy.deepcopy(told)
        self._label(told, with_tags="tags" in shown)
        if entity.kind.type in ("table", "container", "topic", "pipeline"):
            told["serviceType"] = root_of(entity).facts["serviceType"]
        return told

    def _owned(self, owner: Entity) -> list[Entity]:
        return [each for each in self._by_id.values() if owner in each.refers.get("owners", ())]

    def _uses(self, label: Entity) -> int:
        """How often entities and columns are labelled with something."""
        return sum(
            each["tagFQN"] == label.fqn
            for other in self._by_id.values()
            for holder in (other.facts, *all_columns(other.facts))
            for each in holder.get("tags") or ()
        )

    @staticmethod
    def _references(key: str, others: list[Entity]) -> list[dict[str, Any]]:
        ordered = [each.reference for each in sorted(others, key=lambda each: each.name)]
        if key == "relatedTerms":
            return [{"relationType": "relatedTo", "term": each} for each in ordered]
        return ordered

    def _label(self, told: dict[str, Any], *, with_tags: bool) -> None:
        """Adds what the server tells of labels beside what was said."""
        for holder in (told, *all_columns(told)):
            for label in holder.get("tags") or ():
                type = "tag" if label["source"] == "Classification" else "glossaryTerm"
                label["name"] = self._by_name[type][label["tagFQN"]].name
                label["appliedBy"] = told["updatedBy"]
            if holder is not told and not with_tags:
                holder["tags"] = []

    # Changing

    def put(self, type: str, body: Mapping[str, Any], writer: Writer) -> tuple[Entity, bool]:
        """Makes or changes an entity; says whether it is new."""
        kind = KINDS[type]
        above = self._above(kind, body)
        facts, refers = self._facts(kind, body, above)
        name = body["name"].lower() if type == "user" else body["name"]
        nearest = list(above.values())[-1:]
        infix = (kind.infix,) if kind.infix else ()
        fqn = ".".join((*(each.fqn for each in nearest), *infix, quoted(name)))
        entity = self._by_name[type].get(fqn)
        if entity is None:
            entity = Entity(kind, name, fqn)
            entity.above, entity.facts, entity.refers = above, facts, refers
            self._check(entity, facts, refers)
            self._add(entity)
            self._stamp(entity)
            entity.updated_by = str(writer)
            return entity, True
        # Whatever does not fit is refused before anything is changed.
        merged = self._merged(entity, facts, writer)
        kept = self._kept(entity, refers, writer)
        self._check(entity, merged, kept)
        was_deleted, entity.deleted = entity.deleted, False
        self._settle(entity, merged, kept, writer, moves=True, changed=was_deleted)
        return entity, False

    def patch(self, entity: Entity, document: Mapping[str, Any], writer: Writer) -> None:
        """Makes an entity what a patched document says."""
        if entity.facts.get("displayName") != document.get("displayName") and writer.is_bot:
            raise FailedEntry(
                403,
                f"Principal: CatalogPrincipal{{name='{writer}'}} operation EditDisplayName denied by"
                " role IngestionBotRole, policy DefaultBotPolicy, rule DisplayName-Deny",
            )
        skipped = {*_TOLD, *entity.above} - ({"serviceType"} if "Service" in entity.kind.type else set())  # fmt: skip
        said = {key: value for key, value in document.items() if key not in skipped}
        if entity.kind.type == "user":
            said["email"] = entity.facts["email"]
        facts, refers = self._facts(entity.kind, said, entity.above)
        facts |= {key: entity.facts[key] for key in _TOLD & entity.facts.keys()}
        self._check(entity, facts, refers)
        self._settle(entity, facts, refers, writer, moves=False)
        # Also where nothing differs.
        self._stamp(entity)

    def _stamp(self, entity: Entity) -> None:
        entity.updated_at = self.moment()

    def moment(self) -> int:
        """A time that is later than any before."""
        self._moment += 1
        return self._moment

    def delete(self, entity: Entity, *, hard: bool, recursive: bool) -> None:
        below = [each for each in self.below(entity) if hard or not each.deleted]
        if below and not recursive:
            raise FailedEntry(400, f"{entity.kind.type} is not empty")
        for each in below:
            self.delete(each, hard=hard, recursive=True)
        if hard:
            self._remove(entity)
        else:
            entity.deleted = True
            self._stamp(entity)

    def restore(self, entity: Entity) -> None:
        entity.deleted = False
        self._stamp(entity)
        entity.facts.pop("schemaDefinition", None)
        for each in self.below(entity):
            self.restore(each)

    def _add(self, entity: Entity) -> None:
        self._by_id[entity.id] = entity
        self._by_name[entity.kind.type][entity.fqn] = entity
        insort(self._order[entity.kind.type], (entity.name, entity.id))
        for above in list(entity.above.values())[-1:]:
            self._below[above.id].add(entity.id)
        if entity.kind.type == "user":
            self._emails[entity.facts["email"]] = entity
            self._join(entity)
        if entity.kind.type == "glossaryTerm":
            self._terms[entity.above["glossary"].id][entity.name.lower()] = entity
            self._relate(entity, entity.refers.pop("relatedTerms", []))

    def _remove(self, entity: Entity) -> None:
        del self._by_id[entity.id], self._by_name[entity.kind.type][entity.fqn]
        self._order[entity.kind.type].remove((entity.name, entity.id))
        for above in list(entity.above.values())[-1:]:
            self._below[above.id].discard(entity.id)
        if entity.kind.type == "user":
            del self._emails[entity.facts["email"]]
        if entity.kind.type == "glossaryTerm":
            del self._terms[entity.above["glossary"].id][entity.name.lower()]
        for ends in self.edges_of(entity):
            self.unlink(*ends)
        if entity.kind.type in _REFERRED_TO:
            for other in self._by_id.values():
                for each in other.refers.values():
                    if entity in each:
                        each.remove(entity)
                for holder in (other.facts, *all_columns(other.facts)):
                    if labels := holder.get("tags"):
                        labels[:] = [each for each in labels if each["tagFQN"] != entity.fqn]

    def _above(self, kind: Kind, body: Mapping[str, Any]) -> dict[str, Entity]:
        found = {}
        for field, type in kind.above.items():
            value = body.get(field)
            if isinstance(value, str):
                found[field] = self.named(type, value)
            elif isinstance(value, dict):
                if "id" not in value:
                    raise FailedEntry(400, "[query param id must not be null]")
                found[field] = self.with_id(type, value["id"])
            elif field != "parent":
                raise FailedEntry(400, f"[query param {field} must not be null]")
        return found

    def _facts(
        self, kind: Kind, body: Mapping[str, Any], above: Mapping[str, Entity]
    ) -> tuple[dict[str, Any], dict[str, list[Entity]]]:
        """What a body says: facts, and what it refers to."""
        skipped = {"name", *kind.above, *above}
        facts = {
            key: copy.deepcopy(value)
            for key, value in body.items()
            if key not in skipped and value is not None
        }
        refers: dict[str, list[Entity]] = {}
        for key, types in REFERENCES.items():
            if key in facts and (key != "owners" or key in kind.optional):
                refers[key] = [self._referred(each, types) for each in facts.pop(key)]
        if "dashboard" in facts:
            refers["dashboard"] = [self._referred(facts.pop("dashboard"), ("dashboard",))]
        if isinstance(facts.get("startDate"), str):
            moment = datetime.fromisoformat(facts["startDate"])
            facts["startDate"] = int(moment.timestamp() * 1000)
        if "domains" in facts:
            refers["domains"] = [
                self.named("domain", each)
                if isinstance(each, str)
                else self.with_id("domain", each["id"])
                for each in facts.pop("domains")
            ]
        if "relatedTerms" in facts:
            refers["relatedTerms"] = [
                self.named("glossaryTerm", each)
                if isinstance(each, str)
                else self.with_id("glossaryTerm", each.get("term", each)["id"])
                for each in facts.pop("relatedTerms")
            ]
        if "description" in facts:
            facts["description"] = sanitised(facts["description"])
        if kind.type == "topic":
            facts.setdefault("retentionSize", -1.0)
        if kind.type == "user":
            facts["email"] = str(facts.get("email", "")).lower()
        for key in ("size", "numberOfObjects"):
            if key in facts:
                facts[key] = float(facts[key])
        return facts, refers

    def _referred(self, value: Any, types: tuple[str, ...]) -> Entity:
        if isinstance(value, str):
            is_id = value in self._by_id or types == ("team",)
            return self.with_id(types[0], value) if is_id else self.named(types[0], value)
        return self.with_id(value["type"], value["id"])

    def _merged(self, entity: Entity, facts: dict[str, Any], writer: Writer) -> dict[str, Any]:
        """The facts after a PUT."""
        was = entity.facts
        merged = dict(facts)
        lasting = entity.kind.lasting | (_TOLD & was.keys())
        merged |= {key: was[key] for key in lasting if key in was and key not in facts}
        if writer.is_bot:
            if was.get("description"):
                merged["description"] = was["description"]
            merged.pop("extension", None)
        if writer.is_bot and "extension" in was:
            merged["extension"] = was["extension"]
        if labels := joined_labels(was.get("tags") or [], facts.get("tags") or []):
            merged["tags"] = labels
        keep_columns(columns_of(was), columns_of(merged), is_bot=writer.is_bot)
        return merged

    @staticmethod
    def _kept(
        entity: Entity, refers: dict[str, list[Entity]], writer: Writer
    ) -> dict[str, list[Entity]]:
        """What an entity refers to after a PUT."""
        kept = dict(refers)
        for key, others in entity.refers.items():
            lasts = key in ("owners", "domains") and (writer.is_bot or key not in refers)
            if (lasts and others) or (key not in refers and key == "relatedTerms"):
                kept[key] = others
        return kept

    def _settle(
        self,
        entity: Entity,
        facts: dict[str, Any],
        refers: dict[str, list[Entity]],
        writer: Writer,
        *,
        moves: bool,
        changed: bool = False,
    ) -> None:
        lost = {each["fullyQualifiedName"] for each in all_columns(entity.facts)}
        related = refers.pop("relatedTerms", None)
        before = {key: each for key, each in entity.refers.items() if key != "relatedTerms"}
        changed = changed or facts != entity.facts or refers != before
        kept = {"relatedTerms": entity.refers["relatedTerms"]} if "relatedTerms" in entity.refers else {}  # fmt: skip
        if entity.kind.type == "user" and facts["email"] != entity.facts["email"]:
            self._emails[facts["email"]] = self._emails.pop(entity.facts["email"])
        entity.facts, entity.refers = facts, refers | kept
        if related is not None and entity.kind.type == "glossaryTerm":
            self._relate(entity, related)
        lost -= {each["fullyQualifiedName"] for each in all_columns(facts)}
        if lost:
            self._unlink(lost)
        if moves and entity.kind.type == "user":
            self._join(entity)
        if not changed:
            return
        self._stamp(entity)
        # Changes that one writer makes in a row are told as one.
        if moves or entity.updated_by != writer:
            entity.version = round(entity.version + (1 if lost else 0.1), 1)
        entity.updated_by = str(writer)

    def _teams(self, user: Entity) -> list[Entity]:
        """The teams of a user; who is in none is in the one that all are in."""
        found = [each for each in self.listed("team") if user in each.refers.get("users", ())]
        return found or [self._by_name["team"]["Organization"]]

    def _join(self, user: Entity) -> None:
        """Makes a user a member of the teams that were said, and of no others."""
        teams = user.refers.pop("teams", [])
        for team in self.listed("team"):
            others = [each for each in team.refers.get("users", ()) if each is not user]
            team.refers["users"] = [*others, user] if team in teams else others

    def _relate(self, term: Entity, related: list[Entity]) -> None:
        """Terms are related both ways."""
        for other in term.refers.get("relatedTerms", []):
            if other not in related and other is not term:
                other.refers["relatedTerms"] = [
                    each for each in other.refers.get("relatedTerms", []) if each is not term
                ]
        for other in related:
            others = other.refers.setdefault("relatedTerms", [])
            if term not in others and other is not term:
                others.append(term)
        term.refers["relatedTerms"] = list(dict.fromkeys(related))

    def _unlink(self, columns: set[str]) -> None:
        for details in self.edges.values():
            details["columnsLineage"] = [
                {**each, "fromColumns": left}
                for each in details["columnsLineage"]
                if each["toColumn"] not in columns
                and (left := [name for name in each["fromColumns"] if name not in columns])
            ]

    def link(self, source: str, target: str, details: dict[str, Any]) -> None:
        self.edges[source, target] = details
        for id in (source, target):
            self._ends[id].add((source, target))

    def unlink(self, source: str, target: str) -> None:
        del self.edges[source, target]
        for id in (source, target):
            self._ends[id].discard((source, target))

    def edges_of(self, entity: Entity) -> list[tuple[str, str]]:
        """The ends of all edges that begin or end at an entity."""
        return sorted(self._ends.get(entity.id, ()))

    # Rules

    def _check(
        self, entity: Entity, facts: dict[str, Any], refers: Mapping[str, list[Entity]]
    ) -> None:
        owners = refers.get("owners", [])
        if len(owners) > 1 and any(each.kind.type == "team" for each in owners):
            raise FailedEntry(
                400, "Rule [Multiple Users or Single Team Ownership] validation failed: Entity does"
                " not satisfy the rule.", "RULE_VIOLATION",
            )  # fmt: skip
        if len(refers.get("domains", [])) > 1 and entity.kind.type not in ("user", "team"):
            raise FailedEntry(
                400, "Rule [Multiple Domains are not allowed] validation failed: Entity does not"
                " satisfy the rule.", "RULE_VIOLATION",
            )  # fmt: skip
        self._check_labels(facts)
        self._check_extension(entity.kind, facts.get("extension"))
        columns = columns_of(facts)
        if columns is not None:
            self._check_columns(entity.fqn, columns, entity.kind.type)
        if entity.kind.type == "user":
            email = facts["email"]
            if not _EMAIL.fullmatch(email) or not 6 <= len(email) <= 127:
                raise FailedEntry(400, "[query param email must be a well-formed email address]")
            if self._emails.get(email, entity) is not entity:
                raise FailedEntry(409, "Entity already exists")
            if '"' in entity.name:
                raise FailedEntry(500, "An exception with message [null] was thrown while processing request.")  # fmt: skip
        if entity.kind.type == "glossaryTerm":
            known = self._terms[entity.above["glossary"].id].get(entity.name.lower(), entity)
            if known is not entity:
                glossary = entity.above["glossary"].name
                raise FailedEntry(400, f"A term with the name '{entity.name}' already exists in '{glossary}' glossary.")  # fmt: skip

    def _check_labels(self, facts: dict[str, Any]) -> None:
        if "tags" not in facts:
            return
        by_name: dict[str, dict[str, Any]] = {}
        exclusive: dict[str, str] = {}
        for label in facts["tags"]:
            fqn = label["tagFQN"]
            if label["source"] == "Classification":
                tag = self.named("tag", fqn)
                above = tag.above["classification"]
                other = exclusive.setdefault(above.id, fqn)
                if above.facts.get("mutuallyExclusive") and other != fqn:
                    raise FailedEntry(400, f"Tag labels {other} and {fqn} are mutually exclusive and can't be assigned together")  # fmt: skip
            else:
                self.named("glossaryTerm", fqn)
            by_name.setdefault(fqn, {key: label[key] for key in _LABEL if key in label})
        facts["tags"] = [by_name[fqn] for fqn in sorted(by_name)]

    def _check_extension(self, kind: Kind, extension: Any) -> None:
        for key, value in (extension or {}).items():
            if key not in self.properties[kind.type]:
                raise FailedEntry(400, f"Unknown custom field {key}")
            expected = int if (kind.type, key) in self.numbers else str
            if not isinstance(value, expected):
                name = "string" if expected is str else "integer"
                raise FailedEntry(400, f"Custom field {key} has invalid JSON [: {name} expected]")

    def _check_columns(self, above: str, columns: list[dict[str, Any]], type: str) -> None:
        names = set()
        for column in columns:
            name, data_type = column["name"], column["dataType"]
            if name in names and type != "topic":
                raise FailedEntry(400, f"Column name {name} is repeated")
            if len(name) > 1 and name[0] == name[-1] == '"':
                raise FailedEntry(400, f"Invalid name {name}")
            names.add(name)
            if data_type in _WITH_LENGTH and "dataLength" not in column and type != "topic":
                raise FailedEntry(400, "For column data types char, varchar, binary, varbinary dataLength must not be null")  # fmt: skip
            if data_type == "ARRAY" and "arrayDataType" not in column and type != "topic":
                raise FailedEntry(400, "For column data type array, arrayDataType must not be null")
            column["fullyQualifiedName"] = f"{above}.{quoted(name)}"
            if type != "topic":
                column.setdefault("tags", [])
                column.setdefault("children", [])
            if type == "table":
                column.setdefault("dataTypeDisplay", data_type)
            if "dataTypeDisplay" in column:
                column["dataTypeDisplay"] = column["dataTypeDisplay"].lower()
            self._check_labels(column)
            self._check_columns(column["fullyQualifiedName"], column.get("children") or [], type)
