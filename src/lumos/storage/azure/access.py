"""How containers of Azure are reached: by the configuration, and else by the usual places."""

import os
import re
from collections.abc import Mapping
from typing import Final, NamedTuple, Self

import msgspec

from lumos.config.secret import MASK
from lumos.config.sources import AzureSourceSettings
from lumos.storage.interface import StorageAccess

_PUBLIC: Final = "core.windows.net"
# The host of an account, by either of its protocols.
_HOST: Final = re.compile(r"([^./]+)\.(?:blob|dfs)\.([^/:]+)")
_SECRET: Final = ("account_key", "sas_token", "client_secret")


class ContainerAddress(NamedTuple):
    """A container by its full name: `suffix` is the domain of its cloud."""

    name: str
    account: str
    suffix: str = _PUBLIC

    @property
    def authority(self) -> str:
        """What stands between scheme and key in the one spelling of its addresses."""
        return f"{self.name}@{self.account}.dfs.{self.suffix}"

    @classmethod
    def parse(cls, authority: str) -> "ContainerAddress | None":
        """The container that `name@account.dfs.domain` means."""
        name, _, host = authority.partition("@")
        found = _HOST.fullmatch(host)
        # A colon before the @ would be the beginning of a password.
        return None if found is None or not name or ":" in name else cls(name, *found.groups())

    @property
    def account_url(self) -> str:
        """The address of its account in its cloud."""
        return f"https://{self.account}.blob.{self.suffix}"


class AzureAccess(StorageAccess, frozen=True, kw_only=True):
    """Account, endpoint and credentials; what is empty is found in the usual places."""

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
        """The access that a section of the configuration describes."""
        text = source.connection_string.reveal() if source.connection_string else ""
        in_string = cls._of_text(text)
        own = {
            "account": source.account or "",
            "endpoint_url": source.endpoint_url or "",
            "account_key": source.account_key.reveal() if source.account_key else "",
            "sas_token": source.sas_token.reveal() if source.sas_token else "",
            "tenant_id": source.tenant_id or "",
            "client_id": source.client_id or "",
            "client_secret": source.client_secret.reveal() if source.client_secret else "",
        }
        given = {name: value for name, value in own.items() if value}
        return msgspec.structs.replace(in_string, **given, anonymous=source.anonymous)

    @classmethod
    def _of_text(cls, connection_string: str) -> Self:
        """The access of a connection string: `AccountName=...;AccountKey=...`."""
        pairs = (part.partition("=") for part in connection_string.split(";"))
        facts = {name.strip().lower(): value.strip() for name, _, value in pairs}
        account, suffix = facts.get("accountname", ""), facts.get("endpointsuffix", "")
        endpoint = facts.get("blobendpoint", "")
        if not endpoint and account and suffix not in ("", _PUBLIC):
            protocol = facts.get("defaultendpointsprotocol", "https")
            endpoint = f"{protocol}://{account}.blob.{suffix}"
        return cls(
            account=account or _account_in(endpoint),
            endpoint_url=endpoint.rstrip("/"),
            account_key=facts.get("accountkey", ""),
            sas_token=facts.get("sharedaccesssignature", ""),
        )

    def __repr__(self) -> str:
        facts = (
            f"{name}={MASK if name in _SECRET else getattr(self, name)!r}"
            for name in self.__struct_fields__
            if getattr(self, name)
        )
        return f"{type(self).__name__}({', '.join(facts)})"

    def settled(self, environment: Mapping[str, str] = os.environ) -> "AzureAccess":
        """The access completed with account and endpoint from the environment."""
        account, in_string = self._from_environment(environment)
        mine = self.account or account or _account_in(self.endpoint_url)
        endpoint = self.endpoint_url or (in_string.endpoint_url if account in ("", mine) else "")
        return msgspec.structs.replace(self, account=mine, endpoint_url=endpoint.rstrip("/"))

    def with_keys(self, environment: Mapping[str, str] = os.environ) -> "AzureAccess":
        """The access with the keys that the environment has for this account, if it has none."""
        account, in_string = self._from_environment(environment)
        get = environment.get
        if self._has_credentials() or account not in ("", self.account):
            return self
        if in_string.suffix != self.suffix:
            # An account of the same name in another cloud is another account.
            in_string = AzureAccess()
        key = get("AZURE_STORAGE_KEY") or get("AZURE_STORAGE_ACCOUNT_KEY") or in_string.account_key
        sas = get("AZURE_STORAGE_SAS_TOKEN") or in_string.sas_token
        return msgspec.structs.replace(self, account_key=key, sas_token=sas)

    def _from_environment(self, environment: Mapping[str, str]) -> "tuple[str, AzureAccess]":
        """The account in the environment, and its connection string as an access."""
        get = environment.get
        in_string = self._of_text(get("AZURE_STORAGE_CONNECTION_STRING", ""))
        named = get("AZURE_STORAGE_ACCOUNT") or get("AZURE_STORAGE_ACCOUNT_NAME")
        return named or in_string.account, in_string

    def _has_credentials(self) -> bool:
        return bool(self.account_key or self.sas_token or self.client_secret or self.anonymous)

    @property
    def suffix(self) -> str:
        """The domain of the account's cloud."""
        found = _HOST.search(self.endpoint_url)
        return _PUBLIC if found is None else found.group(2)

    def container(self, name: str) -> ContainerAddress:
        """A container of this account."""
        return ContainerAddress(name, self.account, self.suffix)

    def is_of(self, container: ContainerAddress) -> bool:
        """Whether a container is in this account, in the same cloud."""
        return (container.account, container.suffix) == (self.account, self.suffix)

    def reaching(self, container: ContainerAddress) -> "AzureAccess":
        """The access without secrets of another account than the container's.

        Tables may name any container. An identity is valid in all accounts of its cloud, so that
        only keys and signatures are dropped; other clouds are accessed anonymously.
        """
        if not self.account or self.is_of(container):
            return self
        if container.suffix != self.suffix:
            return AzureAccess(account=container.account, anonymous=True)
        return msgspec.structs.replace(
            self, account=container.account, endpoint_url="", account_key="", sas_token=""
        )

    def account_url(self, container: ContainerAddress) -> str:
        """The address below which the containers of an account lie."""
        if self.endpoint_url and self.is_of(container):
            return self.endpoint_url.replace(".dfs.", ".blob.")
        return container.account_url


def _account_in(endpoint: str) -> str:
    found = _HOST.search(endpoint)
    return "" if found is None else found.group(1)
