"""DataHub's metadata files: change proposals and change events in JSON, in the order of the file.

A file is read as statements about entities: in this change, this aspect is this. What is not
touched is written again byte for byte, whatever it is.
"""

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar

import msgspec

from lumos.catalogs.datahub_file import disk
from lumos.catalogs.datahub_model.statements import AspectStatement, Entity, entity_of
from lumos.errors import LumosError

_JSON: Final = "application/json"
_IN_EVENTS: Final = "com.linkedin.pegasus2avro."
_IN_PROPOSALS: Final = "com.linkedin."
_PLAIN_TYPES: Final = frozenset(
    {"array", "boolean", "bytes", "double", "float", "int", "long", "map", "string"}
)
# Maps whose keys anybody may choose.
_FREE_KEYS: Final = frozenset({"customProperties", "properties", "ownerTypes", "sourceDetail"})
# Aspects of models whose types do not say so.
_OF_MODELS: Final = frozenset(
    {"Metrics", "EvaluationData", "TrainingData", "QuantitativeAnalyses", "EthicalConsiderations",
     "CaveatsAndRecommendations"}
)  # fmt: skip


class NotMetadata(LumosError):
    """A file that is no metadata file of DataHub; `place` leads into it."""

    def __init__(self, path: Path, place: str, problem: str) -> None:
        self.path = path
        self.place = place
        where = f"{path}: {place}" if place else str(path)
        super().__init__(
            f"{where}: {problem}. A metadata file is a JSON list of DataHub's change proposals "
            "(entityUrn, aspectName, aspect) and change events (proposedSnapshot)."
        )


class _Snapshot(msgspec.Struct):
    urn: str
    aspects: list[dict[str, msgspec.Raw]]


class _Change(msgspec.Struct):
    """As much of a change as says what it is about."""

    entityType: str | None = None
    entityUrn: str | None = None
    aspectName: str | None = None
    proposedSnapshot: dict[str, _Snapshot] | None = None
    proposedDelta: Any = None
    resource: str | None = None


class _Record(msgspec.Struct, eq=False):
    """A change in the file; those that were added stand behind the one they belong to."""

    text: bytes | None
    added: list["_Record"] = []

    def texts(self) -> Iterator[bytes]:
        if self.text is not None:
            yield self.text
        for record in self.added:
            yield from record.texts()


class _Place(msgspec.Struct, eq=False):
    """Where a statement stands: in which change, and as which aspect of it if it is an event."""

    record: _Record
    number: int | None
    aspect: str


class _Named(Protocol):
    @property
    def aspect(self) -> str: ...


_Item = TypeVar("_Item", bound=_Named)


class MetadataFile:
    """The statements of a file by entity; changes to them are written by `save`."""

    keeps_loose: bool = True

    def __init__(self, path: Path, data: bytes | None = None, mark: disk.Mark = None) -> None:
        self.path = path
        self._records: list[_Record] = []
        self._types: dict[str, str] = {}
        self._places: dict[str, list[_Place]] = {}
        self._loose: dict[str, _Record] = {}
        self._is_saved = data is not None
        self._seen = mark
        for number, text in enumerate(self._changes(b"[]" if data is None else data)):
            self._take(number, bytes(text))

    @classmethod
    def read(cls, path: Path) -> "MetadataFile":
        """The file at a path; one that does not exist is empty."""
        return cls(path, *disk.read(path))

    def entities(self) -> Iterator[Entity]:
        """All entities, in the order in which the file first names them."""
        for urn, type in self._types.items():
            yield Entity(type, urn)

    def statements(self, urn: str, aspect: str | None = None) -> list[AspectStatement]:
        """What is said of an entity, or of one of its aspects, in the order of the file."""
        wanted = self._places.get(urn, [])
        try:
            return self._statements(
                [place for place in wanted if place.aspect == aspect] if aspect else wanted
            )
        except msgspec.MsgspecError as problem:
            # Read as a whole only now: a number beyond all bounds, say.
            raise NotMetadata(self.path, urn, str(problem)) from None

    def complaint(self, place: str, problem: str) -> NotMetadata:
        """What to say of an aspect that is not as DataHub writes it."""
        return NotMetadata(self.path, place, problem)

    def mentions(self, urn: str, aspect: str, texts: Sequence[bytes]) -> bool:
        """Whether any of some texts stands in what is said of an aspect of an entity."""
        return any(
            text in (place.record.text or b"")
            for place in self._places.get(urn, ())
            if place.aspect == aspect
            for text in texts
        )

    def loose(self) -> dict[str, Any]:
        """Changes that are about no entity, by a hash of what they say."""
        return {
            name: msgspec.json.decode(record.text)
            for name, record in self._loose.items()
            if record.text is not None
        }

    def add_loose(self, name: str, change: Any) -> bool:
        """Adds a change that is about no entity, once; gives whether it was new."""
        if name in self._loose:
            return False
        self._loose[name] = _Record(_encoded(change))
        self._records.append(self._loose[name])
        self._is_saved = False
        return True

    def remove_loose(self, name: str) -> None:
        """Takes such a change out."""
        if (record := self._loose.pop(name, None)) is not None:
            record.text = None
            self._is_saved = False

    def replace(self, entity: Entity, statements: Sequence[AspectStatement]) -> bool:
        """Makes this all that is said of an entity; gives whether anything had to change."""
        old = _by_aspect(self._places.get(entity.urn, []))
        new = _by_aspect(statements)
        changed = [
            aspect
            for aspect in {**old, **new}
            if self._statements(old.get(aspect, [])) != new.get(aspect, [])
        ]
        for aspect in changed:
            self._replace(entity, old.get(aspect, []), new.get(aspect, []))
        if changed:
            self._is_saved = False
        if not self._places.get(entity.urn):
            self._places.pop(entity.urn, None)
            self._types.pop(entity.urn, None)
        return bool(changed)

    def save(self) -> None:
        """Writes the file if anything changed: whole, or not at all."""
        if self._is_saved:
            return
        texts = [text for record in self._records for text in record.texts()]
        data = b"[\n" + b",\n".join(texts) + b"\n]\n" if texts else b"[]\n"
        self._seen = disk.write(self.path, data, over=self._seen)
        self._is_saved = True

    def _changes(self, data: bytes) -> list[msgspec.Raw]:
        try:
            if data.lstrip().startswith(b"{"):
                return [msgspec.json.decode(data, type=msgspec.Raw)]
            return msgspec.json.decode(data, type=list[msgspec.Raw])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
            raise NotMetadata(self.path, "", str(problem)) from None

    def _take(self, number: int, text: bytes) -> None:
        record = _Record(text)
        self._records.append(record)
        try:
            change = msgspec.json.decode(text, type=_Change)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
            raise NotMetadata(self.path, f"[{number}]", str(problem)) from None
        if change.proposedSnapshot and change.proposedDelta is None:
            self._take_event(f"[{number}].proposedSnapshot", record, change.proposedSnapshot)
        elif change.entityUrn and change.entityType:
            entity = entity_of(change.entityUrn)
            # DataHub itself does not always write the types of users and groups alike.
            if entity.type.lower() != change.entityType.lower():
                wrong = f"'{entity.urn}' is not the URN of a {change.entityType}"
                raise NotMetadata(self.path, f"[{number}].entityUrn", wrong)
            self._add(entity, _Place(record, None, change.aspectName or ""))
        elif change.entityType or change.resource or change.proposedSnapshot:
            # An entity by its key alone, usage in its old form: nothing here can name these.
            self._loose[_digest(text)] = record
        else:
            raise NotMetadata(self.path, f"[{number}]", "it is about no entity")

    def _take_event(self, place: str, record: _Record, snapshots: dict[str, _Snapshot]) -> None:
        if len(snapshots) > 1:
            raise NotMetadata(self.path, place, f"Expected one snapshot, got {len(snapshots)}")
        for type, snapshot in snapshots.items():
            entity = entity_of(snapshot.urn)
            for number, aspect in enumerate(snapshot.aspects):
                if len(aspect) != 1:
                    wrong = f"Expected an aspect under its name, got {len(aspect)} of them"
                    raise NotMetadata(self.path, f"{place}.{type}.aspects[{number}]", wrong)
                self._add(entity, _Place(record, number, _aspect_name(next(iter(aspect)))))

    def _add(self, entity: Entity, place: _Place) -> None:
        self._types.setdefault(entity.urn, entity.type)
        self._places.setdefault(entity.urn, []).append(place)

    def _statements(self, places: Sequence[_Place]) -> list[AspectStatement]:
        # An event says several things at once and is read once for all of them.
        changes: dict[int, dict[str, Any]] = {}
        statements = []
        for place in places:
            if (change := changes.get(id(place.record))) is None:
                change = changes[id(place.record)] = _decoded(place.record)
            statements.append(
                _proposed(change, place.aspect)
                if place.number is None
                else _reported(change, place.number, place.aspect)
            )
        return statements

    def _replace(self, entity: Entity, old: list[_Place], new: list[AspectStatement]) -> None:
        for place, statement in zip(old, new, strict=False):
            self._rewrite(entity, place, statement)
        for place in old[len(new) :]:
            self._strike(entity, place)
        for statement in new[len(old) :]:
            self._append(entity, statement)

    def _rewrite(self, entity: Entity, place: _Place, statement: AspectStatement) -> None:
        [before] = self._statements([place])
        if place.number is None:
            place.record.text = _proposal(entity, statement)
        elif before.beside == statement.beside:
            event = _decoded(place.record)
            ((_, snapshot),) = event["proposedSnapshot"].items()
            body = _renamed(statement.body, _IN_PROPOSALS, _IN_EVENTS)
            snapshot["aspects"][place.number] = dict.fromkeys(
                snapshot["aspects"][place.number], body
            )
            place.record.text = _encoded(event)
        else:
            self._strike(entity, place)
            self._append(entity, statement)

    def _strike(self, entity: Entity, struck: _Place) -> None:
        places = self._places[entity.urn]
        places.remove(struck)
        siblings = [place for place in places if place.record is struck.record]
        if not siblings:
            struck.record.text = None
            return
        assert struck.number is not None, "a proposal says one thing"
        event = _decoded(struck.record)
        ((_, snapshot),) = event["proposedSnapshot"].items()
        del snapshot["aspects"][struck.number]
        struck.record.text = _encoded(event)
        for place in siblings:
            if place.number is not None and place.number > struck.number:
                place.number -= 1

    def _append(self, entity: Entity, statement: AspectStatement) -> None:
        record = _Record(_proposal(entity, statement))
        if places := self._places.get(entity.urn):
            places[-1].record.added.append(record)
        else:
            self._records.append(record)
        self._add(entity, _Place(record, None, statement.aspect))


def _proposed(change: dict[str, Any], aspect: str) -> AspectStatement:
    """What a change proposal says."""
    beside = {
        key: value
        for key, value in change.items()
        if value is not None and key not in ("entityType", "entityUrn", "aspectName", "aspect")
    }
    if beside.get("changeType") == "UPSERT":
        del beside["changeType"]
    value = change.get("aspect")
    if isinstance(value, dict) and "json" in value:
        return AspectStatement(aspect=aspect, body=value["json"], beside=beside)
    if isinstance(value, dict) and value.get("contentType") == _JSON:
        try:
            return AspectStatement(
                aspect=aspect, body=msgspec.json.decode(value["value"]), beside=beside
            )
        except (msgspec.MsgspecError, KeyError, TypeError):
            # Not what it says it is; carried along as it stands.
            return AspectStatement(aspect=aspect, beside={**beside, "aspect": value})
    return AspectStatement(
        aspect=aspect, beside=beside if value is None else {**beside, "aspect": value}
    )


def _reported(event: dict[str, Any], number: int, aspect: str) -> AspectStatement:
    """What a change event says of one of its aspects."""
    ((_, snapshot),) = event["proposedSnapshot"].items()
    ((_, body),) = snapshot["aspects"][number].items()
    beside = {
        key: value
        for key, value in event.items()
        if value is not None and key != "proposedSnapshot"
    }
    body = _renamed(_untagged(body), _IN_EVENTS, _IN_PROPOSALS)
    return AspectStatement(aspect=aspect, body=body, beside=beside)


def _proposal(entity: Entity, statement: AspectStatement) -> bytes:
    change: dict[str, Any] = {"entityType": entity.type, "entityUrn": entity.urn}
    change["changeType"] = statement.beside.get("changeType", "UPSERT")
    if statement.aspect:
        change["aspectName"] = statement.aspect
    if statement.body:
        change["aspect"] = {"json": statement.body}
    elif statement.body is not None:
        # DataHub takes an empty body in the short form for none at all.
        text = msgspec.json.encode(statement.body).decode()
        change["aspect"] = {"value": text, "contentType": _JSON}
    return _encoded({**change, **statement.beside})


def _renamed(value: Any, old: str, new: str) -> Any:
    """JSON with the types in its unions spelled as the other kind of change spells them."""
    if isinstance(value, list):
        return [_renamed(item, old, new) for item in value]
    if not isinstance(value, dict):
        return value
    if chosen := value.get("fieldDiscriminator"):
        # Only events repeat which of several keys it is that they have.
        return {chosen: _renamed(value[chosen], old, new)}
    if len(value) == 1:
        ((key, inside),) = value.items()
        if key.startswith(old):
            return {f"{new}{key[len(old) :]}": _renamed(inside, old, new)}
    return {key: _renamed(inside, old, new) for key, inside in value.items()}


def _untagged(value: Any, key: str = "") -> Any:
    """JSON without the names of plain types, which old events put around optional values."""
    if isinstance(value, list):
        return [_untagged(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1 and key not in _FREE_KEYS:
        ((name, inside),) = value.items()
        if name in _PLAIN_TYPES:
            return _untagged(inside)
    return {name: _untagged(inside, name) for name, inside in value.items()}


def _by_aspect(items: Sequence[_Item]) -> dict[str, list[_Item]]:
    found: dict[str, list[_Item]] = {}
    for item in items:
        found.setdefault(item.aspect, []).append(item)
    return found


def _aspect_name(type: str) -> str:
    """`com.linkedin.pegasus2avro.common.Ownership` as `ownership`."""
    name = type.rpartition(".")[2]
    if name in _OF_MODELS:
        return f"mlModel{name}"
    capitals = 2 if name.startswith("ML") else 1
    return name[:capitals].lower() + name[capitals:]


def _decoded(record: _Record) -> dict[str, Any]:
    assert record.text is not None, "struck changes have no places"
    change: dict[str, Any] = msgspec.json.decode(record.text)
    return change


def _digest(text: bytes) -> str:
    """A name for a change that has none, the same however it is laid out."""
    plain = msgspec.json.encode(msgspec.json.decode(text), order="sorted")
    return hashlib.blake2b(plain, digest_size=16).hexdigest()


def _encoded(change: Any) -> bytes:
    return msgspec.json.encode(change)
