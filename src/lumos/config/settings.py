"""The whole of lumos.yaml as frozen values."""

import enum
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Final, Literal

import msgspec
from msgspec import Meta, field

from lumos.config.costs import CostCalculation, CostModel
from lumos.config.notifications import Notifications
from lumos.config.owners import OwnerRules
from lumos.config.platforms import LOCAL, PlatformConfig, PlatformName
from lumos.config.secret import ConnectionString, Secret
from lumos.config.section import (
    INTERNAL,
    Address,
    Days,
    Location,
    Seconds,
    Section,
    Share,
    spelled,
)
from lumos.config.sources import DatasetHint, Names, Source
from lumos.config.sql_names import NAME_TEMPLATE, NAME_TEMPLATE_HELP, SqlName
from lumos.errors import MisuseError
from lumos.model.urn import DEFAULT_ENVIRONMENT
from lumos.model.version import DEFAULT_PREFIX

# Keys that may stand at the top although they belong to a section.
MOVED: Final = {
    "datahub": ["platform_config", "datahub"],
    "openmetadata": ["platform_config", "openmetadata"],
    "gms_server": ["platform_config", "datahub", "gms_server"],
}

_ENVIRONMENTS: Final = {"PRODUCTION": "PROD", "DEVELOPMENT": "DEV"}
_DEFAULT_PATHS: Final = {"sqlite": ".lumos/lumos.db", "file": "lumos_snapshots"}


class EventType(enum.StrEnum):
    """What a storage event says; S3's own spellings, such as `s3:ObjectRemoved:*`, are read too."""

    CREATED = "ObjectCreated"
    DELETED = "ObjectDeleted"

    @classmethod
    def _missing_(cls, value: object) -> "EventType | None":
        family = str(value).removeprefix("s3:").partition(":")[0]
        if family in ("ObjectDeleted", "ObjectRemoved", "LifecycleExpiration"):
            return cls.DELETED
        return cls.CREATED if family == "ObjectCreated" else None


class WatchedSource(Section, frozen=True, kw_only=True):
    """A source and how its changes are noticed; the keys of the source stand beside these."""

    rest: ClassVar[str | None] = "source"
    nested: ClassVar[str | None] = "config"

    source: Source
    watch_mode: Literal["events", "polling", "hybrid"] = "polling"
    polling_interval: Seconds = 300
    event_types: tuple[EventType, ...] = tuple(EventType)
    sqs_queue: str | None = None
    watch_tables: Annotated[
        bool | tuple[str, ...], Meta(description="true, false or a list of tables")
    ] = True


class ChangeDetection(Section, frozen=True, kw_only=True):
    """Which sources are watched between scans; only an `enabled: false` forbids it."""

    enabled: bool | None = None
    sources: tuple[WatchedSource, ...] = ()


class Storage(Section, frozen=True, kw_only=True):
    """Where Lumos keeps what it knows."""

    backend: Literal["sqlite", "postgres", "file"] = "sqlite"
    path: Location | None = None
    connection_string: ConnectionString | None = None
    # Events of new data alone; schema changes and all others are kept for good.
    modified_retention_days: Days = 90

    def __post_init__(self) -> None:
        if self.backend == "postgres" and self.connection_string is None:
            raise MisuseError("The backend postgres needs 'connection_string'.")
        if self.backend != "postgres" and self.connection_string is not None:
            raise MisuseError("'connection_string' is for the backend postgres; set 'backend' too.")
        if self.path is None and self.backend in _DEFAULT_PATHS:
            msgspec.structs.force_setattr(self, "path", _DEFAULT_PATHS[self.backend])


class Enforcement(Section, frozen=True, kw_only=True):
    """What happens when documentation is missing."""

    mode: Literal["block_on_missing", "warn_only"] = "warn_only"


class Exemption(Section, frozen=True, kw_only=True):
    """Datasets that need no documentation, and why."""

    pattern: str
    reason: str = ""


class DocumentationRules(Section, frozen=True, kw_only=True):
    """What has to be documented."""

    required_fields: Names = ()
    enforcement: Enforcement = Enforcement()
    exceptions: tuple[Exemption, ...] = ()


class QualityIntegration(Section, frozen=True, kw_only=True):
    """A tool whose results are taken over."""

    nested: ClassVar[str | None] = "config"

    type: str


class GreatExpectations(QualityIntegration, frozen=True, kw_only=True):
    """Validation results of Great Expectations."""

    type: Literal["great_expectations"] = "great_expectations"
    checkpoint_store: Location


class DbtTests(QualityIntegration, frozen=True, kw_only=True):
    """Test results of a dbt run."""

    type: Literal["dbt_tests"] = "dbt_tests"
    manifest_path: Location
    run_results_path: Location


class CustomApi(QualityIntegration, frozen=True, kw_only=True):
    """Results that a service of the company's own hands out."""

    type: Literal["custom_api"] = "custom_api"
    endpoint: Address
    token: Annotated[Secret | None, spelled(also=("auth_token",))] = None
    timeout: Seconds = 30


QUALITY_INTEGRATIONS: Final[dict[str, type[QualityIntegration]]] = {
    "great_expectations": GreatExpectations,
    "dbt_tests": DbtTests,
    "custom_api": CustomApi,
}


class Spark(Section, frozen=True, kw_only=True):
    """The Spark that scans run on; options named like secrets are kept as `Secret`."""

    master: str = "local[*]"
    config: dict[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value in self.config.items():
            if not isinstance(value, (str, int, float, Secret)):
                raise MisuseError(f"The Spark option '{name}' must be text, a number or a switch.")

    def properties(self) -> dict[str, str]:
        """The options as Spark takes them, secrets revealed."""
        return {name: _property(value) for name, value in self.config.items()}


class Scan(Section, frozen=True, kw_only=True):
    """What every scan of files keeps to, beside the source's own patterns."""

    file_patterns: Names = ()
    exclude: Names = ()
    max_removed_share: Share = 0.3
    column_stats: bool = False
    datasets: tuple[DatasetHint, ...] = ()
    # Whether the logs of Delta, Iceberg and Hudi are read; without it their files are loose ones.
    tables: bool = True
    # How many of a table's last commits are opened for the history of its schema.
    table_history: Annotated[int, Meta(ge=0, description="a number of commits, at least 0")] = (
        10_000
    )


class ProfileSettings(Section, frozen=True, kw_only=True):
    """What profiles may keep of the data; `values` are texts whose frequent values are told."""

    values: Names = ()


class UsageSettings(Section, frozen=True, kw_only=True):
    """How reads are kept that query logs tell of; `hashed` readers need a key."""

    readers: Literal["names", "hashed"] = "names"
    key: Secret | None = None
    retention_days: Days = 400

    def __post_init__(self) -> None:
        if self.readers == "hashed" and self.key is None:
            raise MisuseError("Hashed readers need a 'key', which keeps others from guessing them.")


class OlderSpelling(msgspec.Struct, frozen=True, kw_only=True):
    """A key that still works under a name of the past."""

    key: str
    instead: str
    line: int | None = None


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """Where settings were read from; `lines` tells where a section starts."""

    file: str | None = None
    folder: str = ""
    lines: dict[str, int] = field(default_factory=dict)
    older: tuple[OlderSpelling, ...] = ()


class Settings(Section, frozen=True, kw_only=True):
    """All settings; after loading, every local path in them is absolute."""

    nested: ClassVar[str | None] = "lumos_config"

    platform: Annotated[PlatformName, spelled(older=("default_platform",))] = LOCAL
    platform_config: PlatformConfig = PlatformConfig()
    environment: Annotated[
        str,
        Meta(
            pattern=r"^[A-Za-z][A-Za-z0-9_-]*$",
            description="a word such as production, staging or development",
        ),
    ] = DEFAULT_ENVIRONMENT
    features: dict[str, bool | tuple[str, ...]] = field(default_factory=dict)
    cloud_version_prefix: Annotated[
        str,
        Meta(
            # Neither 1.0.5 nor 2024-01-15 may be a cloud version: both mean something else.
            pattern=r"^(?!\d+\.\d+\.$)(?!\d{4}-\d\d-)([^\s\x00-\x1f\x7f@/]*[^\s\x00-\x1f\x7f@/\d])?\Z",
            description="text without blanks that does not end with a digit and makes no date and "
            "no schema version of a number, such as S-",
        ),
    ] = DEFAULT_PREFIX
    sources: tuple[Source, ...] = ()
    change_detection: ChangeDetection = ChangeDetection()
    storage: Storage = Storage()
    cost_model: CostModel = CostModel()
    cost_calculation: CostCalculation = CostCalculation()
    documentation: DocumentationRules = DocumentationRules()
    glossary_mappings: dict[str, str] = field(default_factory=dict)
    path_patterns: dict[str, str] = field(default_factory=dict)
    sql_names: tuple[SqlName, ...] = ()
    sql_name_from: (
        Annotated[str, Meta(pattern=NAME_TEMPLATE, description=NAME_TEMPLATE_HELP)] | None
    ) = None
    owners: OwnerRules = OwnerRules()
    quality_integrations: tuple[QualityIntegration, ...] = ()
    notifications: Notifications = Notifications()
    spark: Spark = Spark()
    state_uri: Location | None = None
    scan: Scan = Scan()
    profile: ProfileSettings = ProfileSettings()
    usage: UsageSettings = UsageSettings()
    origin: Annotated[Origin, Meta(extra={INTERNAL: True})] = Origin()

    def __post_init__(self) -> None:
        environment = self.environment.upper()
        environment = _ENVIRONMENTS.get(environment, environment)
        msgspec.structs.force_setattr(self, "environment", environment)

    def shown(self) -> dict[str, Any]:
        """Plain values for people and JSON, secrets masked."""
        plain = msgspec.json.decode(msgspec.json.encode(self, enc_hook=_masked))
        return {name: value for name, value in plain.items() if name != "origin"}


def moved(path: Sequence[str]) -> list[str]:
    """Where a path of keys leads that may begin with a key which was moved."""
    first, *rest = path
    return [*MOVED.get(first, [first]), *rest]


def _masked(value: object) -> str:
    if isinstance(value, Secret):
        return str(value)
    raise TypeError(f"A {type(value).__name__} is no value of a configuration.")


def _property(value: object) -> str:
    if isinstance(value, Secret):
        return value.reveal()
    return str(value).lower() if isinstance(value, bool) else str(value)
