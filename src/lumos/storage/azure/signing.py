"""What lets a request into an account: a key that signs it, a signature in its address, a token."""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import TYPE_CHECKING, NamedTuple, Protocol
from urllib.parse import parse_qsl, unquote, urlsplit

from lumos.config.secret import MASK
from lumos.storage.errors import NoCredentials

if TYPE_CHECKING:
    from obstore.store import AzureCredential

VERSION = "2021-12-02"
# Those whose values are signed without their names, in this order.
_SIGNED = ("content-encoding", "content-language", "content-length", "content-md5", "content-type",
           "date", "if-modified-since", "if-match", "if-none-match", "if-unmodified-since",
           "range")  # fmt: skip


class Asked(NamedTuple):
    """A request without a body, before anything lets it in."""

    method: str
    url: str
    headers: Mapping[str, str]


class Login(Protocol):
    """One way to be let in, good until `expires`."""

    @property
    def expires(self) -> float | None: ...

    def address(self, url: str) -> str:
        """The address to ask."""

    def headers(self, asked: Asked) -> Mapping[str, str]:
        """The headers to send."""

    def for_obstore(self) -> "AzureCredential":
        """The same as obstore wants it."""

    def scrubbed(self, told: str) -> str:
        """The text without what lets one in."""


class SharedKey(NamedTuple):
    """The key of an account, which may do everything in it."""

    account: str
    key: str
    expires: float | None = None

    def __repr__(self) -> str:
        return f"SharedKey({self.account!r}, {MASK})"

    def address(self, url: str) -> str:
        return url

    def headers(self, asked: Asked) -> Mapping[str, str]:
        now = format_datetime(datetime.now(UTC), usegmt=True)
        sent = {**asked.headers, "x-ms-date": now, "x-ms-version": VERSION}
        text = self._to_sign(asked, {name.lower(): value for name, value in sent.items()})
        try:
            key = base64.b64decode(self.key, validate=True)
        except ValueError:
            raise NoCredentials("the account key is not in base64 as Azure shows it") from None
        signature = base64.b64encode(hmac.digest(key, text.encode(), hashlib.sha256)).decode()
        return {**sent, "Authorization": f"SharedKey {self.account}:{signature}"}

    def _to_sign(self, asked: Asked, headers: Mapping[str, str]) -> str:
        parts = urlsplit(asked.url)
        own = sorted(name for name in headers if name.startswith("x-ms-"))
        query = sorted((name.lower(), value) for name, value in parse_qsl(parts.query, True))
        return "\n".join((
            asked.method,
            *(headers.get(name, "") for name in _SIGNED),
            *(f"{name}:{headers[name]}" for name in own),
            f"/{self.account}{parts.path}",
            *(f"{name}:{value}" for name, value in query),
        ))  # fmt: skip

    def for_obstore(self) -> "AzureCredential":
        return {"access_key": self.key, "expires_at": None}

    def scrubbed(self, told: str) -> str:
        return told.replace(self.key, MASK)


class Sas(NamedTuple):
    """A shared access signature: some rights, for a time, in the query of every address."""

    token: str
    expires: float | None = None

    def __repr__(self) -> str:
        return f"Sas({MASK})"

    def address(self, url: str) -> str:
        return f"{url}{'&' if '?' in url else '?'}{self._text}"

    @property
    def _text(self) -> str:
        return self.token.strip().removeprefix("?")

    def headers(self, asked: Asked) -> Mapping[str, str]:
        return {**asked.headers, "x-ms-version": VERSION}

    def for_obstore(self) -> "AzureCredential":
        return {"sas_token": self._text, "expires_at": None}

    def scrubbed(self, told: str) -> str:
        signatures = [value for name, value in parse_qsl(self._text) if name == "sig"]
        for secret in (self._text, unquote(self._text), *signatures):
            told = told.replace(secret, MASK)
        return told


class Bearer(NamedTuple):
    """A token of Microsoft Entra."""

    token: str
    expires: float | None = None

    def __repr__(self) -> str:
        return f"Bearer({MASK})"

    def address(self, url: str) -> str:
        return url

    def headers(self, asked: Asked) -> Mapping[str, str]:
        return {**asked.headers, "x-ms-version": VERSION, "Authorization": f"Bearer {self.token}"}

    def for_obstore(self) -> "AzureCredential":
        ends = None if self.expires is None else datetime.fromtimestamp(self.expires, UTC)
        return {"token": self.token, "expires_at": ends}

    def scrubbed(self, told: str) -> str:
        return told.replace(self.token, MASK)


class Nobody(NamedTuple):
    """Public containers, which anybody may list."""

    expires: float | None = None

    def address(self, url: str) -> str:
        return url

    def headers(self, asked: Asked) -> Mapping[str, str]:
        return {**asked.headers, "x-ms-version": VERSION}

    def for_obstore(self) -> "AzureCredential":
        return {"token": "", "expires_at": None}

    def scrubbed(self, told: str) -> str:
        return told
