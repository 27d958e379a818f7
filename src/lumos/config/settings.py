"""All settings of lumos.yaml as frozen values; other modules define the larger sections."""

import enum
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

import msgspec
from msgspec import Meta, field

from lumos.config.airflow import AirflowSettings
from lumos.config.costs import CostCalculation, CostModel
from lumos.config.gate import GateSettings
from lumos.config.jobs import JobSettings
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
    alternative_names,
)
from lumos.config.server import ServerSettings
from lumos.config.sources import DatasetHint, Names, SourceSettings
from lumos.config.sql_names import NAME_TEMPLATE, NAME_TEMPLATE_HELP, SqlName
from lumos.config.subscribers import ChangeFilter, Subscriber
from lumos.config.switches import Switches
from lumos.errors import MisuseError, UnknownName, did_you_mean
from lumos.model.cron import parse_cron, parse_timezone
from lumos.model.notification import SUBSCRIBER_PREFIX
from lumos.model.quiet_hours import parse_quiet_hours
from lumos.model.urn import DEFAULT_ENVIRONMENT
from lumos.model.version import DEFAULT_PREFIX

OwnerKind: TypeAlias = Literal["user", "group"]

# Owners whose names end with one of these words are groups, unless groups are configured.
_DEFAULT_GROUP_PATTERNS: Final = tuple(
    f"{start}{word}{end}"
    for word in ("team", "group", "squad", "guild", "chapter")
    for start in ("", "*[-_ .]")
    for end in ("", "s")
)


class OwnerRules(Section, frozen=True, kw_only=True):
    """Rules for which owners are groups or users, unless a file says it; `*` is a wildcard."""

    groups: Names | None = None
    users: Names = ()

    def __post_init__(self) -> None:
        groups = self.groups or ()
        if not all(pattern.strip() for pattern in (*groups, *self.users)):
            raise MisuseError("An owner name or pattern is empty.")
        both = {name.casefold() for name in groups} & {name.casefold() for name in self.users}
        if both:
            raise MisuseError(
                f"'{min(both)}' is listed under 'groups' and 'users'. Remove it from one of them."
            )

    def configured_kind(self, name: str) -> OwnerKind | None:
        """The configured kind of an owner; users take precedence over groups."""
        if _matches_any(name, self.users):
            return "user"
        return "group" if _matches_any(name, self.groups or ()) else None

    def kind(self, name: str) -> OwnerKind:
        """The kind of an owner: the configured one, else guessed from the name."""
        default_patterns = _DEFAULT_GROUP_PATTERNS if self.groups is None else ()
        return self.configured_kind(name) or (
            "group" if _matches_any(name, default_patterns) else "user"
        )


def _matches_any(name: str, patterns: Names) -> bool:
    folded = name.casefold()
    return any(fnmatchcase(folded, pattern.casefold()) for pattern in patterns)


# The placeholders of message templates.
PLACEHOLDERS: Final = (
    "dataset_name",
    "urn",
    "location",
    "owner_name",
    "event",
    "event_id",
    "verdict",
    "summary",
    "changes",
    "blast_radius",
    "affected",
    "affected_owners",
    "schema_version",
    "cloud_version",
    "time",
)
# Text with quotes is not matched: it is JSON, which has braces too.
_BRACED_TEXT: Final = re.compile(r"\{\{[^{}]*\}\}|\{([^{}\"\n]*)\}")
PLACEHOLDER: Final = re.compile(r"\{\{([A-Za-z_]\w*)\}\}|\{([A-Za-z_]\w*)\}", re.ASCII)

_TITLE: Final = "{dataset_name} {schema_version}: {verdict}"
_TEMPLATE: Final = """\
{event}: {summary}
{changes}
{blast_radius}
{affected}
{urn} {cloud_version}
{location}
owner: {owner_name}
{time}"""


class ChangeRule(ChangeFilter, frozen=True, kw_only=True):
    """A rule that sends changes to channels, with the template of the message.

    By default, `events` are those with schema changes.
    """

    channels: Annotated[Names, Meta(min_length=1), alternative_names(singular=("channel",))]
    title: str = _TITLE
    template: str = _TEMPLATE

    def __post_init__(self) -> None:
        super().__post_init__()
        for text in (self.title, self.template):
            _check_placeholders(text)


ReminderKind: TypeAlias = Literal["missing_docs", "digest"]
DATASET_OWNER: Final = "dataset_owner"
# The placeholders of a reminder that have a value for each dataset, and all its placeholders.
DATASET_PLACEHOLDERS: Final = (
    "dataset_name",
    "urn",
    "location",
    "missing",
    "undocumented_since",
    "deprecation_date",
)
_REMINDER_PLACEHOLDERS: Final[dict[str, tuple[str, ...]]] = {
    "missing_docs": (
        "owner_name",
        "catalog_url",
        "dataset_count",
        "deprecation_tag",
        "deprecate_after_days",
        "time",
        *DATASET_PLACEHOLDERS,
    ),
    "digest": (
        "owner_name",
        "catalog_url",
        "since",
        "change_count",
        "breaking_count",
        "breaking",
        "changes",
        "time",
    ),
}
# Placeholders in the address of a channel, so that each owner has a separate mailbox.
OWNER_IN_ADDRESS: Final = ("{owner_email}", "{owner_name}")


class Reminder(Section, frozen=True, kw_only=True):
    """A message to each recipient on a schedule (cron), about missing documentation or changes.

    With the recipient `dataset_owner`, owners receive messages about their datasets. Other
    recipients are names of users and groups, who receive messages about all datasets. Without
    `channels`, all channels are used.
    """

    schedule: str
    recipients: Names = (DATASET_OWNER,)
    title: str = ""
    template: str = ""
    channels: Names = ()
    kind: ReminderKind | None = None
    timezone: str = "UTC"
    quiet_hours: str | None = None
    opt_out: Names = ()
    deprecate_after_days: Days = 30
    deprecation_tag: Annotated[str, Meta(min_length=1)] = "deprecation-candidate"

    def __post_init__(self) -> None:
        parse_cron(self.schedule)
        parse_timezone(self.timezone)
        if self.quiet_hours is not None:
            parse_quiet_hours(self.quiet_hours)


class Notifications(Section, frozen=True, kw_only=True):
    """Notifications about changes, and reminders by name; channel addresses are secrets.

    `subscribers` are programs that receive the changes that match their filters.
    """

    rest: ClassVar[str | None] = "reminders"

    channels: dict[str, Secret] = field(default_factory=dict)
    changes: tuple[ChangeRule, ...] = ()
    subscribers: dict[str, Subscriber] = field(default_factory=dict)
    max_tries: Annotated[int, Meta(ge=1, description="a number of tries, at least 1")] = 60
    # The URL for editing documentation, if it is not the address of the catalog.
    catalog_url: Address | None = None
    reminders: dict[str, Reminder] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for channel in self.channels:
            if channel.startswith(SUBSCRIBER_PREFIX):
                raise MisuseError(
                    f"The name of the channel '{channel}' begins with {SUBSCRIBER_PREFIX}, which "
                    "is reserved for subscribers. Choose another name."
                )
        for rule in self.changes:
            for channel in rule.channels:
                if channel not in self.channels:
                    raise UnknownName("channel", channel, self.channels)
                if self.is_per_owner(channel):
                    raise MisuseError(
                        f"The address of the channel '{channel}' depends on an owner. Such "
                        "channels are for reminders; use another one for changes."
                    )
        for name, reminder in self.reminders.items():
            for channel in reminder.channels:
                if channel not in self.channels:
                    raise UnknownName("channel", channel, self.channels)
            for text in (reminder.title, reminder.template):
                _check_placeholders(text, _REMINDER_PLACEHOLDERS[self.reminder_kind(name)])

    @property
    def destinations(self) -> tuple[str, ...]:
        """All channels of the outbox: the configured ones, and one for each subscriber."""
        return (*self.channels, *self.subscriber_channels)

    @property
    def subscriber_channels(self) -> dict[str, Subscriber]:
        """The subscribers by the name of their channel in the outbox."""
        return {f"{SUBSCRIBER_PREFIX}{name}": each for name, each in self.subscribers.items()}

    def reminder_kind(self, name: str) -> ReminderKind:
        """The configured kind of a reminder, else the kind that its name suggests."""
        is_digest = "digest" in name.casefold()
        return self.reminders[name].kind or ("digest" if is_digest else "missing_docs")

    def is_per_owner(self, channel: str) -> bool:
        """Whether the address of a channel contains a placeholder for an owner."""
        return any(each in self.channels[channel].reveal() for each in OWNER_IN_ADDRESS)


def _check_placeholders(text: str, known: tuple[str, ...] = PLACEHOLDERS) -> None:
    for match in _BRACED_TEXT.finditer(text):
        name = match.group(1)
        if name is not None and name not in known:
            hint = did_you_mean(name, known) or f" Known: {', '.join(known)}."
            raise MisuseError(
                f"A template names {{{name}}}, which is not a known placeholder.{hint} "
                f"Write {{{{{name}}}}} if the message should contain {{{name}}}."
            )


# Top-level keys that are also accepted, and their paths in the sections.
MOVED: Final = {
    "datahub": ["platform_config", "datahub"],
    "openmetadata": ["platform_config", "openmetadata"],
    "gms_server": ["platform_config", "datahub", "gms_server"],
}

_ENVIRONMENTS: Final = {"PRODUCTION": "PROD", "DEVELOPMENT": "DEV"}
_DEFAULT_PATHS: Final = {"sqlite": ".lumos/lumos.db", "file": "lumos_snapshots"}


_MAX_PORT: Final = 65_535


class StorageEventType(enum.StrEnum):
    """The type of a storage event; accepts S3 spellings such as `s3:ObjectRemoved:*`."""

    CREATED = "ObjectCreated"
    DELETED = "ObjectDeleted"

    @classmethod
    def _missing_(cls, value: object) -> "StorageEventType | None":
        family = str(value).removeprefix("s3:").partition(":")[0]
        if family in ("ObjectDeleted", "ObjectRemoved", "LifecycleExpiration"):
            return cls.DELETED
        return cls.CREATED if family == "ObjectCreated" else None


class EventWebhook(Section, frozen=True, kw_only=True):
    """An endpoint of the watcher, to which MinIO sends the events of buckets."""

    shorthand: ClassVar[str | None] = "listen"

    listen: Annotated[
        str, Meta(pattern=r"^[^:\s/]+:\d{1,5}$", description="a host and port: 127.0.0.1:8870")
    ]
    token: Secret | None = None
    # A local folder for messages that are not processed yet.
    folder: Location | None = None

    def __post_init__(self) -> None:
        host, port = self.address
        if port > _MAX_PORT:
            raise MisuseError(f"{port} is not a port. Use one from 0 to {_MAX_PORT}.")
        if self.token is None and host != "localhost" and not host.startswith("127."):
            raise MisuseError(
                f"Without a token, anyone who can reach {self.listen} could send events. Set "
                "'token', or listen on 127.0.0.1."
            )

    @property
    def address(self) -> tuple[str, int]:
        """The host and the port."""
        host, _, port = self.listen.rpartition(":")
        return host, int(port)


class WatchedSource(Section, frozen=True, kw_only=True):
    """A watched source and how to detect its changes; its own keys are in the same mapping."""

    rest: ClassVar[str | None] = "source"
    nested: ClassVar[str | None] = "config"

    source: SourceSettings
    watch_mode: Literal["events", "polling", "hybrid"] = "polling"
    polling_interval: Seconds = 300
    # With watch_mode 'events', the seconds between scans that detect changes without an event.
    reconciliation_interval: Seconds = 86_400
    event_types: tuple[StorageEventType, ...] = tuple(StorageEventType)
    sqs_queue: str | None = None
    event_webhook: EventWebhook | None = None
    # Azure: the name or the URL of a queue that receives the events of Event Grid.
    storage_queue: str | None = None
    # Google Cloud: projects/PROJECT/subscriptions/NAME, or the name if the source has a project.
    pubsub_subscription: str | None = None
    watch_tables: Annotated[
        bool | tuple[str, ...], Meta(description="true, false or a list of tables")
    ] = True


class ChangeDetection(Section, frozen=True, kw_only=True):
    """Which sources are watched between scans; `enabled: false` disables watching."""

    enabled: bool | None = None
    sources: tuple[WatchedSource, ...] = ()


class StorageSettings(Section, frozen=True, kw_only=True):
    """The location of the store of Lumos."""

    backend: Literal["sqlite", "postgres", "file"] = "sqlite"
    path: Location | None = None
    connection_string: ConnectionString | None = None
    # Only for events about new data: other events, such as schema changes, are never deleted.
    modified_retention_days: Days = 90

    def __post_init__(self) -> None:
        if self.backend == "postgres" and self.connection_string is None:
            raise MisuseError("The backend postgres requires 'connection_string'.")
        if self.backend != "postgres" and self.connection_string is not None:
            raise MisuseError("'connection_string' is for the backend postgres; set 'backend' too.")
        if self.path is None and self.backend in _DEFAULT_PATHS:
            msgspec.structs.force_setattr(self, "path", _DEFAULT_PATHS[self.backend])


class Enforcement(Section, frozen=True, kw_only=True):
    """The consequence of missing documentation."""

    mode: Literal["block_on_missing", "warn_only"] = "warn_only"


class Exemption(Section, frozen=True, kw_only=True):
    """Datasets that need no documentation, and the reason."""

    pattern: str
    reason: str = ""


class DocumentationRules(Section, frozen=True, kw_only=True):
    """Which documentation is required."""

    required_fields: Names = ()
    enforcement: Enforcement = Enforcement()
    exceptions: tuple[Exemption, ...] = ()


class QualityIntegration(Section, frozen=True, kw_only=True):
    """A data quality tool."""

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
    """Results of a custom HTTP service."""

    type: Literal["custom_api"] = "custom_api"
    endpoint: Address
    token: Annotated[Secret | None, alternative_names(also=("auth_token",))] = None
    timeout: Seconds = 30


QUALITY_INTEGRATIONS: Final[dict[str, type[QualityIntegration]]] = {
    "great_expectations": GreatExpectations,
    "dbt_tests": DbtTests,
    "custom_api": CustomApi,
}


class SparkSettings(Section, frozen=True, kw_only=True):
    """The Spark cluster for scans; options with names of secrets are `Secret`."""

    master: str = "local[*]"
    config: dict[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, value in self.config.items():
            if not isinstance(value, (str, int, float, Secret)):
                raise MisuseError(f"The Spark option '{name}' must be text, a number or a boolean.")

    def properties(self) -> dict[str, str]:
        """The Spark options as text, with the secrets in plain text."""
        return {name: _property(value) for name, value in self.config.items()}


class ScanSettings(Section, frozen=True, kw_only=True):
    """Settings of all file scans, in addition to the patterns of a source."""

    file_patterns: Names = ()
    exclude: Names = ()
    max_removed_share: Share = 0.3
    column_stats: bool = False
    datasets: tuple[DatasetHint, ...] = ()
    # If false, tables of Delta, Iceberg and Hudi are scanned as plain files.
    tables: bool = True
    # The number of latest commits of a table that are read for its schema history.
    table_history: Annotated[int, Meta(ge=0, description="a number of commits, at least 0")] = (
        10_000
    )


class ProfileSettings(Section, frozen=True, kw_only=True):
    """Settings of profiles; `values` selects text columns whose frequent values are recorded."""

    values: Names = ()


class UsageSettings(Section, frozen=True, kw_only=True):
    """Settings for reads from query logs; to record `hashed` readers, a key is needed."""

    readers: Literal["names", "hashed"] = "names"
    key: Secret | None = None
    retention_days: Days = 400

    def __post_init__(self) -> None:
        if self.readers == "hashed" and self.key is None:
            raise MisuseError("Hashed readers need a 'key', so that the names cannot be guessed.")


class FormerKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key that is written with a former name."""

    key: str
    current_key: str
    line: int | None = None


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """The file that settings were read from; `lines` are the line numbers of its sections."""

    file: str | None = None
    folder: str = ""
    lines: dict[str, int] = field(default_factory=dict)
    former_keys: tuple[FormerKey, ...] = ()


class Settings(Section, frozen=True, kw_only=True):
    """All settings; after loading, local paths are absolute."""

    nested: ClassVar[str | None] = "lumos_config"

    platform: Annotated[PlatformName, alternative_names(former=("default_platform",))] = LOCAL
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
            # A cloud version must not look like a schema version (1.0.5) or a date (2024-01-15).
            pattern=r"^(?!\d+\.\d+\.$)(?!\d{4}-\d\d-)([^\s\x00-\x1f\x7f@/]*[^\s\x00-\x1f\x7f@/\d])?\Z",
            description="text without spaces, such as S-, that does not end with a digit and does "
            "not look like a date or a schema version when a number follows",
        ),
    ] = DEFAULT_PREFIX
    sources: tuple[SourceSettings, ...] = ()
    change_detection: ChangeDetection = ChangeDetection()
    airflow: tuple[AirflowSettings, ...] = ()
    storage: StorageSettings = StorageSettings()
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
    spark: SparkSettings = SparkSettings()
    state_uri: Location | None = None
    scan: ScanSettings = ScanSettings()
    profile: ProfileSettings = ProfileSettings()
    usage: UsageSettings = UsageSettings()
    gate: GateSettings = GateSettings()
    jobs: JobSettings = JobSettings()
    server: ServerSettings = ServerSettings()
    origin: Annotated[Origin, Meta(extra={INTERNAL: True})] = Origin()

    def __post_init__(self) -> None:
        environment = self.environment.upper()
        environment = _ENVIRONMENTS.get(environment, environment)
        msgspec.structs.force_setattr(self, "environment", environment)

    @property
    def switches(self) -> Switches:
        """The feature switches."""
        return Switches(self.features, self.origin.file)

    def to_masked_dict(self) -> dict[str, Any]:
        """The settings as plain values for display, with masked secrets."""
        plain = msgspec.json.decode(msgspec.json.encode(self, enc_hook=_masked))
        return {name: value for name, value in plain.items() if name != "origin"}


def canonical_path(path: Sequence[str]) -> list[str]:
    """The path of keys, with a moved top-level key replaced by its path."""
    first, *rest = path
    return [*MOVED.get(first, [first]), *rest]


def _masked(value: object) -> str:
    if isinstance(value, Secret):
        return str(value)
    raise TypeError(f"A {type(value).__name__} is not a configuration value.")


def _property(value: object) -> str:
    if isinstance(value, Secret):
        return value.reveal()
    return str(value).lower() if isinstance(value, bool) else str(value)
