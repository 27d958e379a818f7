"""Containers of Azure Blob Storage and Data Lake Storage."""

from functools import cached_property
from typing import ClassVar, Final

from lumos.config.sources import AzureSourceSettings as AzureSettings
from lumos.model.urn import Urn
from lumos.sources.buckets import INTERACTIVE_RETRIES, BucketSource
from lumos.sources.interface import SourceNotUsable
from lumos.storage import StorageAccess
from lumos.storage.azure import AzureAccess, AzureStorage
from lumos.storage.azure.access import ContainerAddress
from lumos.storage.azure.storage import AzureContainer
from lumos.storage.errors import (
    NoCredentials,
    StorageBusy,
    StorageDenied,
    StorageFault,
    StorageMissing,
    StorageUnreachable,
)
from lumos.storage.objects.storage import ObjectStorage

_LOG_IN: Final = (
    "Set AZURE_STORAGE_KEY, run 'az login', or give the source of the type azure in lumos.yaml an "
    "'account_key', a 'sas_token', a 'client_secret', or 'anonymous: true' for a public container."
)
_GRANT: Final = (
    "Grant the role Storage Blob Data Reader, or use a signature with the rights Read and List."
)
_STEPS: Final = {
    "AuthenticationFailed": "Check the key or signature, its expiry, and this machine's clock.",
    "InvalidAuthenticationInfo": "Check the key or signature, and the clock of this machine.",
    "AuthorizationFailure": "Check the firewall of the account, and that key access is enabled.",
    "PublicAccessNotPermitted": "The container is not public; configure credentials.",
    "NoAuthenticationInformation": "The container is not public; configure credentials.",
}


class AzureSource(BucketSource[AzureSettings, AzureContainer]):
    """A source of Azure containers, identified by account: container names are not unique."""

    kind: ClassVar[str] = "azure"

    def __init__(self, settings: AzureSettings) -> None:
        super().__init__(settings)
        self.instance = settings.instance or self._resolved_access.account

    @cached_property
    def _resolved_access(self) -> AzureAccess:
        return AzureAccess.of(self._settings).resolve()

    def urn(self, path: str, *, environment: str) -> Urn:
        authority, _, key = path.removeprefix("abfss://").partition("/")
        return Urn.of(
            self.kind,
            # Keep empty parts: unlike folders, keys with and without them differ.
            [authority.partition("@")[0], *(key.split("/") if key else ())],
            instance=self.instance,
            environment=environment,
        )

    def _names(self) -> tuple[str, ...]:
        string = self._settings.connection_string
        if string is not None and "=" not in string.reveal():
            found = "Invalid 'connection_string' of a source of type azure."
            step = "Expected: AccountName=...;AccountKey=..., as shown by Azure."
            raise SourceNotUsable(found, step)
        if not self._resolved_access.account:
            found = "A source of type azure has no account."
            step = "Set 'account' or AZURE_STORAGE_ACCOUNT."
            raise SourceNotUsable(found, step)
        return tuple(
            self._resolved_access.container(name).authority for name in self._settings.buckets
        )

    def _storage(self) -> AzureStorage:
        return AzureStorage(self._resolved_access, retries=INTERACTIVE_RETRIES)

    def _access(
        self,
        storage: ObjectStorage[AzureContainer],
        bucket: AzureContainer,  # noqa: ARG002
    ) -> StorageAccess:
        assert isinstance(storage, AzureStorage)
        return storage.access

    def _listing_command(self, bucket: str) -> str:
        found = ContainerAddress.parse(bucket)
        assert found is not None, f"{bucket} is not a complete container address"
        return f"az storage blob list -c {found.name} --account-name {found.account} --delimiter /"

    def _explain(self, problem: StorageFault, root: str) -> SourceNotUsable:
        account = f"the account '{self._resolved_access.account}'"
        match problem:
            case NoCredentials():
                return self._no_credentials(problem, root, _LOG_IN)
            case StorageMissing():
                name = root.removeprefix("abfss://").partition("@")[0]
                found = f"There is no container '{name}' in {account}."
                return SourceNotUsable(found, "Check both names, and 'endpoint_url'.")
            case StorageDenied():
                found = f"No permission to list {root}: {problem}."
                return SourceNotUsable(found, _STEPS.get(problem.code, _GRANT))
            case StorageUnreachable():
                step = "Check 'account', 'endpoint_url' and the network."
                return SourceNotUsable(f"{problem}.", step)
            case StorageBusy():
                found = f"{account.capitalize()} is throttling requests for {root}: {problem}."
                return SourceNotUsable(found, "Try again in a few minutes.")
            case _:
                return SourceNotUsable(f"{root} cannot be listed: {problem}.", "Check the source.")
