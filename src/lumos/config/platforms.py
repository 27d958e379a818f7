"""The catalogs metadata goes to: one section for each platform."""

from typing import Annotated, ClassVar, Final

from msgspec import field

from lumos.config.secret import ConnectionString, Secret
from lumos.config.section import Address, Location, Port, Seconds, Section, spelled
from lumos.config.sources import User

LOCAL: Final = "local"


def kind_of(platform: str) -> str:
    """The kind of a platform, which an address may follow: `datahub-file:estate.json`."""
    return platform.partition(":")[0]


class LocalPlatform(Section, frozen=True, kw_only=True):
    """The store of Lumos itself, which needs no settings of its own."""


class DatahubPlatform(Section, frozen=True, kw_only=True):
    """DataHub, by the address of its metadata service."""

    gms_server: Annotated[Address, spelled(also=("server",))] = "http://localhost:8080"
    token: Annotated[Secret | None, spelled(also=("auth_token",))] = None
    timeout: Seconds = 30
    ca_file: Location | None = None


class OpenmetadataPlatform(Section, frozen=True, kw_only=True):
    """OpenMetadata, by the address of its server."""

    server: Address
    auth_token: Annotated[Secret | None, spelled(also=("token",))] = None
    timeout: Seconds = 30
    ca_file: Location | None = None


class AtlasPlatform(Section, frozen=True, kw_only=True):
    """Apache Atlas, by the address of its server."""

    server: Address
    user: User = None
    password: Secret | None = None
    auth_token: Annotated[Secret | None, spelled(also=("token",))] = None
    timeout: Seconds = 30
    ca_file: Location | None = None


class AmundsenPlatform(Section, frozen=True, kw_only=True):
    """Amundsen: its metadata service for reads, its Neo4j or SQL database for writes."""

    server: Address
    auth_token: Annotated[Secret | None, spelled(also=("token",))] = None
    neo4j_uri: ConnectionString | None = None
    neo4j_user: str | None = None
    neo4j_password: Secret | None = None
    connection_string: ConnectionString | None = None
    timeout: Seconds = 30
    ca_file: Location | None = None


class SnowflakePlatform(Section, frozen=True, kw_only=True):
    """Snowflake as a catalog: metadata in its tags, comments and a schema for the rest."""

    account: str
    user: User = None
    password: Secret | None = None
    token: Secret | None = None
    authenticator: str | None = None
    private_key: Secret | None = None
    private_key_file: Location | None = None
    private_key_passphrase: Secret | None = None
    warehouse: str | None = None
    role: str | None = None
    database: str | None = None
    schema: str | None = None


class BigqueryPlatform(Section, frozen=True, kw_only=True):
    """BigQuery as a catalog."""

    project: str
    dataset: str | None = None
    location: str | None = None
    credentials_file: Location | None = None
    credentials: Secret | None = None


class RedshiftPlatform(Section, frozen=True, kw_only=True):
    """Redshift as a catalog."""

    connection_string: ConnectionString | None = None
    host: str | None = None
    port: Port = 5439
    database: str | None = None
    schema: str | None = None
    user: User = None
    password: Secret | None = None


class PlatformConfig(Section, frozen=True, kw_only=True):
    """Settings by platform; `others` are platforms of other packages with their own options."""

    rest: ClassVar[str | None] = "others"

    local: LocalPlatform | None = None
    datahub: DatahubPlatform | None = None
    openmetadata: OpenmetadataPlatform | None = None
    atlas: AtlasPlatform | None = None
    amundsen: AmundsenPlatform | None = None
    snowflake: SnowflakePlatform | None = None
    bigquery: BigqueryPlatform | None = None
    redshift: RedshiftPlatform | None = None
    others: dict[str, dict[str, object]] = field(default_factory=dict)

    def of(self, platform: str) -> Section | dict[str, object] | None:
        """The settings of one platform, if any are given."""
        if platform in PLATFORMS:
            section: Section | None = getattr(self, platform)
            return section
        return self.others.get(platform)


PLATFORMS: Final = tuple(
    name for name in PlatformConfig.__struct_fields__ if name != PlatformConfig.rest
)
