"""Access to Azure containers, from the configuration and the environment."""

import os
import re
from collections.abc import Mapping
from typing import ClassVar, Final, NamedTuple, Self

from msgspec.structs import replace

from lumos.config.sources import AzureSourceSettings
from lumos.storage.interface import StorageAccess

_PUBLIC: Final = "core.windows.net"
# The host of an account, for its Blob or its Data Lake API.
_HOST: Final = re.compile(r"([^./]+)\.(?:blob|dfs)\.([^/:]+)")


class ContainerAddress(NamedTuple):
    """The address of a container; `suffix` is the domain of its cloud."""

    name: str
    account: str
    suffix: str = _PUBLIC

    @property
    def authority(self) -> str:
        """The part between scheme and key in canonical URIs."""
        return f"{self.name}@{self.account}.dfs.{self.suffix}"

    @classmethod
    def parse(cls, authority: str) -> "ContainerAddress | None":
        """Parse `name@account.dfs.domain`."""
        name, _, host = authority.partition("@")
        match = _HOST.fullmatch(host)
        # A colon before the @ would start a password.
        return None if match is None or not name or ":" in name else cls(name, *match.groups())

    @property
    def account_url(self) -> str:
        """The URL of the container's account."""
        return f"https://{self.account}.blob.{self.suffix}"


class AzureAccess(StorageAccess, frozen=True, kw_only=True):
    """Account, endpoint and credentials; empty values come from the environment."""

    secret_fields: ClassVar[tuple[str, ...]] = ("account_key", "sas_token", "client_secret")

    account: str = ""
    endpoint_url: str = ""
    account_key: str = ""
    sas_token: str = ""
    tenant_id: str = ""
    client_id: str = ""
    client_secret: str = ""
    anonymous: bool = False

    @classmethod
    def of(cls, source: AzureSourceSettings) -> Self:
        """The access for a section of the configuration."""
        text = source.connection_string.reveal() if source.connection_string else ""
        from_string = cls._from_connection_string(text)
        settings = {
            "account": source.account or "",
            "endpoint_url": source.endpoint_url or "",
            "account_key": source.account_key.reveal() if source.account_key else "",
            "sas_token": source.sas_token.reveal() if source.sas_token else "",
            "tenant_id": source.tenant_id or "",
            "client_id": source.client_id or "",
            "client_secret": source.client_secret.reveal() if source.client_secret else "",
        }
        given_settings = {name: value for name, value in settings.items() if value}
        return replace(from_string, **given_settings, anonymous=source.anonymous)

    @classmethod
    def _from_connection_string(cls, connection_string: str) -> Self:
        """The access in a connection string: `AccountName=...;AccountKey=...`."""
        pairs = (part.partition("=") for part in connection_string.split(";"))
        settings = {name.strip().lower(): value.strip() for name, _, value in pairs}
        account, suffix = settings.get("accountname", ""), settings.get("endpointsuffix", "")
        endpoint = settings.get("blobendpoint", "")
        if not endpoint and account and suffix not in ("", _PUBLIC):
            protocol = settings.get("defaultendpointsprotocol", "https")
            endpoint = f"{protocol}://{account}.blob.{suffix}"
        return cls(
            account=account or _account_in(endpoint),
            endpoint_url=endpoint.rstrip("/"),
            account_key=settings.get("accountkey", ""),
            sas_token=settings.get("sharedaccesssignature", ""),
        )

    def resolve(self, environment: Mapping[str, str] = os.environ) -> "AzureAccess":
        """The access completed with account and endpoint from the environment."""
        environment_account, from_string = self._from_environment(environment)
        account = self.account or environment_account or _account_in(self.endpoint_url)
        endpoint = self.endpoint_url or (
            from_string.endpoint_url if environment_account in ("", account) else ""
        )
        return replace(self, account=account, endpoint_url=endpoint.rstrip("/"))

    def with_keys(self, environment: Mapping[str, str] = os.environ) -> "AzureAccess":
        """The access with keys of the account from the environment, if it has no credentials."""
        account, from_string = self._from_environment(environment)
        get = environment.get
        has_auth = self.account_key or self.sas_token or self.client_secret or self.anonymous
        if has_auth or account not in ("", self.account):
            return self
        if from_string.suffix != self.suffix:
            # Accounts in different clouds may have the same name.
            from_string = AzureAccess()
        key = (
            get("AZURE_STORAGE_KEY") or get("AZURE_STORAGE_ACCOUNT_KEY") or from_string.account_key
        )
        sas = get("AZURE_STORAGE_SAS_TOKEN") or from_string.sas_token
        return replace(self, account_key=key, sas_token=sas)

    def _from_environment(self, environment: Mapping[str, str]) -> "tuple[str, AzureAccess]":
        """The account in the environment, and the access in its connection string."""
        get = environment.get
        from_string = self._from_connection_string(get("AZURE_STORAGE_CONNECTION_STRING", ""))
        account = get("AZURE_STORAGE_ACCOUNT") or get("AZURE_STORAGE_ACCOUNT_NAME")
        return account or from_string.account, from_string

    @property
    def suffix(self) -> str:
        """The domain of the account's cloud."""
        match = _HOST.search(self.endpoint_url)
        return _PUBLIC if match is None else match.group(2)

    def container(self, name: str) -> ContainerAddress:
        """A container of this account."""
        return ContainerAddress(name, self.account, self.suffix)

    def contains(self, container: ContainerAddress) -> bool:
        """Whether a container is in this account, in the same cloud."""
        return (container.account, container.suffix) == (self.account, self.suffix)

    def for_container(self, container: ContainerAddress) -> "AzureAccess":
        """The access for a container, without secrets of other accounts.

        Tables may refer to files in any container. In another account of the same cloud, keys and
        SAS tokens are not used, but identities are. Other clouds are accessed anonymously.
        """
        if not self.account or self.contains(container):
            return self
        if container.suffix != self.suffix:
            return AzureAccess(account=container.account, anonymous=True)
        return replace(
            self, account=container.account, endpoint_url="", account_key="", sas_token=""
        )

    def account_url(self, container: ContainerAddress) -> str:
        """The base URL of the containers of an account."""
        if self.endpoint_url and self.contains(container):
            return self.endpoint_url.replace(".dfs.", ".blob.")
        return container.account_url


def _account_in(endpoint: str) -> str:
    match = _HOST.search(endpoint)
    return "" if match is None else match.group(1)
