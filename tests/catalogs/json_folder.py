"""A catalog in a folder of JSON files, written from docs/WRITING_AN_ADAPTER.md alone.

The catalog is weak on purpose. It has three kinds of entities, each in a file `<kind>.<id>.json`
with a name in lower case of at most 100 characters: datasets with flat columns, tags, one owner
and properties; tags with a title and a description; users with an email.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Self
from urllib.parse import unquote
from uuid import NAMESPACE_URL, uuid5

import msgspec

from lumos import catalogs
from lumos.catalogs.interface import (
    NO_FILTERS,
    AspectStorage,
    CatalogItem,
    Filters,
    WrittenEntry,
)
from lumos.catalogs.packed_properties import own_properties, pack, restore, unpack
from lumos.catalogs.search import search_entries
from lumos.errors import CatalogError
from lumos.model import catalog as model
from lumos.model.catalog import CatalogEntity, CatalogEntry, entity_id, entity_urn
from lumos.model.dataset import Dataset, Governance, Owner, Ownership
from lumos.model.json_codec import from_json, to_json
from lumos.model.schema import Field, Schema
from lumos.model.types import SchemaSyntaxError, Unknown, parse_type
from lumos.model.urn import Urn, name_in

KIND: Final = "json-folder"
LONGEST_NAME: Final = 100 - len(".json")
LONGEST_TAG: Final = 64
LONGEST_PROPERTY: Final = 2_000
OWN_URN: Final = re.compile(rf"lumos://{KIND}/([a-z0-9._-]{{1,80}})")
COMMITTED: Final = ".committed"  # a complete batch whose files are not yet at their places
ERASED: Final = to_json(None)
# How items are written as tags: their type, and its fields for the key, the title and the text.
AS_TAGS: Final[dict[str, tuple[type[Any], str, str, str]]] = {
    "entity": (CatalogEntity, "urn", "display_name", "description"),
    "group": (model.Group, "name", "display_name", "description"),
    "job": (model.Job, "urn", "name", "description"),
    "term": (model.GlossaryTerm, "name", "display_name", "definition"),
    "user": (model.User, "name", "display_name", "title"),
}


class Column(msgspec.Struct, omit_defaults=True):
    name: str
    type: str
    description: str | None = None


class DatasetFile(msgspec.Struct, omit_defaults=True):
    columns: list[Column] = []
    tags: list[str] = []
    owner: str | None = None
    properties: dict[str, str] = {}


class EntityFile(msgspec.Struct, omit_defaults=True):
    title: str | None = None
    description: str | None = None
    email: str | None = None


class JsonFolder(
    catalogs.Platform, catalogs.HasAddress, catalogs.StoresItems, catalogs.Searches,
    catalogs.WritesInBatches, catalogs.MergesWrites,
):  # fmt: skip
    kind = KIND
    native = frozenset({"schema", "ownership", "governance", "properties"})

    def __init__(self, settings: Any) -> None:
        self._folder = Path((settings or {}).get("path", "catalog"))
        self._batch: dict[str, bytes] | None = None

    @classmethod
    def at(cls, address: str, configured: Any = None) -> Self:  # noqa: ARG003
        return cls({"path": address})

    @property
    def name(self) -> str:
        return f"{KIND}:{self._folder}"

    def emit(self, dataset: Dataset) -> None:
        self.write(CatalogEntry.of(dataset))

    def get(self, urn: str) -> CatalogEntry | None:
        body = self._read(dataset_file(urn), DatasetFile)
        return None if body is None else entry_in(dataset_file(urn), body)

    def export(self, *, after: str | None = None) -> Iterator[CatalogEntry]:
        urns = [entry_in(file, body).urn for file, body in self._all("dataset", DatasetFile)]
        yield from filter(None, map(self.get, sorted(urn for urn in urns if urn > (after or ""))))

    def search(
        self, text: str, filters: Filters = NO_FILTERS, *, limit: int | None = None
    ) -> Iterator[Dataset]:
        return search_entries(self.export(), text, filters, limit=limit)

    def put(self, entry: CatalogEntry) -> WrittenEntry:
        body, storage = rendered(entry)
        changed = self._write(dataset_file(entry.urn), body)
        return WrittenEntry(urn=entry.urn, changed=changed, held=storage)

    def storage_of(self, entry: CatalogEntry) -> dict[str, AspectStorage]:
        return rendered(entry)[1]

    def erase(self, urn: str) -> None:
        self._write(dataset_file(urn), None)

    def items(self) -> Iterator[CatalogItem]:
        return (item_in(*each) for kind in ("tag", "user") for each in self._all(kind, EntityFile))

    def get_item(self, type: type[CatalogItem], key: str) -> CatalogItem | None:
        body = self._read(item_file(type, key), EntityFile)
        return None if body is None else item_in(item_file(type, key), body)

    def put_item(self, item: CatalogItem) -> None:
        self._write(*written(item))

    def item_as_stored(self, item: CatalogItem) -> CatalogItem:
        return item_in(*written(item))

    def erase_item(self, item: CatalogItem) -> None:
        self._write(written(item)[0], None)

    @contextmanager
    def batch(self) -> Iterator[None]:
        self._batch = {}
        try:
            yield
            self._commit(self._batch)
        finally:
            self._batch = None

    def _write(self, file: str, body: DatasetFile | EntityFile | None) -> bool:
        """Write or erase a file, now or at the end of the batch; returns whether it changes."""
        data = to_json(body, indent=2)
        if self._data(file) == data:
            return False
        if self._batch is None:
            self._commit({file: data})
        else:
            self._batch[file] = data
        return True

    def _commit(self, files: dict[str, bytes]) -> None:
        """Write files together: once their folder is renamed, they will get to their places."""
        self._move_committed()
        self._folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".", dir=self._folder, ignore_cleanup_errors=True) as staged:
            for file, data in files.items():
                Path(staged, file).write_bytes(data)
            Path(staged).rename(self._folder / COMMITTED)
        self._move_committed()

    def _move_committed(self) -> None:
        """Move files of a batch to their places; readers do this too, as the writer may be dead."""
        committed = self._folder / COMMITTED
        for source in committed.glob("*"):
            with suppress(FileNotFoundError):  # another process moved it
                if source.read_bytes() == ERASED:
                    (self._folder / source.name).unlink(missing_ok=True)
                    source.unlink()
                else:
                    source.rename(self._folder / source.name)
        with suppress(OSError):  # there is none, or another process committed the next one
            committed.rmdir()

    def _data(self, file: str) -> bytes:
        if self._batch is not None and file in self._batch:
            return self._batch[file]
        self._move_committed()
        with suppress(FileNotFoundError):
            return (self._folder / file).read_bytes()
        return ERASED

    def _read(self, file: str, type: type[Any]) -> Any:
        data = self._data(file)
        try:
            return None if data == ERASED else from_json(data, type)
        except msgspec.MsgspecError as problem:
            raise CatalogError(f"{self._folder / file}: {problem}", platform=self.name) from None

    def _all(self, kind: str, type: type[Any]) -> Iterator[tuple[str, Any]]:
        self._move_committed()
        files = {path.name for path in self._folder.glob("*.json")} | (self._batch or {}).keys()
        for file in sorted(file for file in files if file.startswith(f"{kind}.")):
            if (body := self._read(file, type)) is not None:
                yield file, body


def escaped(name: str) -> str:
    """The name in lower case, digits, `.`, `_` and `-`; other bytes as `%` and their number."""
    return re.sub("[^a-z0-9._-]", lambda odd: f"%{odd[0].encode().hex('%')}", name)


def dataset_file(urn: str) -> str:
    """Datasets of this catalog have their own names; other names end with a hash of the URN."""
    if own := OWN_URN.fullmatch(urn):
        return f"dataset.{own[1]}.json"
    name = re.sub("[^a-z0-9]+", "-", name_in(urn).lower())
    return f"dataset.{name[:40]}~{uuid5(NAMESPACE_URL, urn).hex}.json"


def item_file(type: type[CatalogItem], key: str) -> str:
    """Tags and users have their own names; names of other items begin with a word and `~`."""
    (word,) = (word for word, (each, *_) in AS_TAGS.items() if each is type)
    names = entity_id(key) or ()
    name = f"tag.{word}~{escaped(key)}"
    if type is model.User:
        name = f"user.{escaped(key)}"
    elif type is CatalogEntity and len(names) == 1 and key == entity_urn("tag", *names):
        name = f"tag.{escaped(*names)}"
    too_long = len(name) > LONGEST_NAME
    return f"tag.{word}~~{uuid5(NAMESPACE_URL, key).hex}.json" if too_long else f"{name}.json"


def native_part(entry: CatalogEntry) -> DatasetFile:
    """The part of an entry that the catalog has fields for."""
    fields = entry.schema.fields if entry.schema else ()
    tags = map(escaped, entry.governance.tags if entry.governance else ())
    owners = entry.ownership.owners if entry.ownership else ()
    users = (escaped(owner.name) for owner in owners if owner.kind == "user")
    own = own_properties(entry.properties or {}).items()
    return DatasetFile(
        columns=[Column(each.name, each.type.text, each.description) for each in fields],
        tags=[tag for tag in tags if len(tag) <= LONGEST_TAG],
        owner=next((user for user in users if len(f"user.{user}") <= LONGEST_NAME), None),
        properties={key: text[:LONGEST_PROPERTY] for key, text in own},
    )


def shown_in(urn: str, body: DatasetFile) -> CatalogEntry:
    """What the fields of the catalog say."""
    owner = None if body.owner is None else Owner(name=unquote(body.owner))
    return CatalogEntry(
        urn=urn, name=name_in(urn), platform=Urn.parse(urn).platform,
        schema=Schema(fields=tuple(map(field_of, body.columns))) if body.columns else None,
        governance=Governance(tags=tuple(map(unquote, body.tags))) if body.tags else None,
        ownership=Ownership(owners=(owner,)) if owner else None,
        properties=unpack(body.properties).own or None,
    )  # fmt: skip


def rendered(entry: CatalogEntry) -> tuple[DatasetFile, dict[str, AspectStorage]]:
    """The file of an entry, and how each of its aspects is stored."""
    # The URN and the deletion have no fields and are not packed: they travel with `raw`.
    raw = {"urn": entry.urn, "deleted": entry.deleted, "raw": entry.raw}
    exact, body = msgspec.structs.replace(entry, raw=raw), native_part(entry)
    packed = pack(exact, shown_in(entry.urn, body), max_length=LONGEST_PROPERTY)
    body.properties |= packed.properties
    return body, packed.storage


def as_shown(entry: CatalogEntry) -> CatalogEntry:
    return shown_in(entry.urn, native_part(entry))


def field_of(column: Column) -> Field:
    try:
        type = parse_type(column.type)
    except SchemaSyntaxError:
        type = Unknown(column.type)
    return Field(name=column.name, type=type, description=column.description)


def entry_in(file: str, body: DatasetFile) -> CatalogEntry:
    """The entry in a file; a file that Lumos did not write is a dataset of this catalog."""
    exact = unpack(body.properties).exact
    beside = exact.pop("raw", {})
    own = f"lumos://{KIND}/{file.removeprefix('dataset.').removesuffix('.json')}"
    urn = next((urn for urn in (beside.get("urn", own), own) if dataset_file(urn) == file), None)
    if urn is None:
        raise CatalogError(f"{file} does not contain the URN that it is named after", platform=KIND)
    entry = restore(shown_in(urn, body), exact, native=JsonFolder.native, as_shown=as_shown)
    deleted, raw = beside.get("deleted", False), beside.get("raw", {})
    return msgspec.structs.replace(entry, deleted=deleted, raw=raw)


def written(item: CatalogItem) -> tuple[str, EntityFile]:
    """The file of an item, and what the file can hold."""
    _, key, title, text = next(row for row in AS_TAGS.values() if row[0] is type(item))
    file = item_file(type(item), getattr(item, key))
    if isinstance(item, model.User) and file.startswith("user."):
        return file, EntityFile(email=item.email)
    return file, EntityFile(getattr(item, key if "~~" in file else title), getattr(item, text))


def item_in(file: str, body: EntityFile) -> CatalogItem:
    kind, id = file.removesuffix(".json").split(".", 1)
    if kind == "user":
        return model.User(name=unquote(id), email=body.email)
    word, mark, rest = id.partition("~")
    type, key_field, title_field, text_field = AS_TAGS.get(word if mark else "", AS_TAGS["entity"])
    key = unquote(rest) if mark else entity_urn("tag", unquote(id))
    key, title = (body.title or "", None) if rest.startswith("~") else (key, body.title)
    if item_file(type, key) != file:
        raise CatalogError(f"{file} does not contain the key that it is named after", platform=KIND)
    fields = {key_field: key, title_field: title, text_field: body.description}
    if word == "job" and mark:
        platform = re.split("[/@]", key.removeprefix("lumos://"))[0]
        fields |= {"name": name_in(key) if title is None else title, "platform": platform}
    item: CatalogItem = type(**fields)
    return item
