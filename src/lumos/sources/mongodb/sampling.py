"""Sample one collection on an executor: fields, sizes and indexes."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Final, Literal

import msgspec
from bson import json_util
from bson.codec_options import CodecOptions
from bson.errors import BSONError
from bson.raw_bson import RawBSONDocument
from pymongo import MongoClient
from pymongo.collection import Collection
from pymongo.errors import ExecutionTimeout, OperationFailure, PyMongoError

from lumos.sources.interface import SampleReader, SourceNotUsable
from lumos.sources.mongodb.connection import NOT_ALLOWED, MongoAccess
from lumos.sources.mongodb.documents import DECODING, DocumentCounter, FieldCounts
from lumos.sources.mongodb.masking import mask_secrets

_BATCH: Final = 500
_RAW: Final[CodecOptions[RawBSONDocument]] = CodecOptions(document_class=RawBSONDocument)
# The error codes NotImplemented and "unrecognized pipeline stage".
_NOT_IMPLEMENTED: Final = (238, 40324)
# Already in the index's name and key, or not useful.
_IGNORED_INDEX_KEYS: Final = ("v", "ns", "name", "key", "background")

CollectionKind = Literal["collection", "view", "timeseries"]


class CollectionTask(msgspec.Struct, frozen=True, kw_only=True):
    """A collection to sample; `options` are those of MongoDB as extended JSON."""

    database: str
    name: str
    kind: CollectionKind
    identity: str | None
    options: str
    sample_size: int


class CollectionSample(msgspec.Struct, frozen=True, kw_only=True):
    """The sample of a collection, or the reason why there is none."""

    task: CollectionTask
    code: str | None = None
    reason: str = ""
    seen: FieldCounts = msgspec.field(default_factory=FieldCounts)
    # Whether every document was read.
    whole: bool = False
    damaged: int = 0
    is_truncated: bool = False
    documents: int | None = None
    bytes: int | None = None
    indexes: dict[str, str] = {}
    shard_key: str | None = None


class CollectionSampler(SampleReader):
    """Samples collections with one connection, opened on first use."""

    def __init__(self, access: MongoAccess) -> None:
        self._access = access

    def __getstate__(self) -> dict[str, Any]:
        return {"_access": self._access}

    @cached_property
    def _client(self) -> "MongoClient[dict[str, Any]]":
        return self._access.client()

    def __call__(self, task: bytes) -> bytes:
        decoded = msgspec.msgpack.decode(task, type=CollectionTask)
        return msgspec.msgpack.encode(self.sample(decoded))

    def sample(self, task: CollectionTask) -> CollectionSample:
        """The sample of a collection; failures are returned as samples too."""
        try:
            return self._read(task)
        except ExecutionTimeout as problem:
            return self._failed_sample(task, "too_slow", problem)
        except OperationFailure as problem:
            code = "not_allowed" if problem.code in NOT_ALLOWED else "unreadable"
            return self._failed_sample(task, code, problem)
        except (PyMongoError, BSONError) as problem:
            return self._failed_sample(task, "unreadable", problem)
        except SourceNotUsable as problem:
            # A file of the connection may be missing on this machine.
            return CollectionSample(task=task, code="unreadable", reason=str(problem))

    def close(self) -> None:
        if "_client" in self.__dict__:
            self._client.close()

    def _failed_sample(
        self, task: CollectionTask, code: str, problem: Exception
    ) -> CollectionSample:
        return CollectionSample(task=task, code=code, reason=f"{self._access.describe(problem)}.")

    def _read(self, task: CollectionTask) -> CollectionSample:
        collection = self._client[task.database][task.name]
        statistics = {} if task.kind == "view" else self._statistics(collection)
        count = _number(statistics.get("count"))
        if count is None and task.kind == "collection":
            count = collection.estimated_document_count(maxTimeMS=self._access.milliseconds)
        documents, whole = self._sample(collection, task, count)
        return CollectionSample(
            task=task,
            seen=documents.seen,
            whole=whole,
            damaged=documents.damaged,
            is_truncated=documents.is_truncated,
            documents=count,
            bytes=_number(statistics.get("size")),
            indexes={} if task.kind == "view" else dict(_indexes(collection)),
            shard_key=self._shard_key(task) if statistics.get("sharded") else None,
        )

    def _sample(
        self, collection: Collection[dict[str, Any]], task: CollectionTask, count: int | None
    ) -> tuple[DocumentCounter, bool]:
        """A random sample, or all documents if there are few.

        Servers without `$sample`, such as FerretDB, return their first documents instead.
        """
        documents = DocumentCounter()
        # Decode documents one by one, so that a damaged document does not affect the others.
        raw = collection.with_options(codec_options=_RAW)
        limit, size = self._access.milliseconds, task.sample_size
        # A random sample of a view would compute the whole view.
        if task.kind == "view" or (count is not None and count <= size):
            # The count may be outdated or unknown, so one more document is requested.
            documents.count_documents(
                raw.find(limit=size + 1, batch_size=_BATCH, max_time_ms=limit)
            )
            return documents, documents.seen.count + documents.damaged <= size
        sample = [{"$sample": {"size": size}}]
        found: Iterator[RawBSONDocument]
        try:
            found = raw.aggregate(sample, maxTimeMS=limit, allowDiskUse=True, batchSize=_BATCH)
        except OperationFailure as problem:
            if problem.code not in _NOT_IMPLEMENTED:
                raise
            found = raw.find(limit=size, batch_size=_BATCH, max_time_ms=limit)
        documents.count_documents(found)
        return documents, False

    def _statistics(self, collection: Collection[dict[str, Any]]) -> Mapping[str, Any]:
        try:
            statistics = collection.database.command(
                "collStats", collection.name, maxTimeMS=self._access.milliseconds
            )
        except OperationFailure:
            # Optional: users may lack the permission, and some servers do not support it.
            return {}
        return statistics

    def _shard_key(self, task: CollectionTask) -> str | None:
        query = {"_id": f"{task.database}.{task.name}"}
        try:
            found = self._client["config"]["collections"].find_one(query, {"key": 1})
        except OperationFailure:
            return None
        return None if found is None else as_json(found.get("key"))


def _indexes(collection: Collection[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    try:
        database = collection.database
        found = database.cursor_command("listIndexes", collection.name, codec_options=DECODING)
        for index in found:
            # Sort the options and drop false values, since servers differ in both.
            options = {
                name: value
                for name, value in sorted(index.items())
                if name not in _IGNORED_INDEX_KEYS and value is not False
            }
            yield str(index["name"]), as_json({"key": index["key"], **mask_secrets(options)})
    except (OperationFailure, BSONError):
        # Continue without indexes if the user is not allowed to list them.
        return


def as_json(value: object) -> str:
    """A MongoDB value as one line of extended JSON."""
    return json_util.dumps(value, json_options=json_util.RELAXED_JSON_OPTIONS)


def _number(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) and value >= 0 else None
