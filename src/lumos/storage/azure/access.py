"""How containers of Azure are reached: by the configuration, and else by the usual places."""

import os
import re
from collections.abc import Mapping
from typing import Final, NamedTuple, Self

import msgspec

from lumos.config.secret import MASK
from lumos.config.sources import AzureSourceSettings
from lumos.storage.interface import Access

_PUBLIC: Final = "core.windows.net"
# The host of an account, by either of its protocols.
_HOST: Final = re.compile(r"([^./]+)\.(?:blob|dfs)\.([^/:]+)")
_SECRET: Final = ("account_key", "sas_token", "client_secret")


class Container(NamedTuple):
    """A container by its full name: `suffix` is the domain of its cloud."""

    name: str
    account: str
    suffix: str = _PUBLIC

    @property
    def authority(self) -> str:
        """What stands between scheme and key in the one spelling of its addresses."""
        return f"{self.name}@{self.account}.dfs.{self.suffix}"

    @classmethod
    def parse(cls, authority: str) -> "Container | None":
        """The container that `name@account.dfs.domain` means."""
        name, _, host = authority.partition("@")
        found = _HOST.fullmatch(host)
        # A colon before the @ would be the beginning of a password.
        return None if found is None or not name or ":" in name else cls(name, *found.groups())

    @property
    def account_url(self) -> str:
        """The address of its account in its cloud."""
        return f"https://{self.account}.blob.{self.suffix}"


class AzureAccess(Access, frozen=True, kw_only=True):
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
        told = cls._of_text(text)
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
        return msgspec.structs.replace(told, **given, anonymous=source.anonymous)

    @classmethod
    def _of_text(cls, connection_string: str) -> Self:
        """What the connection string of an account says: `AccountName=...;AccountKey=...`."""
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
        """The same, with account and endpoint as the environment names them filled in."""
        account, told = self._told(environment)
        mine = self.account or account or _account_in(self.endpoint_url)
        endpoint = self.endpoint_url or (told.endpoint_url if account in ("", mine) else "")
        return msgspec.structs.replace(self, account=mine, endpoint_url=endpoint.rstrip("/"))

    def with_keys(self, environment: Mapping[str, str] = os.environ) -> "AzureAccess":
        """The same, with what lets one into this account there, where the access has nothing."""
        account, told = self._told(environment)
        get = environment.get
        if self._has_credentials() or account not in ("", self.account):
            return self
        if told.suffix != self.suffix:
            # An account of the same name in another cloud is somebody else's.
            told = AzureAccess()
        key = get("AZURE_STORAGE_KEY") or get("AZURE_STORAGE_ACCOUNT_KEY") or told.account_key
        sas = get("AZURE_STORAGE_SAS_TOKEN") or told.sas_token
        return msgspec.structs.replace(self, account_key=key, sas_token=sas)

    def _told(self, environment: Mapping[str, str]) -> "tuple[str, AzureAccess]":
        """Of which account the environment speaks, and what its connection string says."""
        get = environment.get
        told = self._of_text(get("AZURE_STORAGE_CONNECTION_STRING", ""))
        named = get("AZURE_STORAGE_ACCOUNT") or get("AZURE_STORAGE_ACCOUNT_NAME")
        return named or told.account, told

    def _has_credentials(self) -> bool:
        return bool(self.account_key or self.sas_token or self.client_secret or self.anonymous)

    @property
    def suffix(self) -> str:
        """The domain of the account's cloud."""
        found = _HOST.search(self.endpoint_url)
        return _PUBLIC if found is None else found.group(2)

    def container(self, name: str) -> Container:
        """A container of this account."""
        return Container(name, self.account, self.suffix)

    def is_of(self, container: Container) -> bool:
        """Whether a container lies in this account, in the same cloud."""
        return (container.account, container.suffix) == (self.account, self.suffix)

    def reaching(self, container: Container) -> "AzureAccess":
        """The same without what is for another account than the container's.

        Tables may name containers of anybody. Who asks may be known in all accounts of a cloud, so
        that only keys and signatures stay behind; in another cloud nobody is told who asks.
        """
        if not self.account or self.is_of(container):
            return self
        if container.suffix != self.suffix:
            return AzureAccess(account=container.account, anonymous=True)
        return msgspec.structs.replace(
            self, account=container.account, endpoint_url="", account_key="", sas_token=""
        )

    def account_url(self, container: Container) -> str:
        """The address below which the containers of an account lie."""
        if self.endpoint_url and self.is_of(container):
            return self.endpoint_url.replace(".dfs.", ".blob.")
        return container.account_url


def _account_in(endpoint: str) -> str:
    found = _HOST.search(endpoint)
    return "" if found is None else found.group(1)
