"""Converts names and texts between OpenMetadata and Lumos without loss.

`lumos://snowflake@eu/SALES/PUBLIC/orders` is the table `"snowflake@eu".SALES.PUBLIC.orders`, and
`lumos://s3/lake/raw/orders.v2` the container `s3.lake."raw/orders.v2"`. Characters that
OpenMetadata rejects in names are percent-encoded.

Descriptions are HTML that the server sanitizes. Plain text is escaped when it is sent, so that the
server does not change `a < b` or `x<y>z`, and unescaped when it is read; markup of users is read
unchanged.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from html import entities
from typing import Final, NamedTuple

from lumos.catalogs.escaping import PercentEscaping
from lumos.errors import MisuseError
from lumos.model.json_codec import to_json
from lumos.model.urn import DEFAULT_ENVIRONMENT, SCHEME, InvalidUrn, Urn


class DatasetType(NamedTuple):
    """An entity type of datasets: its routes, and its possible depths below a service.

    `custom` is the service type for platforms that OpenMetadata does not have.
    """

    type: str
    route: str
    services: str
    custom: str
    depths: tuple[int, ...]


DATASET_TYPES: Final = {
    entity_type.type: entity_type
    for entity_type in (
        DatasetType("table", "tables", "databaseServices", "CustomDatabase", (3,)),
        DatasetType("container", "containers", "storageServices", "CustomStorage", (1, 2)),
        DatasetType("topic", "topics", "messagingServices", "CustomMessaging", (1,)),
    )
}
_STORAGE_PLATFORMS: Final = frozenset(
    {"s3", "gcs", "abs", "adls", "adlsgen2", "hdfs", "file", "minio", "oss", "r2", "azure", "local"}
)
_MESSAGING_PLATFORMS: Final = frozenset(
    {"kafka", "pulsar", "kinesis", "redpanda", "pubsub", "eventhubs"}
)
# Types of services as of OpenMetadata 1.5; any other platform is a custom one.
_SERVICE_TYPES: Final = {
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
_PLATFORMS: Final = {type: platform for platform, type in _SERVICE_TYPES.items()}


def dataset_type_of(platform: str) -> DatasetType:
    if platform in _STORAGE_PLATFORMS:
        return DATASET_TYPES["container"]
    return DATASET_TYPES["topic" if platform in _MESSAGING_PLATFORMS else "table"]


def service_type_of(platform: str) -> str:
    return _SERVICE_TYPES.get(platform, dataset_type_of(platform).custom)


def platform_of_service(type: str) -> str | None:
    """The platform of a service type, or None for custom types."""
    if type in _PLATFORMS:
        return _PLATFORMS[type]
    is_custom = any(type == entity_type.custom for entity_type in DATASET_TYPES.values())
    return None if is_custom else type.lower()


MAX_NAME_LENGTH: Final = 256
LUMOS_SERVICE: Final = "lumos"
"""The service for entities that OpenMetadata has no type for; it contains no datasets."""
_WRAPPER_PLATFORM: Final = "openmetadata"
_WRAPPED: Final = re.compile(rf"(?P<home>{'|'.join(DATASET_TYPES)}):(?P<fqn>.+)\Z", re.DOTALL)
_EMPTY: Final = "%_"
_DEFAULT: Final = "default"
_ESCAPED_DEFAULT: Final = re.compile(r"%(?P<more>(?:25)*)64efault\Z")
_ESCAPED_LUMOS: Final = "%6Cumos"
# The server rejects line breaks and double colons and does not find names with quotes; its database
# rejects NUL.
_REJECTED_CHARACTERS: Final = '">\x7f\x85\u2028\u2029' + "".join(map(chr, range(32)))
_SERVICE: Final = re.compile(
    r"(?P<platform>[a-z][a-z0-9_.+-]*)(?:@(?P<instance>.+?))?(?:\?env=(?P<environment>[A-Z][A-Z0-9_-]*))?\Z",
    re.DOTALL,
)
_SHORTENED_NAME: Final = re.compile(r".{1,230}~[0-9a-f]{16}\Z", re.DOTALL)
_SHORTENED_HEAD_LENGTH: Final = 230
_PART: Final = re.compile(r'"((?:[^"]|"")*)"(?=\.|\Z)|([^.]*)', re.DOTALL)


class Service(NamedTuple):
    """A service in the catalog; `route` distinguishes services of databases from others."""

    route: str
    name: str
    type: str


class EntityLocation(NamedTuple):
    """The entity type of a dataset, and the parts of its qualified name, the service first."""

    type: str
    parts: tuple[str, ...]

    @property
    def fqn(self) -> str:
        return join_fqn(*self.parts)

    @property
    def route(self) -> str:
        return DATASET_TYPES[self.type].route

    @property
    def is_shortened(self) -> bool:
        return any(_SHORTENED_NAME.match(part) for part in self.parts)


class _Origin(NamedTuple):
    """The platform, instance and environment of the datasets in a service."""

    platform: str
    instance: str = ""
    environment: str = DEFAULT_ENVIRONMENT


def _escaping(characters: str = "") -> PercentEscaping:
    return PercentEscaping(
        _REJECTED_CHARACTERS + characters, pattern="::+", reserved=["%3A"], empty=_EMPTY
    )


_NAMES: Final = _escaping()
_INSTANCES: Final = _escaping("?")
_SEGMENTS: Final = _escaping("/")


def encode_name(text: str) -> str:
    """Encode a text as a name of any length."""
    return _NAMES.encode(text)


def decode_name(name: str) -> str:
    return _NAMES.decode(name)


def shorten_name(name: str) -> str:
    """Replace the end of a name that is too long for OpenMetadata by a hash."""
    if _utf16_length(name) <= MAX_NAME_LENGTH:
        return name
    head = name[:_SHORTENED_HEAD_LENGTH]
    while _utf16_length(head) > _SHORTENED_HEAD_LENGTH:
        head = head[:-1]
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{head}~{digest}"


def join_fqn(*parts: str) -> str:
    doubled = (part.replace('"', '""') for part in parts)
    return ".".join(f'"{part}"' if "." in part or '"' in part else part for part in doubled)


def split_fqn(fqn: str) -> tuple[str, ...]:
    parts, offset = [], 0
    while True:
        match = _PART.match(fqn, offset)
        assert match is not None, f"cannot split {fqn!r}"
        parts.append(match[2] if match[1] is None else match[1].replace('""', '"'))
        offset = match.end() + 1
        if offset > len(fqn):
            return tuple(parts)


def is_dataset_urn(name: str) -> bool:
    """Whether a text is the URN of a dataset, and not of another entity."""
    return name.startswith(SCHEME)


def _utf16_length(text: str) -> int:
    """The length of a text in UTF-16 units, as the server counts it."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


class OpenMetadataNames:
    """The names of datasets in one catalog, given its services.

    `meanings` are the configured platforms and instances of services that are not named like them,
    such as `{"snowflake_prod": "snowflake", "lake": "s3@eu"}`.
    """

    def __init__(
        self, services: Iterable[Service] = (), meanings: Mapping[str, str] | None = None
    ) -> None:
        self._origins: dict[tuple[str, str], _Origin] = {}
        self._services: dict[_Origin, str] = {}
        configured = {name: _parse_origin(text) for name, text in (meanings or {}).items()}
        known = sorted(service for service in services if service.name != LUMOS_SERVICE)
        # Configured origins take precedence, then services named by Lumos, then all others.
        for service in known:
            self._add_service(service, configured.get(service.name))
        others = [service for service in known if service.name not in configured]
        for service in others:
            self._add_service(service, _lumos_origin(service))
        for service in others:
            if (platform := platform_of_service(service.type)) is not None:
                self._add_service(service, _Origin(platform, service.name))

    def _add_service(self, service: Service, origin: _Origin | None) -> None:
        is_new = (service.route, service.name) not in self._origins
        if origin is None or not is_new or origin in self._services:
            return
        if dataset_type_of(origin.platform).services == service.route:
            self._origins[service.route, service.name] = origin
            self._services[origin] = service.name

    def locate(self, urn: Urn) -> EntityLocation:
        """The location of a dataset, whether or not it exists."""
        if (wrapped := self._wrapped_location(urn)) is not None:
            return wrapped
        origin = _Origin(urn.platform, urn.instance, urn.environment)
        entity_type = dataset_type_of(urn.platform)
        service = self._services.get(origin) or shorten_name(_service_name(origin))
        # Four names of the maximum length are still a valid qualified name.
        return EntityLocation(
            entity_type.type,
            (service, *map(shorten_name, _names_below_service(entity_type, urn.path))),
        )

    def urn(self, location: EntityLocation) -> Urn:
        """The URN of the dataset at a location.

        If `locate` would not return the same location for it, the URN contains the location, as in
        `lumos://openmetadata/table:...`.
        """
        origin = self._origin(location)
        path = _path_of_names(DATASET_TYPES[location.type], location.parts[1:]) if origin else None
        if origin is not None and path is not None:
            try:
                urn = Urn.of(
                    origin.platform, path, instance=origin.instance, environment=origin.environment
                )
                if self.locate(urn) == location:
                    return urn
            except InvalidUrn:
                pass
        return Urn(_WRAPPER_PLATFORM, (f"{location.type}:{location.fqn}",))

    def service_type(self, location: EntityLocation) -> str:
        origin = self._origin(location)
        entity_type = DATASET_TYPES[location.type]
        return entity_type.custom if origin is None else service_type_of(origin.platform)

    def _origin(self, location: EntityLocation) -> _Origin | None:
        entity_type, name = DATASET_TYPES[location.type], location.parts[0]
        if (known := self._origins.get((entity_type.services, name))) is not None:
            return known
        origin_in_name = _origin_in_name(name)
        # Only one service can have an origin.
        return (
            None if origin_in_name is None or origin_in_name in self._services else origin_in_name
        )

    def _wrapped_location(self, urn: Urn) -> EntityLocation | None:
        if urn != Urn(_WRAPPER_PLATFORM, urn.path) or len(urn.path) != 1:
            return None
        if (match := _WRAPPED.match(urn.path[0])) is None:
            return None
        location = EntityLocation(match["home"], split_fqn(match["fqn"]))
        return location if location.fqn == match["fqn"] and self.urn(location) == urn else None


def _parse_origin(text: str) -> _Origin:
    origin = _origin_in_name(text)
    if origin is None:
        raise MisuseError(
            f"Invalid platform '{text}' under platform_config.openmetadata.services. Use a "
            "platform such as snowflake, s3@eu or postgres@eu?env=DEV."
        )
    return origin


def _lumos_origin(service: Service) -> _Origin | None:
    """The origin of a service that has the name Lumos would use, or None."""
    origin = _origin_in_name(service.name)
    if origin is None:
        return None
    expected_types = {service_type_of(origin.platform), dataset_type_of(origin.platform).custom}
    is_of_type = (
        service.type in expected_types or platform_of_service(service.type) == origin.platform
    )
    return origin if is_of_type else None


def _service_name(origin: _Origin) -> str:
    name = _ESCAPED_LUMOS if origin.platform == LUMOS_SERVICE else origin.platform
    if origin.instance:
        name += f"@{_INSTANCES.encode(origin.instance)}"
    if origin.environment != DEFAULT_ENVIRONMENT:
        name += f"?env={origin.environment}"
    return name


def _origin_in_name(name: str) -> _Origin | None:
    plain = (
        name.replace(_ESCAPED_LUMOS, LUMOS_SERVICE, 1) if name.startswith(_ESCAPED_LUMOS) else name
    )
    if (match := _SERVICE.match(plain)) is None:
        return None
    origin = _Origin(
        match["platform"],
        _INSTANCES.decode(match["instance"] or ""),
        match["environment"] or DEFAULT_ENVIRONMENT,
    )
    return origin if _service_name(origin) == name else None


def _names_below_service(entity_type: DatasetType, path: tuple[str, ...]) -> tuple[str, ...]:
    """The names below the service for the path of a URN."""
    segments = tuple(map(_SEGMENTS.encode, path))
    match entity_type.type:
        case "table":
            match segments:
                case (name,):
                    return (_DEFAULT, _DEFAULT, name)
                case (schema, name):
                    return (_DEFAULT, _escape_default(schema), name)
                case (database, schema, *names):
                    return (_escape_default(database), schema, "/".join(names))
                case _:
                    return ()
        case "container":
            bucket, *names = segments
            return (bucket, "/".join(names)) if names else (bucket,)
        case _:
            return ("/".join(segments),)


def _escape_default(name: str) -> str:
    """Escape the name `default`, which represents a missing database or schema."""
    if name == _DEFAULT:
        return "%64efault"
    return f"%25{name[1:]}" if _ESCAPED_DEFAULT.match(name) else name


def _unescape_default(name: str) -> str:
    if (match := _ESCAPED_DEFAULT.match(name)) is None:
        return name
    return f"%{name[3:]}" if match["more"] else _DEFAULT


def _path_of_names(entity_type: DatasetType, parts: tuple[str, ...]) -> tuple[str, ...] | None:
    """The path of a URN for the names below the service, or None if their number is wrong."""
    if len(parts) not in entity_type.depths:
        return None
    match entity_type.type:
        case "table":
            database, schema, name = parts
            if database != _DEFAULT:
                segments = (_unescape_default(database), schema, *name.split("/"))
            elif schema != _DEFAULT:
                segments = (_unescape_default(schema), name)
            else:
                segments = (name,)
        case _:
            segments = tuple(part for name in parts for part in name.split("/"))
    return tuple(map(_SEGMENTS.decode, segments))


def service_of_tool(tool: str, cluster: str = "") -> str:
    """The name of the service for a tool such as an orchestrator, in one of its clusters."""
    name = _INSTANCES.encode(tool) + (f"?env={encode_name(cluster)}" if cluster else "")
    return shorten_name(_ESCAPED_LUMOS if name == LUMOS_SERVICE else name)


def tool_of_service(service: str) -> tuple[str, str]:
    """The tool and the cluster of a service; the default cluster is empty."""
    tool, _, cluster = service.partition("?env=")
    return LUMOS_SERVICE if service == _ESCAPED_LUMOS else _INSTANCES.decode(tool), decode_name(
        cluster
    )


_ESCAPES: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
# Inserted by the server between two braces, against template injection.
_BETWEEN_BRACES: Final = "<!-- -->"
# `html.unescape` would drop characters that the server keeps.
_REFERENCE: Final = re.compile(
    r"&(?:#(?P<decimal>\d{1,7})|#[xX](?P<hex>[0-9a-fA-F]{1,6})|(?P<name>\w+));"
)
_LOST: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def escape_html(text: str) -> str:
    return text.translate(_ESCAPES)


def unescape_html(text: str) -> str:
    return _REFERENCE.sub(_character, text.replace(_BETWEEN_BRACES, ""))


def has_markup(text: str) -> bool:
    """Whether a text of the server contains HTML, which Lumos would escape."""
    return "<" in text.replace(_BETWEEN_BRACES, "")


def is_same_text(one: str | None, other: str | None) -> bool:
    """Whether two texts of the server are equal, even if one has `&#39;` instead of `'`."""
    sides = [(unescape_html(each or ""), has_markup(each or "")) for each in (one, other)]
    return sides[0] == sides[1]


def without_lost_characters(text: str) -> str:
    """A text without the characters that are invalid in XML, which the server drops."""
    return _LOST.sub("", text)


def _character(reference: re.Match[str]) -> str:
    if (name := reference["name"]) is not None:
        return entities.html5.get(f"{name};", reference.group())
    number = int(reference["decimal"]) if reference["decimal"] else int(reference["hex"], 16)
    return chr(number) if number <= 0x10FFFF else reference.group()


def without_nul(text: str) -> str:
    """A text without NUL, which the server's database rejects."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")


def encode_own_text(text: str) -> str:
    """Encode a text so that the server returns it unchanged: as JSON if it contains NUL."""
    return text if without_nul(text) == text else to_json(text).decode()
