"""Containers of Azure Blob Storage and Data Lake Storage."""

from collections.abc import Mapping
from functools import cached_property
from typing import ClassVar

from lumos.config.sources import AzureSourceSettings as AzureSettings
from lumos.model.urn import Urn
from lumos.sources.buckets import INTERACTIVE_RETRIES, BucketSource
from lumos.sources.interface import SourceNotUsable
from lumos.storage.azure import AzureAccess, AzureStorage
from lumos.storage.azure.access import ContainerAddress
from lumos.storage.azure.storage import AzureContainer
from lumos.storage.errors import StorageUnreachable


class AzureSource(BucketSource[AzureSettings, AzureContainer]):
    """A source of Azure containers, identified by account: container names are not unique."""

    kind: ClassVar[str] = "azure"
    log_in = (
        "Set AZURE_STORAGE_KEY, run 'az login', or give the source of the type azure in lumos.yaml "
        "an 'account_key', a 'sas_token', a 'client_secret', or 'anonymous: true' for a public "
        "container."
    )
    grant = (
        "Grant the role Storage Blob Data Reader, or use a SAS token with the permissions Read and "
        "List."
    )
    steps: ClassVar[Mapping[str, str]] = {
        "AuthenticationFailed": "Check the key or SAS token, its expiry, and this machine's clock.",
        "InvalidAuthenticationInfo": "Check the key or SAS token, and the clock of this machine.",
        "AuthorizationFailure": "Check the account's firewall, and that key access is enabled.",
        "PublicAccessNotPermitted": "The container is not public; configure credentials.",
        "NoAuthenticationInformation": "The container is not public; configure credentials.",
    }

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
            # Keep empty segments: `a//b` and `a/b` are different keys, unlike paths of folders.
            [authority.partition("@")[0], *(key.split("/") if key else ())],
            instance=self.instance,
            environment=environment,
        )

    def _names(self) -> tuple[str, ...]:
        string = self._settings.connection_string
        if string is not None and "=" not in string.reveal():
            problem = "Invalid 'connection_string' of a source of type azure."
            step = "Expected: AccountName=...;AccountKey=..., as shown by Azure."
            raise SourceNotUsable(problem, step)
        if not self._resolved_access.account:
            problem = "A source of type azure has no account."
            step = "Set 'account' or AZURE_STORAGE_ACCOUNT."
            raise SourceNotUsable(problem, step)
        return tuple(
            self._resolved_access.container(name).authority for name in self._settings.buckets
        )

    def _storage(self) -> AzureStorage:
        return AzureStorage(self._resolved_access, retries=INTERACTIVE_RETRIES)

    def _listing_command(self, bucket: str) -> str:
        container = ContainerAddress.parse(bucket)
        assert container is not None, f"{bucket} is not a complete container address"
        return (
            f"az storage blob list -c {container.name} --account-name {container.account} "
            "--delimiter /"
        )

    @property
    def _service(self) -> str:
        return f"The account '{self._resolved_access.account}'"

    def _missing_bucket(self, root: str) -> SourceNotUsable:
        name = root.removeprefix("abfss://").partition("@")[0]
        account = self._resolved_access.account
        problem = f"There is no container '{name}' in the account '{account}'."
        return SourceNotUsable(problem, "Check both names, and 'endpoint_url'.")

    def _connection_step(self, problem: StorageUnreachable) -> str:  # noqa: ARG002
        return "Check 'account', 'endpoint_url' and the network."
