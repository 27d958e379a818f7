"""Collections and views of a MongoDB server as a source."""

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, ClassVar, Final, TypeAlias
from urllib.parse import quote, unquote

import msgspec
from bson.errors import BSONError
from pymongo import MongoClient
from pymongo.errors import OperationFailure

from lumos.config.sources import MongodbSourceSettings as Settings
from lumos.errors import did_you_mean
from lumos.model.dataset import Location, Statistics
from lumos.model.discovery import Discovery, FoundDataset, Problem, SourceMetadata
from lumos.model.schema import Schema, fingerprint
from lumos.model.types import quoted_text
from lumos.model.urn import Urn
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

_Client: TypeAlias = "MongoClient[dict[str, Any]]"
_OF_THE_SERVER: Final = ("admin", "config", "local")
_KINDS: Final[dict[str, CollectionKind]] = {
    "collection": "collection",
    "view": "view",
    "timeseries": "timeseries",
}
_PATTERN: Final = frozenset("*?[")


class MongodbSource(SampledSource):
    kind: ClassVar[str] = "mongodb"

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self.instance = settings.instance

    @cached_property
    def _access(self) -> MongoAccess:
        return MongoAccess.of(self._settings)

    @property
    def address(self) -> str:
        return self._access.shown

    @property
    def scope(self) -> str:
        # Which databases are looked at may change from run to run; `covers` knows.
        return "*"

    def urn(self, path: str, *, environment: str) -> Urn:
        parts = [unquote(part) for part in path.split("/")]
        return Urn.of(self.kind, parts, instance=self.instance, environment=environment)

    def covers(self, path: str) -> bool:
        database, _, name = path.partition("/")
        return self._is_database_wanted(unquote(database)) and self._is_wanted(
            unquote(database), unquote(name)
        )

    def check(self) -> str:
        with self._access.connected() as client:
            version = client.server_info()["version"]
            databases, _ = self._databases(client)
            works, problems = self._listed(client, databases)
            if problems and not works:
                raise SourceNotUsable(
                    f"Nothing can be read at {self.address}: {problems[0].reason}",
                    "Grant the user the role read on the databases.",
                )
        collections = "1 collection" if len(works) == 1 else f"{len(works):,} collections"
        databases_read = len({work.database for work in works})
        where = "1 database" if databases_read == 1 else f"{databases_read:,} databases"
        return f"{self.address}, MongoDB {version}, {collections} and views in {where}"

    def works(self) -> SampleTasks:
        with self._access.connected() as client:
            databases, remarks = self._databases(client)
            works, unlisted = self._listed(client, databases)
        return SampleTasks([msgspec.msgpack.encode(work) for work in works], (*remarks, *unlisted))

    def observer(self) -> CollectionSampler:
        return CollectionSampler(self._access)

    def discovery(self, answers: Sequence[bytes], known: EarlierSchemas) -> Discovery:
        seen = [msgspec.msgpack.decode(answer, type=CollectionSample) for answer in answers]
        if seen and all(answer.problem == "unreadable" for answer in seen):
            raise SourceNotUsable(
                f"No collection at {self.address} can be read: {seen[0].reason}",
                "Check that executors reach the server, too; nothing was recorded.",
            )
        problems: list[Problem] = []
        datasets = []
        for answer in seen:
            path = path_of(answer.work.database, answer.work.name)
            problems += _problems(path, answer)
            if answer.problem is None:
                dataset = dataset_of(path, answer, known(path), self.address)
                datasets.append(dataset)
                if answer.is_cut or len(dataset.schema.fields) >= MAX_KEYS:
                    problems.append(_too_many_fields(path))
        return Discovery(datasets=tuple(datasets), problems=tuple(problems))

    def _databases(self, client: _Client) -> tuple[list[str], list[Problem]]:
        """The databases to look at, and remarks on names that mean nothing."""
        wanted = self._wanted_databases
        try:
            there = client.list_database_names()
        except OperationFailure as problem:
            if problem.code not in NOT_ALLOWED or not wanted or _PATTERN & set("".join(wanted)):
                raise
            # Whoever may not list databases may still read those that are named.
            return list(wanted), []
        chosen = [name for name in there if self._is_database_wanted(name)]
        remarks = [
            Problem(
                path=quote(name, safe=""),
                reason=f"there is no database '{name}'.{did_you_mean(name, there)}",
                code="no_such_database",
                remark=True,
            )
            for name in wanted
            if not any(_fits(each, name) for each in there)
        ]
        return chosen, remarks

    def _listed(
        self, client: _Client, databases: Sequence[str]
    ) -> tuple[list[CollectionTask], list[Problem]]:
        works: list[CollectionTask] = []
        problems: list[Problem] = []
        for database in databases:
            try:
                works += self._collections(client, database)
            except (OperationFailure, BSONError) as problem:
                reason = f"its collections cannot be listed: {self._access.words(problem)}."
                is_denied = getattr(problem, "code", None) in NOT_ALLOWED
                code = "not_allowed" if is_denied else "unreadable"
                problems.append(Problem(path=quote(database, safe=""), reason=reason, code=code))
        return works, problems

    def _collections(self, client: _Client, database: str) -> Iterator[CollectionTask]:
        # The driver's own list knows no times far off any calendar.
        found = client[database].cursor_command("listCollections", codec_options=DECODING)
        for each in sorted(found, key=lambda each: str(each["name"])):
            name = str(each["name"])
            kind = _KINDS.get(str(each.get("type", "collection")))
            if kind is None or name.startswith("system.") or not self._is_wanted(database, name):
                continue
            identity = each.get("info", {}).get("uuid")
            yield CollectionTask(
                database=database,
                name=name,
                kind=kind,
                identity=None if identity is None else bytes(identity).hex(),
                options=as_json(each.get("options") or {}),
                sample_size=self._settings.sample_size,
            )

    @cached_property
    def _wanted_databases(self) -> tuple[str, ...]:
        """The databases that are named, in the section or else in the address."""
        if self._settings.databases:
            return self._settings.databases
        named = self._access.database
        # There users are kept, who log in through it.
        return () if named is None or named in _OF_THE_SERVER else (named,)

    def _is_database_wanted(self, database: str) -> bool:
        wanted = self._wanted_databases
        if not wanted:
            return database not in _OF_THE_SERVER
        return any(_fits(database, each) for each in wanted)

    def _is_wanted(self, database: str, name: str) -> bool:
        settings = self._settings
        return (
            not settings.collections or _matches(database, name, settings.collections)
        ) and not _matches(database, name, settings.exclude)


def _problems(path: str, answer: CollectionSample) -> Iterator[Problem]:
    if answer.problem is not None:
        yield Problem(path=path, reason=answer.reason, code=answer.problem)
    if answer.damaged:
        yield Problem(
            path=path,
            reason=f"{answer.damaged:,} documents of the sample are no valid BSON.",
            code="damaged_documents",
            remark=True,
        )


def _too_many_fields(path: str) -> Problem:
    return Problem(
        path=path,
        reason="Its documents have too many keys; not all of them are in the schema.",
        code="too_many_fields",
        remark=True,
    )


def _matches(database: str, name: str, patterns: Iterable[str]) -> bool:
    """Whether one of the patterns means the collection by its name, or with its database."""
    return any(_fits(name, each) or _fits(f"{database}.{name}", each) for each in patterns)


def _fits(name: str, pattern: str) -> bool:
    # A name may hold the marks that patterns are made of.
    return name == pattern or fnmatchcase(name, pattern)


# How options of a collection are called where people read them.
_TOLD: Final = {
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

# What a view is; under another one its documents have nothing of those before.
_DEFINITION: Final = ("view_on", "pipeline")


def path_of(database: str, name: str) -> str:
    """The one text for a collection's name, whatever marks are in it."""
    return "/".join(quote(part, safe="") for part in (database, name))


def dataset_of(
    path: str, answer: CollectionSample, known: EarlierSchema | None, address: str
) -> FoundDataset:
    """A collection or view under the server's own names."""
    work = answer.work
    options: dict[str, Any] = msgspec.json.decode(work.options)
    told = SourceMetadata(properties=_properties(answer, options))
    schema = _schema(answer, options, told, known)
    return FoundDataset(
        path=path,
        name=f"{work.database}.{work.name}",
        format=work.kind,
        location=Location(uri=f"{address}/{path}", identity=work.identity),
        schema=schema,
        statistics=Statistics(
            row_count=answer.documents,
            total_size_bytes=answer.bytes or 0,
            total_size_exact=False,
        ),
        drift=(),
        content=_content(work.kind, told, schema),
        told=told,
    )


def _schema(
    answer: CollectionSample,
    options: dict[str, Any],
    told: SourceMetadata,
    known: EarlierSchema | None,
) -> Schema:
    validator = options.get("validator")
    rules = ValidatorRules.of(
        validator if isinstance(validator, dict) else {},
        # Otherwise documents may be as they like.
        enforced=options.get("validationAction", "error") != "warn"
        and options.get("validationLevel", "strict") == "strict",
    )
    has_key = answer.work.kind == "collection"
    observed = observed_schema(answer.seen, rules, has_key=has_key)
    if known is None:
        return with_key(observed) if has_key and not answer.seen.count else observed
    is_other = any(known.told.get(name) != told.properties.get(name) for name in _DEFINITION)
    # Of an empty collection nothing can be said, so that what was known stays.
    whole = (answer.whole or is_other) and answer.seen.count > 0
    return merge_with_known(observed, known.schema, whole=whole)


def _properties(answer: CollectionSample, options: dict[str, Any]) -> dict[str, str]:
    told = {
        name: each if isinstance(each, str) else msgspec.json.encode(mask_secrets(each)).decode()
        for option, name in _TOLD.items()
        if (each := options.get(option)) not in (None, {}, [])
    }
    if options.get("capped"):
        told["capped"] = _capped(options)
    if answer.shard_key is not None:
        told["shard_key"] = answer.shard_key
    told |= {f"index.{name}": text for name, text in answer.indexes.items()}
    return told


def _capped(options: dict[str, Any]) -> str:
    most = options.get("max")
    documents = f", {most} documents" if most else ""
    return f"{options.get('size', 0)} bytes{documents}"


def _content(format: str, told: SourceMetadata, schema: Schema) -> str:
    """A fingerprint of everything but the schema and the documents."""
    facts = {
        **told.properties,
        # Several types of BSON may be one type in the algebra.
        **{f" type {field.name}": field.native_type for field in schema.fields},
        " format": format,
    }
    return fingerprint(
        f"{quoted_text(name)} {quoted_text(text)}"
        for name, text in sorted(facts.items())
        if text is not None
    )
