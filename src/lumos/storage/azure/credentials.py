"""Finds credentials where Azure's own libraries find them, in the same order."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlencode

from lumos.storage.azure.access import AzureAccess
from lumos.storage.azure.signing import Bearer, Login, Nobody, Sas, SharedKey
from lumos.storage.errors import NoCredentials, StorageFault
from lumos.storage.http import Transport
from lumos.storage.tokens import Renewable, Token, asked_for_token, granted

_LOGIN: Final = "https://login.microsoftonline.com"
_STORAGE: Final = "https://storage.azure.com/"
_BY_STATEMENT: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_MACHINE: Final = "http://169.254.169.254"
# A machine outside of the cloud has no metadata service; looking for it must not take long.
_MACHINE_SECONDS: Final = 1.0
_CLI_SECONDS: Final = 30.0
_CLI_GOOD_SECONDS: Final = 900.0
_WHO: Final = "Microsoft Entra"


class AzureCredentials:
    """The login of an access, found on first use and renewed before it ends."""

    def __init__(
        self,
        access: AzureAccess,
        account: str,
        transport: Transport,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._access = access
        self._account = account
        self._transport = transport
        self._environment = environment
        self._login: Renewable[Login] = Renewable(self._find)

    def current(self) -> Login:
        """A login that is good for some minutes."""
        return self._login.current()

    def scrubbed(self, text: str) -> str:
        """The text without any part of the credentials in use."""
        text = self._login.last.scrubbed(text) if self._login.last else text
        secret = self._access.client_secret
        return text.replace(secret, "***") if secret else text

    def _find(self) -> Login:
        access = self._access
        if access.anonymous:
            return Nobody()
        if access.account_key:
            return SharedKey(self._account, access.account_key)
        if access.sas_token:
            return Sas(access.sas_token)
        found = next((token for place in self._places() if (token := place())), None)
        if found is None:
            raise NoCredentials("no credentials were found", code="NoCredentials")
        return Bearer(*found)

    def _places(self) -> Iterator[Callable[[], Token | None]]:
        """What the configuration names comes alone."""
        if self._access.client_secret:
            yield self._given
        else:
            yield from (self._in_environment, self._of_workload, self._of_service)
            yield from (self._of_machine, self._of_command_line)

    def _given(self) -> Token:
        access, get = self._access, self._environment.get
        tenant = access.tenant_id or get("AZURE_TENANT_ID", "")
        client = access.client_id or get("AZURE_CLIENT_ID", "")
        if not tenant or not client:
            missing = "tenant_id" if not tenant else "client_id"
            raise NoCredentials(f"a 'client_secret' needs a '{missing}' beside it")
        return self._granted(tenant, client, {"client_secret": access.client_secret})

    def _in_environment(self) -> Token | None:
        get = self._environment.get
        tenant, client = get("AZURE_TENANT_ID"), get("AZURE_CLIENT_ID")
        secret = get("AZURE_CLIENT_SECRET")
        if not tenant or not client or not secret:
            return None
        return self._granted(tenant, client, {"client_secret": secret})

    def _of_workload(self) -> Token | None:
        get = self._environment.get
        file = get("AZURE_FEDERATED_TOKEN_FILE")
        tenant = self._access.tenant_id or get("AZURE_TENANT_ID")
        client = self._access.client_id or get("AZURE_CLIENT_ID")
        if not file or not tenant or not client:
            return None
        try:
            statement = Path(file).read_text(encoding="utf-8").strip()
        except OSError as problem:
            raise NoCredentials(f"{file} cannot be read: {problem.strerror}") from None
        form = {"client_assertion_type": _BY_STATEMENT, "client_assertion": statement}
        return self._granted(tenant, client, form)

    def _granted(self, tenant: str, client: str, proof: Mapping[str, str]) -> Token:
        host = self._environment.get("AZURE_AUTHORITY_HOST", _LOGIN).rstrip("/")
        form = {
            "grant_type": "client_credentials",
            "client_id": client,
            "scope": f"{_STORAGE}.default",
            **proof,
        }
        return granted(self._transport, f"{host}/{tenant}/oauth2/v2.0/token", form, who=_WHO)

    def _of_service(self) -> Token | None:
        """The identity of an app, a function or the like."""
        url = self._environment.get("IDENTITY_ENDPOINT")
        header = self._environment.get("IDENTITY_HEADER")
        if not url or not header:
            return None
        query = urlencode({"api-version": "2019-08-01", "resource": _STORAGE, **self._client()})
        return asked_for_token(
            self._transport,
            "GET",
            f"{url}?{query}",
            headers={"X-IDENTITY-HEADER": header},
            who="This service's identity",
        )

    def _of_machine(self) -> Token | None:
        base = self._environment.get("AZURE_POD_IDENTITY_AUTHORITY_HOST", _MACHINE).rstrip("/")
        if base.lower() == "none":
            return None
        query = urlencode({"api-version": "2018-02-01", "resource": _STORAGE, **self._client()})
        try:
            answer = self._transport.send(
                "GET", f"{base}/metadata/identity/oauth2/token", connect_seconds=_MACHINE_SECONDS
            )
        except StorageFault:
            return None
        # Asked without the header that it wants, the service of Azure says 400, and no other does.
        if answer.status != 400:
            return None
        return asked_for_token(
            self._transport,
            "GET",
            f"{base}/metadata/identity/oauth2/token?{query}",
            headers={"Metadata": "true"},
            who="This machine's identity",
        )

    def _client(self) -> dict[str, str]:
        client = self._access.client_id or self._environment.get("AZURE_CLIENT_ID", "")
        return {"client_id": client} if client else {}

    def _of_command_line(self) -> Token | None:
        program = shutil.which("az", path=self._environment.get("PATH", ""))
        if program is None:
            return None
        command = [program, "account", "get-access-token", "--resource", _STORAGE, "-o", "json"]
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                check=True,
                timeout=_CLI_SECONDS,
                env=dict(self._environment),
            )
            token = json.loads(done.stdout)["accessToken"]
        except (OSError, subprocess.SubprocessError, ValueError, KeyError):
            # Nobody is logged in there; that is told as if it was not there.
            return None
        return Token(token, time.time() + _CLI_GOOD_SECONDS)
