"""Access to S3 buckets, from the configuration, the environment and profiles."""

import os
import re
from collections.abc import Mapping
from configparser import ConfigParser, Error
from typing import ClassVar, Final, Self

from msgspec.structs import replace

from lumos.config.sources import S3SourceSettings
from lumos.storage.errors import NoCredentials
from lumos.storage.interface import StorageAccess
from lumos.storage.s3.signing import amazon_domain

_DEFAULT_REGION: Final = "us-east-1"
_HOST_LABEL: Final = re.compile(r"[a-z0-9-]{3,63}", re.ASCII)


class S3Access(StorageAccess, frozen=True, kw_only=True):
    """Endpoint, region and credentials of buckets; empty values come from the environment."""

    # A key's id is not secret, but is masked, too, since users confuse it with the secret key.
    secret_fields: ClassVar[tuple[str, ...]] = (
        "access_key_id",
        "secret_access_key",
        "session_token",
    )

    endpoint_url: str = ""
    region: str = ""
    access_key_id: str = ""
    secret_access_key: str = ""
    session_token: str = ""
    profile: str = ""
    role_arn: str = ""
    anonymous: bool = False
    path_style: bool = False

    @classmethod
    def of(cls, source: S3SourceSettings) -> Self:
        """The access for a section of the configuration."""
        return cls(
            endpoint_url=source.endpoint_url or "",
            region=source.region or "",
            access_key_id=source.access_key_id.reveal() if source.access_key_id else "",
            secret_access_key=source.secret_access_key.reveal() if source.secret_access_key else "",
            session_token=source.session_token.reveal() if source.session_token else "",
            profile=source.profile or "",
            role_arn=source.role_arn or "",
            anonymous=source.anonymous,
            path_style=source.path_style,
        )

    def resolve(self, environment: Mapping[str, str] = os.environ) -> "S3Access":
        """The access, with a missing endpoint and region from the environment or the profile."""
        profile = _profile(self.profile or environment.get("AWS_PROFILE") or "default", environment)
        endpoint = (
            self.endpoint_url
            or environment.get("AWS_ENDPOINT_URL_S3")
            or environment.get("AWS_ENDPOINT_URL")
            or profile.get("endpoint_url", "")
        )
        region = (
            self.region
            or environment.get("AWS_REGION")
            or environment.get("AWS_DEFAULT_REGION")
            or profile.get("region", "")
        )
        return replace(self, endpoint_url=endpoint.rstrip("/"), region=region)

    @property
    def is_aws(self) -> bool:
        """Whether buckets are on AWS, where the region has to be determined."""
        return not self.endpoint_url

    def bucket_url(self, bucket: str, region: str = "") -> str:
        """The base URL of the keys of a bucket."""
        if not self.is_aws:
            # Other vendors rarely expect the bucket in the host name.
            if "{bucket}" in self.endpoint_url:
                return self.endpoint_url.replace("{bucket}", bucket)
            return f"{self.endpoint_url}/{bucket}"
        bucket_region = region or self.region or _DEFAULT_REGION
        host = f"s3.{bucket_region}.{amazon_domain(bucket_region)}"
        # Certificates do not cover bucket names with dots, and host names have no upper case.
        is_in_path = self.path_style or _HOST_LABEL.fullmatch(bucket) is None
        return f"https://{host}/{bucket}" if is_in_path else f"https://{bucket}.{host}"

    def signing_region(self, region: str = "") -> str:
        """The region to sign requests for."""
        return region or self.region or _DEFAULT_REGION


def _profile(name: str, environment: Mapping[str, str]) -> Mapping[str, str]:
    """The settings of a profile in ~/.aws, read without botocore, which may not be installed."""
    settings: dict[str, str] = {}
    for variable, default, section in (
        ("AWS_CONFIG_FILE", "~/.aws/config", name if name == "default" else f"profile {name}"),
        ("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials", name),
    ):
        file = os.path.expanduser(environment.get(variable) or default)
        parser = ConfigParser(interpolation=None, strict=False, default_section="")
        try:
            parser.read(file, encoding="utf-8")
        except (Error, UnicodeDecodeError) as problem:
            # The message quotes the line, which may contain a key.
            raise NoCredentials(f"{file} cannot be read: {type(problem).__name__}") from None
        settings |= parser[section] if parser.has_section(section) else {}
    return settings
