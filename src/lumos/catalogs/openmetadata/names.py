"""Names in OpenMetadata and in Lumos, from one to the other and back without loss.

`lumos://snowflake@eu/SALES/PUBLIC/orders` is the table `"snowflake@eu".SALES.PUBLIC.orders`, and
`lumos://s3/lake/raw/orders.v2` the container `s3.lake."raw/orders.v2"`. What OpenMetadata does not
take in a name is percent-encoded; text that only looks encoded gets another `25`, so that every
text has one spelling.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple
from urllib.parse import unquote

from lumos.errors import MisuseError
from lumos.model.urn import DEFAULT_ENVIRONMENT, InvalidUrn, Urn


class EntityContainer(NamedTuple):
    """A kind of entity: its routes, and how deep below its service it may lie.

    `custom` is the type of a service that OpenMetadata has no type for.
    """

    type: str
    route: str
    services: str
    custom: str
    depths: tuple[int, ...]


HOMES: Final = {
    home.type: home
    for home in (
        EntityContainer("table", "tables", "databaseServices", "CustomDatabase", (3,)),
        EntityContainer("container", "containers", "storageServices", "CustomStorage", (1, 2)),
        EntityContainer("topic", "topics", "messagingServices", "CustomMessaging", (1,)),
    )
}
_STORAGES: Final = frozenset(
    {"s3", "gcs", "abs", "adls", "adlsgen2", "hdfs", "file", "minio", "oss", "r2", "azure", "local"}
)
_BROKERS: Final = frozenset({"kafka", "pulsar", "kinesis", "redpanda", "pubsub", "eventhubs"})
# Types of services as of OpenMetadata 1.5; any other platform is a custom one.
_TYPES: Final = {
    "athena": "Athena", "bigquery": "BigQuery", "cassandra": "Cassandra",
    "clickhouse": "Clickhouse",
    "couchbase": "Couchbase", "databricks": "Databricks", "db2": "Db2", "delta-lake": "DeltaLake",
    "doris": "Doris", "druid": "Druid", "dynamodb": "DynamoDB", "glue": "Glue",
    "greenplum": "Greenplum", "hana": "SapHana", "hive": "Hive", "impala": "Impala",
    "mariadb": "MariaDB", "mongodb": "MongoDB", "mssql": "Mssql", "mysql": "Mysql",
    "oracle": "Oracle", "postgres": "Postgres", "presto": "Presto", "redshift": "Redshift",
    "singlestore": "SingleStore", "snowflake": "Snowflake", "sqlite": "SQLite",
    "teradata": "Teradata", "trino": "Trino", "unity-catalog": "UnityCatalog",
    "vertica": "Vertica", "datalake": "Datalake", "iceberg": "Iceberg",
    "s3": "S3", "gcs": "GCS", "adls": "ADLS",
    "kafka": "Kafka", "kinesis": "Kinesis", "redpanda": "Redpanda",
}  # fmt: skip
_PLATFORMS: Final = {type: platform for platform, type in _TYPES.items()}


def home_of(platform: str) -> EntityContainer:
    """The kind of entity that datasets of a platform are."""
    if platform in _STORAGES:
        return HOMES["container"]
    return HOMES["topic" if platform in _BROKERS else "table"]


def type_of(platform: str) -> str:
    """The type of a platform's services."""
    return _TYPES.get(platform, home_of(platform).custom)


def platform_of(type: str) -> str | None:
    """The platform that services of a type stand for, if they are not custom ones."""
    if type in _PLATFORMS:
        return _PLATFORMS[type]
    is_custom = any(type == home.custom for home in HOMES.values())
    return None if is_custom else type.lower()


LONGEST_NAME: Final = 256
OWN_SERVICE: Final = "lumos"
"""The service that holds what OpenMetadata has no place for; nothing in it is a dataset."""
_HATCH: Final = "openmetadata"
_HATCHED: Final = re.compile(rf"(?P<home>{'|'.join(HOMES)}):(?P<fqn>.+)\Z", re.DOTALL)
_EMPTY: Final = "%_"
_DEFAULT: Final = "default"
_ESCAPED_DEFAULT: Final = re.compile(r"%(?P<more>(?:25)*)64efault\Z")
_ESCAPED_OWN: Final = "%6Cumos"
# The server refuses line breaks and two colons, cannot find quotes again, and its database takes
# no NUL.
_REFUSED: Final = '">\x7f\x85\u2028\u2029' + "".join(map(chr, range(32)))
_SERVICE: Final = re.compile(
    r"(?P<platform>[a-z][a-z0-9_.+-]*)(?:@(?P<instance>.+?))?(?:\?env=(?P<environment>[A-Z][A-Z0-9_-]*))?\Z",
    re.DOTALL,
)
_SHORTENED: Final = re.compile(r".{1,230}~[0-9a-f]{16}\Z", re.DOTALL)
_HEAD: Final = 230
_PART: Final = re.compile(r'"((?:[^"]|"")*)"(?=\.|\Z)|([^.]*)', re.DOTALL)


class Service(NamedTuple):
    """A service as the catalog has it; `route` tells services of databases from others."""

    route: str
    name: str
    type: str


class EntityLocation(NamedTuple):
    """Where a dataset is: its kind of home, and its name part by part, the service first."""

    home: str
    parts: tuple[str, ...]

    @property
    def fqn(self) -> str:
        return joined(*self.parts)

    @property
    def is_shortened(self) -> bool:
        """Whether some part is only the beginning of what it stands for."""
        return any(_SHORTENED.match(part) for part in self.parts)


class _Origin(NamedTuple):
    """What a service stands for."""

    platform: str
    instance: str = ""
    environment: str = DEFAULT_ENVIRONMENT


class _Spelling:
    """One spelling for each text: some characters percent-encoded, and no others."""

    def __init__(self, encoded: str = "") -> None:
        characters = f"{_REFUSED}{encoded}"
        ends = [_percent(character)[1:] for character in characters]
        ends += ["ED%[AB][0-9A-F]%[89AB][0-9A-F]", "3A", "_"]
        self._escapes = re.compile(f"%((?:25)*)(?:{'|'.join(ends)})")
        self._characters = re.compile(f"[{re.escape(characters)}\ud800-\udfff]|::+")

    def encoded(self, text: str) -> str:
        if not text:
            return _EMPTY
        guarded = self._escapes.sub(lambda match: f"%25{match.group()[1:]}", text)
        return self._characters.sub(lambda match: _percent(match.group()), guarded)

    def decoded(self, text: str) -> str:
        return self._escapes.sub(_plain, text)


def _percent(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode("utf-8", "surrogatepass"))


def _plain(match: re.Match[str]) -> str:
    if match[1]:
        return f"%{match.group()[3:]}"
    if match.group() == _EMPTY:
        return ""
    return unquote(match.group(), errors="surrogatepass")


_NAMES: Final = _Spelling()
_INSTANCES: Final = _Spelling("?")
_SEGMENTS: Final = _Spelling("/")


def spelled(text: str) -> str:
    """A text as a name that OpenMetadata takes, however long."""
    return _NAMES.encoded(text)


def meant(name: str) -> str:
    """The text that a name stands for."""
    return _NAMES.decoded(name)


def shortened(name: str) -> str:
    """A name that OpenMetadata takes; the end of a long one becomes a hash."""
    if _units(name) <= LONGEST_NAME:
        return name
    head = name[:_HEAD]
    while _units(head) > _HEAD:
        head = head[:-1]
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{head}~{digest}"


def quoted(part: str) -> str:
    """A part as it stands in a qualified name."""
    doubled = part.replace('"', '""')
    return f'"{doubled}"' if "." in part or '"' in part else part


def joined(*parts: str) -> str:
    """The qualified name of some parts."""
    return ".".join(map(quoted, parts))


def split(fqn: str) -> tuple[str, ...]:
    """The parts of a qualified name."""
    parts, offset = [], 0
    while True:
        match = _PART.match(fqn, offset)
        assert match is not None, "a part may be empty"
        parts.append(match[2] if match[1] is None else match[1].replace('""', '"'))
        offset = match.end() + 1
        if offset > len(fqn):
            return tuple(parts)


def _units(text: str) -> int:
    """The length of a text as the server counts it."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


class OpenMetadataNames:
    """The names of datasets in one catalog, given the services that it has.

    `meanings` says what services stand for that are not named as Lumos would name them:
    `{"snowflake_prod": "snowflake", "lake": "s3@eu"}`.
    """

    def __init__(
        self, services: Iterable[Service] = (), meanings: Mapping[str, str] | None = None
    ) -> None:
        self._origins: dict[tuple[str, str], _Origin] = {}
        self._services: dict[_Origin, str] = {}
        told = {name: _stated(text) for name, text in (meanings or {}).items()}
        known = sorted(service for service in services if service.name != OWN_SERVICE)
        # What people say goes first, then what Lumos named, then what the catalog had before.
        for service in known:
            self._learn(service, told.get(service.name))
        for reading in (_own, _foreign):
            for service in known:
                if service.name not in told:
                    self._learn(service, reading(service))

    def _learn(self, service: Service, origin: _Origin | None) -> None:
        is_new = (service.route, service.name) not in self._origins
        if origin is None or not is_new or origin in self._services:
            return
        if home_of(origin.platform).services == service.route:
            self._origins[service.route, service.name] = origin
            self._services[origin] = service.name

    def place(self, urn: Urn) -> EntityLocation:
        """Where a dataset is, or would be."""
        if (hatched := self._hatched(urn)) is not None:
            return hatched
        origin = _Origin(urn.platform, urn.instance, urn.environment)
        home = home_of(urn.platform)
        service = self._services.get(origin) or shortened(_service_name(origin))
        # Four parts of the longest names are still a qualified name that the server takes.
        return EntityLocation(home.type, (service, *map(shortened, _parts(home, urn.path))))

    def urn(self, place: EntityLocation) -> Urn:
        """The dataset at a place; one that Lumos would put elsewhere is named by its place."""
        origin = self._origin(place)
        path = _path(HOMES[place.home], place.parts[1:]) if origin else None
        if origin is not None and path is not None:
            try:
                urn = Urn.of(
                    origin.platform, path, instance=origin.instance, environment=origin.environment
                )
                if self.place(urn) == place:
                    return urn
            except InvalidUrn:
                pass
        return Urn(_HATCH, (f"{place.home}:{place.fqn}",))

    def service_type(self, place: EntityLocation) -> str:
        """The type that a place's service is made with."""
        origin = self._origin(place)
        home = HOMES[place.home]
        return home.custom if origin is None else type_of(origin.platform)

    def _origin(self, place: EntityLocation) -> _Origin | None:
        home, name = HOMES[place.home], place.parts[0]
        if (known := self._origins.get((home.services, name))) is not None:
            return known
        own = _spelled_by_lumos(name)
        # Another service stands for this one already.
        return None if own is None or own in self._services else own

    def _hatched(self, urn: Urn) -> EntityLocation | None:
        if urn != Urn(_HATCH, urn.path) or len(urn.path) != 1:
            return None
        if (match := _HATCHED.match(urn.path[0])) is None:
            return None
        place = EntityLocation(match["home"], split(match["fqn"]))
        return place if place.fqn == match["fqn"] and self.urn(place) == urn else None


def _stated(text: str) -> _Origin:
    origin = _spelled_by_lumos(text)
    if origin is None:
        raise MisuseError(
            f"'{text}' under platform_config.openmetadata.services is no platform, such as "
            "snowflake, s3@eu or postgres@eu?env=DEV."
        )
    return origin


def _own(service: Service) -> _Origin | None:
    """What a service stands for that Lumos would have named the same."""
    origin = _spelled_by_lumos(service.name)
    if origin is None:
        return None
    fits = {type_of(origin.platform), home_of(origin.platform).custom}
    is_of_type = service.type in fits or platform_of(service.type) == origin.platform
    return origin if is_of_type else None


def _foreign(service: Service) -> _Origin | None:
    platform = platform_of(service.type)
    return None if platform is None else _Origin(platform, service.name)


def _service_name(origin: _Origin) -> str:
    name = _ESCAPED_OWN if origin.platform == OWN_SERVICE else origin.platform
    if origin.instance:
        name += f"@{_INSTANCES.encoded(origin.instance)}"
    if origin.environment != DEFAULT_ENVIRONMENT:
        name += f"?env={origin.environment}"
    return name


def _spelled_by_lumos(name: str) -> _Origin | None:
    plain = name.replace(_ESCAPED_OWN, OWN_SERVICE, 1) if name.startswith(_ESCAPED_OWN) else name
    if (match := _SERVICE.match(plain)) is None:
        return None
    origin = _Origin(
        match["platform"],
        _INSTANCES.decoded(match["instance"] or ""),
        match["environment"] or DEFAULT_ENVIRONMENT,
    )
    return origin if _service_name(origin) == name else None


def _parts(home: EntityContainer, path: tuple[str, ...]) -> tuple[str, ...]:
    """The names below the service for a path."""
    segments = tuple(map(_SEGMENTS.encoded, path))
    match home.type:
        case "table":
            match segments:
                case (name,):
                    return (_DEFAULT, _DEFAULT, name)
                case (schema, name):
                    return (_DEFAULT, _apart(schema), name)
                case (database, schema, *names):
                    return (_apart(database), schema, "/".join(names))
                case _:
                    return ()
        case "container":
            bucket, *names = segments
            return (bucket, "/".join(names)) if names else (bucket,)
        case _:
            return ("/".join(segments),)


def _apart(name: str) -> str:
    """A name that is no `default` of OpenMetadata's own."""
    if name == _DEFAULT:
        return "%64efault"
    return f"%25{name[1:]}" if _ESCAPED_DEFAULT.match(name) else name


def _not_apart(name: str) -> str:
    if (match := _ESCAPED_DEFAULT.match(name)) is None:
        return name
    return f"%{name[3:]}" if match["more"] else _DEFAULT


def _path(home: EntityContainer, parts: tuple[str, ...]) -> tuple[str, ...] | None:
    """The path for the names below the service, or nothing where there should be others."""
    if len(parts) not in home.depths:
        return None
    match home.type:
        case "table":
            database, schema, name = parts
            if database != _DEFAULT:
                segments = (_not_apart(database), schema, *name.split("/"))
            elif schema != _DEFAULT:
                segments = (_not_apart(schema), name)
            else:
                segments = (name,)
        case _:
            segments = tuple(part for name in parts for part in name.split("/"))
    return tuple(map(_SEGMENTS.decoded, segments))


def service_of_tool(tool: str, cluster: str = "") -> str:
    """The name of the service for a tool such as an orchestrator, in one of its clusters."""
    name = _INSTANCES.encoded(tool) + (f"?env={spelled(cluster)}" if cluster else "")
    return shortened(_ESCAPED_OWN if name == OWN_SERVICE else name)


def tool_of_service(service: str) -> tuple[str, str]:
    """The tool and the cluster that a service stands for; no cluster is the usual one."""
    tool, _, cluster = service.partition("?env=")
    return OWN_SERVICE if service == _ESCAPED_OWN else _INSTANCES.decoded(tool), meant(cluster)
