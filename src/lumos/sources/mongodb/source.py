"""Collections and views of a MongoDB server as a source."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any, ClassVar, Final, TypeAlias

import msgspec
from bson.errors import BSONError
from pymongo import MongoClient
from pymongo.errors import OperationFailure

from lumos.config.sources import MongodbSourceSettings as Settings
from lumos.model.compressed_list import CompressedList
from lumos.model.dataset import Location, Statistics
from lumos.model.discovery import Discovery, FoundDataset, Problem, SourceMetadata
from lumos.model.schema import Schema
from lumos.sources.interface import (
    EarlierSchema,
    EarlierSchemas,
    SampledSource,
    SampleTasks,
    SourceNotUsable,
)
from lumos.sources.mongodb.connection import NOT_ALLOWED, MongoAccess
from lumos.sources.mongodb.documents import DECODING, MAX_KEYS
from lumos.sources.mongodb.masking import mask_secrets
from lumos.sources.mongodb.sampling import (
    CollectionKind,
    CollectionSample,
    CollectionSampler,
    CollectionTask,
    as_json,
)
from lumos.sources.mongodb.schema import ValidatorRules, merge_with_known, observed_schema, with_key
from lumos.sources.relational import TableSelection, content_of, names_in, path_of

_Client: TypeAlias = "MongoClient[dict[str, Any]]"
_SYSTEM_DATABASES: Final = ("admin", "config", "local")
_KINDS: Final[dict[str, CollectionKind]] = {
    "collection": "collection",
    "view": "view",
    "timeseries": "timeseries",
}
_WILDCARDS: Final = frozenset("*?[")


class MongodbSource(SampledSource):
    kind: ClassVar[str] = "mongodb"

    _settings: Settings

    @cached_property
    def _access(self) -> MongoAccess:
        return MongoAccess.of(self._settings)

    @property
    def address(self) -> str:
        return self._access.display_address

    @property
    def scope(self) -> str:
        # A constant: the selection may change between runs, and `covers` applies it.
        return "*"

    def covers(self, path: str) -> bool:
        database, name = names_in(path)
        return self._is_database_selected(database) and self._selection.includes(database, name)

    def check(self) -> str:
        with self._access.connect() as client:
            version = client.server_info()["version"]
            databases, _ = self._databases(client)
            sample_tasks, problems = self._list_collections(client, databases)
            if problems and not sample_tasks:
                raise SourceNotUsable(
                    f"Nothing can be read at {self.address}: {problems[0].reason}",
                    "Grant the user the role read on the databases.",
                )
        collections = (
            "1 collection" if len(sample_tasks) == 1 else f"{len(sample_tasks):,} collections"
        )
        databases_read = len({task.database for task in sample_tasks})
        location = "1 database" if databases_read == 1 else f"{databases_read:,} databases"
        return f"{self.address}, MongoDB {version}, {collections} and views in {location}"

    def sample_tasks(self) -> SampleTasks:
        with self._access.connect() as client:
            databases, warnings = self._databases(client)
            sample_tasks, unlisted = self._list_collections(client, databases)
        return SampleTasks(
            [msgspec.msgpack.encode(task) for task in sample_tasks], (*warnings, *unlisted)
        )

    def sample_reader(self) -> CollectionSampler:
        return CollectionSampler(self._access)

    def build_discovery(self, samples: Sequence[bytes], known: EarlierSchemas) -> Discovery:
        problems: list[Problem] = []
        datasets = CompressedList(FoundDataset)
        unreadable: list[str] = []
        for encoded in samples:
            sample = msgspec.msgpack.decode(encoded, type=CollectionSample)
            if sample.code == "unreadable":
                unreadable.append(sample.reason)
            path = path_of(sample.task.database, sample.task.name)
            if sample.damaged:
                reason = f"{sample.damaged:,} documents of the sample are not valid BSON."
                problems.append(
                    Problem(path=path, reason=reason, code="damaged_documents", remark=True)
                )
            if sample.code is not None:
                problems.append(Problem(path=path, reason=sample.reason, code=sample.code))
            else:
                dataset = dataset_of(path, sample, known(path), self.address)
                datasets.append(dataset)
                if sample.is_truncated or len(dataset.schema.fields) >= MAX_KEYS:
                    reason = "Its documents have too many keys; not all of them are in the schema."
                    problems.append(
                        Problem(path=path, reason=reason, code="too_many_fields", remark=True)
                    )
        if unreadable and len(unreadable) == len(samples):
            raise SourceNotUsable(
                f"No collection at {self.address} can be read: {unreadable[0]}",
                "Check that executors can reach the server; nothing was recorded.",
            )
        return Discovery(datasets=datasets, problems=tuple(problems))

    def _databases(self, client: _Client) -> tuple[list[str], list[Problem]]:
        """The databases to read, and warnings about names that do not exist."""
        selected = self._selection.schemas
        try:
            existing = client.list_database_names()
        except OperationFailure as problem:
            if (
                problem.code not in NOT_ALLOWED
                or not selected
                or _WILDCARDS & set("".join(selected))
            ):
                raise
            # Users without permission to list databases may still read the configured ones.
            return list(selected), []
        databases = [name for name in existing if self._is_database_selected(name)]
        return databases, list(self._selection.unknown_schemas(existing, noun="database"))

    def _list_collections(
        self, client: _Client, databases: Sequence[str]
    ) -> tuple[list[CollectionTask], list[Problem]]:
        sample_tasks: list[CollectionTask] = []
        problems: list[Problem] = []
        for database in databases:
            try:
                sample_tasks += self._collections(client, database)
            except (OperationFailure, BSONError) as problem:
                reason = f"its collections cannot be listed: {self._access.describe(problem)}."
                is_denied = getattr(problem, "code", None) in NOT_ALLOWED
                code = "not_allowed" if is_denied else "unreadable"
                problems.append(Problem(path=path_of(database), reason=reason, code=code))
        return sample_tasks, problems

    def _collections(self, client: _Client, database: str) -> Iterator[CollectionTask]:
        # The list of the driver fails for dates outside of the range of Python.
        found = client[database].cursor_command("listCollections", codec_options=DECODING)
        for entry in sorted(found, key=lambda entry: str(entry["name"])):
            name = str(entry["name"])
            kind = _KINDS.get(str(entry.get("type", "collection")))
            is_selected = self._selection.includes(database, name)
            if kind is None or name.startswith("system.") or not is_selected:
                continue
            identity = entry.get("info", {}).get("uuid")
            yield CollectionTask(
                database=database,
                name=name,
                kind=kind,
                identity=None if identity is None else bytes(identity).hex(),
                options=as_json(entry.get("options") or {}),
                sample_size=self._settings.sample_size,
            )

    @cached_property
    def _selection(self) -> TableSelection:
        """The databases of the section, or else the one in the address, and their collections."""
        settings, databases = self._settings, self._settings.databases
        named = self._access.database
        # System databases only appear in addresses for authentication.
        if not databases and named is not None and named not in _SYSTEM_DATABASES:
            databases = (named,)
        return TableSelection(databases, settings.collections, (), settings.exclude)

    def _is_database_selected(self, database: str) -> bool:
        if not self._selection.schemas:
            return database not in _SYSTEM_DATABASES
        return self._selection.includes_schema(database)


# Names of the properties for collection options.
_OPTION_NAMES: Final = {
    "viewOn": "view_on",
    "pipeline": "pipeline",
    "validator": "validator",
    "validationLevel": "validation_level",
    "validationAction": "validation_action",
    "timeseries": "timeseries",
    "expireAfterSeconds": "expires_after_seconds",
    "collation": "collation",
    "clusteredIndex": "clustered_index",
}

# The definition of a view; a redefined view may have entirely different documents.
_DEFINITION: Final = ("view_on", "pipeline")


def dataset_of(
    path: str, sample: CollectionSample, known: EarlierSchema | None, address: str
) -> FoundDataset:
    """The dataset for a collection or view."""
    task = sample.task
    options: dict[str, Any] = msgspec.json.decode(task.options)
    metadata = SourceMetadata(properties=_properties(sample, options))
    schema = _merged_schema(sample, options, metadata, known)
    return FoundDataset(
        path=path,
        name=f"{task.database}.{task.name}",
        format=task.kind,
        location=Location(uri=f"{address}/{path}", identity=task.identity),
        schema=schema,
        statistics=Statistics(
            row_count=sample.documents,
            total_size_bytes=sample.bytes or 0,
            total_size_exact=False,
        ),
        drift=(),
        content=content_of(task.kind, None, metadata, schema),
        source_metadata=metadata,
    )


def _merged_schema(
    sample: CollectionSample,
    options: dict[str, Any],
    metadata: SourceMetadata,
    known: EarlierSchema | None,
) -> Schema:
    validator = options.get("validator")
    rules = ValidatorRules.of(
        validator if isinstance(validator, dict) else {},
        # With "warn", documents may violate the rules.
        enforced=options.get("validationAction", "error") != "warn"
        and options.get("validationLevel", "strict") == "strict",
    )
    has_key = sample.task.kind == "collection"
    observed = observed_schema(sample.seen, rules, has_key=has_key)
    if known is None:
        return with_key(observed) if has_key and not sample.seen.count else observed
    is_redefined = any(
        known.properties.get(name) != metadata.properties.get(name) for name in _DEFINITION
    )
    # An empty collection has no information, so the known schema is kept.
    whole = (sample.whole or is_redefined) and sample.seen.count > 0
    return merge_with_known(observed, known.schema, whole=whole)


def _properties(sample: CollectionSample, options: dict[str, Any]) -> dict[str, str]:
    metadata = {
        name: each if isinstance(each, str) else msgspec.json.encode(mask_secrets(each)).decode()
        for option, name in _OPTION_NAMES.items()
        if (each := options.get(option)) not in (None, {}, [])
    }
    if options.get("capped"):
        limit = options.get("max")
        documents = f", {limit} documents" if limit else ""
        metadata["capped"] = f"{options.get('size', 0)} bytes{documents}"
    if sample.shard_key is not None:
        metadata["shard_key"] = sample.shard_key
    metadata |= {f"index.{name}": text for name, text in sample.indexes.items()}
    return metadata
