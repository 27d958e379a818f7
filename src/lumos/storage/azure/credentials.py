"""Authentication in an Azure account: by account key, SAS token or bearer token."""

import base64
import hashlib
import hmac
import os
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import format_datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from lumos.config.secret import MASK, redact
from lumos.http.client import CA_BUNDLE
from lumos.storage.azure.access import AzureAccess
from lumos.storage.errors import NoCredentials
from lumos.storage.tokens import Token, TokenCache, vendor_module

if TYPE_CHECKING:
    from obstore.store import AzureCredential

VERSION: Final = "2021-12-02"
_SCOPE: Final = "https://storage.azure.com/.default"
# An error code of Microsoft Entra.
_ENTRA_ERROR: Final = re.compile(r"AADSTS\d+.*")
# The headers of which only the values are signed, in this order.
_SIGNED_HEADERS = (
    "content-encoding", "content-language", "content-length", "content-md5", "content-type",
    "date", "if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range",
)  # fmt: skip


class AzureRequest(NamedTuple):
    """A request without a body, before it is authenticated."""

    method: str
    url: str
    headers: Mapping[str, str]


class AzureAuth(msgspec.Struct, frozen=True, kw_only=True):
    """Anonymous access to public containers; subclasses authenticate requests."""

    expires: float | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({MASK})"

    def authenticate_url(self, url: str) -> str:
        """The URL to send the request to, with the SAS token if there is one."""
        return url

    def headers(self, request: AzureRequest) -> Mapping[str, str]:
        """The headers to send."""
        return {**request.headers, "x-ms-version": VERSION}

    def for_obstore(self) -> "AzureCredential":
        """The credential in obstore's format."""
        return {"token": "", "expires_at": None}

    def mask_secrets(self, text: str) -> str:
        """The text with the secret masked."""
        return text


class SharedKey(AzureAuth, frozen=True):
    """The key of an account, which grants full access to it.

    Requests are signed here, because azure-identity does not support account keys.
    """

    account: str
    key: str

    def headers(self, request: AzureRequest) -> Mapping[str, str]:
        now = format_datetime(datetime.now(UTC), usegmt=True)
        headers = {**request.headers, "x-ms-date": now, "x-ms-version": VERSION}
        text = self._text_to_sign(request, {name.lower(): value for name, value in headers.items()})
        try:
            key = base64.b64decode(self.key, validate=True)
        except ValueError:
            raise NoCredentials("the account key is not valid base64") from None
        signature = base64.b64encode(hmac.digest(key, text.encode(), hashlib.sha256)).decode()
        return {**headers, "Authorization": f"SharedKey {self.account}:{signature}"}

    def _text_to_sign(self, request: AzureRequest, headers: Mapping[str, str]) -> str:
        parts = urlsplit(request.url)
        ms_headers = sorted(name for name in headers if name.startswith("x-ms-"))
        query = sorted((name.lower(), value) for name, value in parse_qsl(parts.query, True))
        return "\n".join((
            request.method,
            *(headers.get(name, "") for name in _SIGNED_HEADERS),
            *(f"{name}:{headers[name]}" for name in ms_headers),
            f"/{self.account}{parts.path}",
            *(f"{name}:{value}" for name, value in query),
        ))  # fmt: skip

    def for_obstore(self) -> "AzureCredential":
        return {"access_key": self.key, "expires_at": None}

    def mask_secrets(self, text: str) -> str:
        return text.replace(self.key, MASK)


class SasToken(AzureAuth, frozen=True):
    """A shared access signature, added to the query of every URL."""

    token: str

    def authenticate_url(self, url: str) -> str:
        return f"{url}{'&' if '?' in url else '?'}{self._text}"

    @property
    def _text(self) -> str:
        return self.token.strip().removeprefix("?")

    def for_obstore(self) -> "AzureCredential":
        return {"sas_token": self._text, "expires_at": None}

    def mask_secrets(self, text: str) -> str:
        signatures = [value for name, value in parse_qsl(self._text) if name == "sig"]
        for secret in (self._text, unquote(self._text), *signatures):
            text = text.replace(secret, MASK)
        return text


class BearerToken(AzureAuth, frozen=True):
    """A token of Microsoft Entra."""

    token: str

    def headers(self, request: AzureRequest) -> Mapping[str, str]:
        return {**request.headers, "x-ms-version": VERSION, "Authorization": f"Bearer {self.token}"}

    def for_obstore(self) -> "AzureCredential":
        expires = None if self.expires is None else datetime.fromtimestamp(self.expires, UTC)
        return {"token": self.token, "expires_at": expires}

    def mask_secrets(self, text: str) -> str:
        return text.replace(self.token, MASK)


class AzureCredentials:
    """The credentials for an AzureAccess.

    Tokens are fetched on first use and renewed before they expire.
    """

    def __init__(self, access: AzureAccess, account: str) -> None:
        self._access = access
        self._account = account
        self._tokens = TokenCache(self._fetch)

    def current(self) -> AzureAuth:
        """Authentication that is valid for a few minutes."""
        if self._static_auth is not None:
            return self._static_auth
        token = self._tokens.current()
        return BearerToken(token.text, expires=token.expires)

    def mask_secrets(self, text: str) -> str:
        """The text with all secrets masked."""
        text = (
            self._static_auth.mask_secrets(text)
            if self._static_auth
            else self._tokens.mask_secrets(text)
        )
        secret = self._access.client_secret
        return text.replace(secret, MASK) if secret else text

    @cached_property
    def _static_auth(self) -> AzureAuth | None:
        access = self._access
        if access.anonymous:
            return AzureAuth()
        if access.account_key:
            return SharedKey(self._account, access.account_key)
        return SasToken(access.sas_token) if access.sas_token else None

    def _fetch(self) -> Token:
        errors = vendor_module("azure.core.exceptions", library="azure-identity", extra="azure")
        try:
            token = self._credential.get_token(_SCOPE)
        except (errors.AzureError, ValueError) as problem:
            text = self.mask_secrets(redact(" ".join(str(problem).split())))
            if entra_error := _ENTRA_ERROR.search(text):
                raise NoCredentials(
                    f"Microsoft Entra returned no token: {entra_error.group()[:300]}",
                    code="NoToken",
                ) from None
            if self._access.client_secret:
                raise NoCredentials(
                    f"Microsoft Entra returned no token: {text[:300]}", code="NoToken"
                ) from None
            raise NoCredentials("no credentials were found", code="NoCredentials") from None
        return Token(token.token, token.expires_on)

    @cached_property
    def _credential(self) -> Any:
        """The client secret in the configuration, or else the default chain of azure-identity."""
        access = self._access
        identity = vendor_module("azure.identity", library="azure-identity", extra="azure")
        options = {
            "connection_verify": os.environ.get(CA_BUNDLE) or True,
            # Microsoft's discovery service only knows the public cloud.
            "disable_instance_discovery": "AZURE_AUTHORITY_HOST" in os.environ,
        }
        tenant = access.tenant_id or os.environ.get("AZURE_TENANT_ID")
        client = access.client_id or os.environ.get("AZURE_CLIENT_ID")
        if not access.client_secret:
            return identity.DefaultAzureCredential(
                managed_identity_client_id=client, workload_identity_tenant_id=tenant, **options
            )
        if not tenant or not client:
            missing = "tenant_id" if not tenant else "client_id"
            raise NoCredentials(f"'client_secret' also requires '{missing}'")
        return identity.ClientSecretCredential(tenant, client, access.client_secret, **options)
