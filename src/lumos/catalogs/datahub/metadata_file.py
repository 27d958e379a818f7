"""DataHub's metadata files: change proposals and change events in JSON, in the order of the file.

Each record of a file writes aspects of entities. Unchanged records are written byte for byte. The
file is replaced atomically, and only if no other program wrote it in the meantime.
"""

import errno
import fcntl
import hashlib
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, TypeVar

import msgspec

from lumos.catalogs.datahub.aspects import CHANGE_PREFIX, AspectWrite, Entity, entity_of
from lumos.errors import LumosError

_DEFAULT_MODE: Final = 0o644
# Errors of file systems that cannot lock a folder, such as some network file systems.
_LOCK_UNSUPPORTED: Final = frozenset({errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS})

# Inode, modification time and size of a file, or None if it does not exist.
_FileVersion: TypeAlias = tuple[int, int, int] | None
_JSON: Final = "application/json"
_EVENT_NAMESPACE: Final = "com.linkedin.pegasus2avro."
_PROPOSAL_NAMESPACE: Final = "com.linkedin."
_PLAIN_TYPES: Final = frozenset(
    {"array", "boolean", "bytes", "double", "float", "int", "long", "map", "string"}
)
# Maps with arbitrary keys.
_FREE_FORM_MAPS: Final = frozenset({"customProperties", "properties", "ownerTypes", "sourceDetail"})
# Aspects of ML models whose types do not start with `MLModel`.
_ML_MODEL_ASPECTS: Final = frozenset(
    {"Metrics", "EvaluationData", "TrainingData", "QuantitativeAnalyses", "EthicalConsiderations",
     "CaveatsAndRecommendations"}
)  # fmt: skip


class NotMetadata(LumosError):
    """A file that is not a metadata file of DataHub, with the position of the problem."""

    def __init__(self, path: Path, position: str, problem: str) -> None:
        self.path = path
        self.position = position
        where = f"{path}: {position}" if position else str(path)
        super().__init__(
            f"{where}: {problem}. A metadata file is a JSON list of DataHub's change proposals "
            "(entityUrn, aspectName, aspect) and change events (proposedSnapshot)."
        )


class _Snapshot(msgspec.Struct):
    urn: str
    aspects: list[dict[str, msgspec.Raw]]


class _Change(msgspec.Struct):
    """The part of a change that names its entity."""

    entityType: str | None = None
    entityUrn: str | None = None
    aspectName: str | None = None
    proposedSnapshot: dict[str, _Snapshot] | None = None
    proposedDelta: Any = None
    resource: str | None = None


class _Record(msgspec.Struct, eq=False):
    """A change in the file, followed by the changes that were added for the same entity."""

    text: bytes | None
    added: list["_Record"] = []

    def texts(self) -> Iterator[bytes]:
        if self.text is not None:
            yield self.text
        for record in self.added:
            yield from record.texts()


class _Position(msgspec.Struct, eq=False):
    """The position of a write: its change and, in an event, the index of its aspect."""

    record: _Record
    aspect_index: int | None
    aspect: str


class _HasAspect(Protocol):
    @property
    def aspect(self) -> str: ...


_Item = TypeVar("_Item", bound=_HasAspect)


class MetadataFile:
    """The aspects that a file writes, by entity; `save` writes changed aspects back to the file."""

    def __init__(self, path: Path, data: bytes | None = None, version: _FileVersion = None) -> None:
        self.path = path
        self._records: list[_Record] = []
        self._types: dict[str, str] = {}
        self._positions: dict[str, list[_Position]] = {}
        self._is_saved = data is not None
        self._version = version
        for number, text in enumerate(self._parse(b"[]" if data is None else data)):
            self._add_change(number, bytes(text))

    @classmethod
    def read(cls, path: Path) -> "MetadataFile":
        """Read the file at a path; a missing file is empty."""
        return cls(path, *_read_content(path))

    def entities(self) -> Iterator[Entity]:
        """All entities, in the order in which the file first names them."""
        for urn, type in self._types.items():
            yield Entity(type, urn)

    def writes(self, urn: str, aspect: str | None = None) -> list[AspectWrite]:
        """The writes of an entity, or of one of its aspects, in the order of the file."""
        wanted = self._positions.get(urn, [])
        try:
            return self._decode_writes(
                [position for position in wanted if position.aspect == aspect] if aspect else wanted
            )
        except msgspec.MsgspecError as problem:
            # Aspects are decoded only here; a number may be out of range.
            raise NotMetadata(self.path, urn, str(problem)) from None

    def error(self, position: str, problem: str) -> NotMetadata:
        return NotMetadata(self.path, position, problem)

    def mentions(self, urn: str, aspect: str, texts: Sequence[bytes]) -> bool:
        """Whether the text of an entity's aspect contains any of `texts`."""
        return any(
            text in (position.record.text or b"")
            for position in self._positions.get(urn, ())
            if position.aspect == aspect
            for text in texts
        )

    def replace(self, entity: Entity, writes: Sequence[AspectWrite]) -> bool:
        """Replace all writes of an entity; return whether anything changed."""
        old = _by_aspect(self._positions.get(entity.urn, []))
        new = _by_aspect(writes)
        changed = [
            aspect
            for aspect in {**old, **new}
            if self._decode_writes(old.get(aspect, [])) != new.get(aspect, [])
        ]
        for aspect in changed:
            self._replace(entity, old.get(aspect, []), new.get(aspect, []))
        if changed:
            self._is_saved = False
        if not self._positions.get(entity.urn):
            self._positions.pop(entity.urn, None)
            self._types.pop(entity.urn, None)
        return bool(changed)

    def save(self) -> None:
        """Write the file if anything changed."""
        if self._is_saved:
            return
        texts = [text for record in self._records for text in record.texts()]
        data = b"[\n" + b",\n".join(texts) + b"\n]\n" if texts else b"[]\n"
        self._version = _write_content(self.path, data, expected=self._version)
        self._is_saved = True

    def _parse(self, data: bytes) -> list[msgspec.Raw]:
        try:
            if data.lstrip().startswith(b"{"):
                return [msgspec.json.decode(data, type=msgspec.Raw)]
            return msgspec.json.decode(data, type=list[msgspec.Raw])
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
            raise NotMetadata(self.path, "", str(problem)) from None

    def _add_change(self, number: int, text: bytes) -> None:
        record = _Record(text)
        self._records.append(record)
        try:
            change = msgspec.json.decode(text, type=_Change)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as problem:
            raise NotMetadata(self.path, f"[{number}]", str(problem)) from None
        if change.proposedSnapshot and change.proposedDelta is None:
            self._add_event(f"[{number}].proposedSnapshot", record, change.proposedSnapshot)
        elif change.entityUrn and change.entityType:
            entity = entity_of(change.entityUrn)
            # DataHub itself uses both `corpuser` and `corpUser`.
            if entity.type.lower() != change.entityType.lower():
                problem_text = f"'{entity.urn}' is not the URN of a {change.entityType}"
                raise NotMetadata(self.path, f"[{number}].entityUrn", problem_text)
            self._add(entity, _Position(record, None, change.aspectName or ""))
        elif change.entityType or change.resource or change.proposedSnapshot:
            # The change has no URN (only a key aspect, or usage in its old form); its hash
            # identifies it.
            self._add(entity_of(f"{CHANGE_PREFIX}{_digest(text)}"), _Position(record, None, ""))
        else:
            raise NotMetadata(self.path, f"[{number}]", "the change has no entity URN")

    def _add_event(self, position: str, record: _Record, snapshots: dict[str, _Snapshot]) -> None:
        if len(snapshots) > 1:
            raise NotMetadata(self.path, position, f"Expected one snapshot, got {len(snapshots)}")
        for type, snapshot in snapshots.items():
            entity = entity_of(snapshot.urn)
            for number, aspect in enumerate(snapshot.aspects):
                if len(aspect) != 1:
                    problem_text = f"Expected an object with one aspect, got {len(aspect)} aspects"
                    raise NotMetadata(
                        self.path, f"{position}.{type}.aspects[{number}]", problem_text
                    )
                self._add(entity, _Position(record, number, _aspect_name(next(iter(aspect)))))

    def _add(self, entity: Entity, position: _Position) -> None:
        self._types.setdefault(entity.urn, entity.type)
        self._positions.setdefault(entity.urn, []).append(position)

    def _decode_writes(self, positions: Sequence[_Position]) -> list[AspectWrite]:
        # Each event is decoded once for all its aspects.
        changes: dict[int, dict[str, Any]] = {}
        writes = []
        for position in positions:
            if (change := changes.get(id(position.record))) is None:
                change = changes[id(position.record)] = _decode_change(position.record)
            writes.append(
                _write_in_proposal(change, position.aspect)
                if position.aspect_index is None
                else _write_in_event(change, position.aspect_index, position.aspect)
            )
        return writes

    def _replace(self, entity: Entity, old: list[_Position], new: list[AspectWrite]) -> None:
        for position, write in zip(old, new, strict=False):
            self._rewrite(entity, position, write)
        for position in old[len(new) :]:
            self._remove(entity, position)
        for write in new[len(old) :]:
            self._append(entity, write)

    def _rewrite(self, entity: Entity, position: _Position, write: AspectWrite) -> None:
        [before] = self._decode_writes([position])
        if position.aspect_index is None:
            position.record.text = _proposal(entity, write)
        elif before.extras == write.extras:
            event = _decode_change(position.record)
            ((_, snapshot),) = event["proposedSnapshot"].items()
            body = _rename_types(write.body, _PROPOSAL_NAMESPACE, _EVENT_NAMESPACE)
            snapshot["aspects"][position.aspect_index] = dict.fromkeys(
                snapshot["aspects"][position.aspect_index], body
            )
            position.record.text = _encode(event)
        else:
            self._remove(entity, position)
            self._append(entity, write)

    def _remove(self, entity: Entity, removed: _Position) -> None:
        positions = self._positions[entity.urn]
        positions.remove(removed)
        siblings = [position for position in positions if position.record is removed.record]
        if not siblings:
            removed.record.text = None
            return
        assert removed.aspect_index is not None, "a proposal has no other aspects"
        event = _decode_change(removed.record)
        ((_, snapshot),) = event["proposedSnapshot"].items()
        del snapshot["aspects"][removed.aspect_index]
        removed.record.text = _encode(event)
        for position in siblings:
            if position.aspect_index is not None and position.aspect_index > removed.aspect_index:
                position.aspect_index -= 1

    def _append(self, entity: Entity, write: AspectWrite) -> None:
        record = _Record(_proposal(entity, write))
        if positions := self._positions.get(entity.urn):
            positions[-1].record.added.append(record)
        else:
            self._records.append(record)
        self._add(entity, _Position(record, None, write.aspect))


def _write_in_proposal(change: dict[str, Any], aspect: str) -> AspectWrite:
    if not change.get("entityUrn"):
        return AspectWrite(aspect=aspect, body=change)
    extras = {
        key: value
        for key, value in change.items()
        if value is not None and key not in ("entityType", "entityUrn", "aspectName", "aspect")
    }
    if extras.get("changeType") == "UPSERT":
        del extras["changeType"]
    value = change.get("aspect")
    if isinstance(value, dict) and "json" in value:
        return AspectWrite(aspect=aspect, body=value["json"], extras=extras)
    if isinstance(value, dict) and value.get("contentType") == _JSON:
        try:
            return AspectWrite(
                aspect=aspect, body=msgspec.json.decode(value["value"]), extras=extras
            )
        except (msgspec.MsgspecError, KeyError, TypeError):
            # Not valid JSON: preserved unchanged.
            return AspectWrite(aspect=aspect, extras={**extras, "aspect": value})
    return AspectWrite(
        aspect=aspect, extras=extras if value is None else {**extras, "aspect": value}
    )


def _write_in_event(event: dict[str, Any], number: int, aspect: str) -> AspectWrite:
    """The write of one aspect in a change event."""
    ((_, snapshot),) = event["proposedSnapshot"].items()
    ((_, body),) = snapshot["aspects"][number].items()
    extras = {
        key: value
        for key, value in event.items()
        if value is not None and key != "proposedSnapshot"
    }
    body = _rename_types(_without_type_names(body), _EVENT_NAMESPACE, _PROPOSAL_NAMESPACE)
    return AspectWrite(aspect=aspect, body=body, extras=extras)


def _proposal(entity: Entity, write: AspectWrite) -> bytes:
    if entity.urn.startswith(CHANGE_PREFIX):
        return _encode(write.body)
    change: dict[str, Any] = {"entityType": entity.type, "entityUrn": entity.urn}
    change["changeType"] = write.extras.get("changeType", "UPSERT")
    if write.aspect:
        change["aspectName"] = write.aspect
    if write.body:
        change["aspect"] = {"json": write.body}
    elif write.body is not None:
        # DataHub ignores an empty body in the form `{"json": {}}`.
        text = msgspec.json.encode(write.body).decode()
        change["aspect"] = {"value": text, "contentType": _JSON}
    return _encode({**change, **write.extras})


def _rename_types(value: Any, old: str, new: str) -> Any:
    """Replace the namespace of type names in unions, which differs between the two formats."""
    if isinstance(value, list):
        return [_rename_types(item, old, new) for item in value]
    if not isinstance(value, dict):
        return value
    if chosen := value.get("fieldDiscriminator"):
        # In events, the key `fieldDiscriminator` names the chosen key of a union.
        return {chosen: _rename_types(value[chosen], old, new)}
    if len(value) == 1:
        ((key, nested_value),) = value.items()
        if key.startswith(old):
            return {f"{new}{key[len(old) :]}": _rename_types(nested_value, old, new)}
    return {key: _rename_types(nested_value, old, new) for key, nested_value in value.items()}


def _without_type_names(value: Any, key: str = "") -> Any:
    """Remove the names of plain types, which old events wrap around optional values."""
    if isinstance(value, list):
        return [_without_type_names(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1 and key not in _FREE_FORM_MAPS:
        ((name, nested_value),) = value.items()
        if name in _PLAIN_TYPES:
            return _without_type_names(nested_value)
    return {name: _without_type_names(nested_value, name) for name, nested_value in value.items()}


def _by_aspect(items: Sequence[_Item]) -> dict[str, list[_Item]]:
    groups: dict[str, list[_Item]] = {}
    for item in items:
        groups.setdefault(item.aspect, []).append(item)
    return groups


def _aspect_name(type: str) -> str:
    """`com.linkedin.pegasus2avro.common.Ownership` as `ownership`."""
    name = type.rpartition(".")[2]
    if name in _ML_MODEL_ASPECTS:
        return f"mlModel{name}"
    capitals = 2 if name.startswith("ML") else 1
    return name[:capitals].lower() + name[capitals:]


def _decode_change(record: _Record) -> dict[str, Any]:
    assert record.text is not None, "the change was removed"
    change: dict[str, Any] = msgspec.json.decode(record.text)
    return change


def _digest(text: bytes) -> str:
    """A hash of a change, independent of whitespace and order of keys."""
    plain = msgspec.json.encode(msgspec.json.decode(text), order="sorted")
    return hashlib.blake2b(plain, digest_size=16).hexdigest()


def _encode(change: Any) -> bytes:
    return msgspec.json.encode(change)


class _FileContent(NamedTuple):
    data: bytes | None
    version: _FileVersion


def _read_content(path: Path) -> _FileContent:
    """Read a file; both values are None if it does not exist."""
    # Read the version first, so that a change during the read is detected before the next write.
    version = _file_version(path)
    try:
        return _FileContent(path.read_bytes(), version)
    except FileNotFoundError:
        return _FileContent(None, None)
    except OSError as problem:
        raise LumosError(f"{path} cannot be read: {problem.strerror}.") from None


def _write_content(path: Path, data: bytes, *, expected: _FileVersion) -> _FileVersion:
    """Replace a file atomically, if it still has the version `expected`."""
    # If the path is a link, replace its target, not the link.
    target = path.resolve()
    descriptor, temporary, mode = _create_temporary(target)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(mode)
        with _lock_folder(target.parent):
            if _file_version(target) != expected:
                raise LumosError(
                    f"{path} was changed by another program since it was read. Nothing was "
                    "written; try again."
                )
            temporary.replace(target)
            return _file_version(target)
    except OSError as problem:
        temporary.unlink(missing_ok=True)
        raise LumosError(f"{path} cannot be written: {problem.strerror}.") from None
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def check_writable(path: Path) -> None:
    """Raise an error if a file cannot be written."""
    descriptor, temporary, _ = _create_temporary(path.resolve())
    os.close(descriptor)
    temporary.unlink()


def _create_temporary(path: Path) -> tuple[int, Path, int]:
    """Create a file in the same folder; return its descriptor, path and the mode to set."""
    try:
        mode = path.stat().st_mode & 0o777 if path.exists() else _DEFAULT_MODE
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as problem:
        raise LumosError(f"{path} cannot be written: {problem.strerror}.") from None
    return descriptor, Path(name), mode


@contextmanager
def _lock_folder(folder: Path) -> Iterator[None]:
    """Lock a folder, so that only one process at a time replaces files in it."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError as problem:
            # Without a lock, another program may write between the check and the replacement.
            if problem.errno not in _LOCK_UNSUPPORTED:
                raise
        yield
    finally:
        os.close(descriptor)


def _file_version(path: Path) -> _FileVersion:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
