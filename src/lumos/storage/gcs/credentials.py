"""Finds credentials where Google's own libraries find them, in the same order."""

import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from lumos.config.secret import MASK
from lumos.storage.errors import NoCredentials, StorageFault
from lumos.storage.gcs.access import GcsAccess
from lumos.storage.gcs.signing import NotAKey, statement
from lumos.storage.http import Transport
from lumos.storage.tokens import Renewable, Token, asked_for_token, granted

_SCOPE: Final = "https://www.googleapis.com/auth/devstorage.read_write"
_TOKENS: Final = "https://oauth2.googleapis.com/token"
_TEXTS: Final = ("client_email", "private_key", "client_id", "client_secret", "refresh_token",
                 "token_uri")  # fmt: skip
_URL: Final = re.compile(r"https?://[^\s/]")
_SIGNED: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_MACHINE: Final = "169.254.169.254"
# A machine outside of the cloud has no metadata service; looking for it must not take long.
_MACHINE_SECONDS: Final = 1.0
_HOUR: Final = 3600


class GcsCredentials:
    """The tokens of an access, found on first use and renewed before they end."""

    def __init__(
        self,
        access: GcsAccess,
        transport: Transport,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._access = access
        self._transport = transport
        self._environment = environment
        self._token = Renewable(self._find)
        self._secrets: tuple[str, ...] = ()

    def current(self) -> Token | None:
        """A token that is good for some minutes; none for anonymous access."""
        return None if self._access.anonymous else self._token.current()

    def scrubbed(self, text: str) -> str:
        """The text without any part of the credentials in use."""
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return self._token.last.scrubbed(text) if self._token.last else text

    def _find(self) -> Token:
        for place, text in self._texts():
            return self._of_text(text, place)
        found = self._of_machine()
        if found is None:
            raise NoCredentials("no credentials were found", code="NoCredentials")
        return found

    def _texts(self) -> Iterator[tuple[str, str]]:
        access, get = self._access, self._environment.get
        if access.credentials:
            yield access.credentials_file or "'credentials'", access.credentials
        elif access.credentials_file:
            yield access.credentials_file, _text(access.credentials_file)
        elif file := get("GOOGLE_APPLICATION_CREDENTIALS"):
            yield file, _text(file)
        else:
            home = get("CLOUDSDK_CONFIG") or os.path.expanduser("~/.config/gcloud")
            usual = os.path.join(home, "application_default_credentials.json")
            if os.path.exists(usual):
                yield usual, _text(usual)

    def _of_text(self, text: str, place: str) -> Token:
        try:
            facts = json.loads(text)
            kind = facts["type"]
        except (ValueError, KeyError, TypeError):
            raise NoCredentials(f"{place} holds no credentials of Google") from None
        wrong = [name for name in _TEXTS if not isinstance(facts.get(name, ""), str)]
        if not _URL.match(str(facts.get("token_uri") or _TOKENS)):
            wrong.append("token_uri")
        if wrong:
            raise NoCredentials(f"{place} holds no credentials of Google: check '{wrong[0]}'")
        self._secrets = tuple(
            str(facts[name])
            for name in ("private_key", "refresh_token", "client_secret")
            if facts.get(name)
        )
        try:
            match kind:
                case "service_account":
                    return self._of_service_account(facts)
                case "authorized_user":
                    return self._of_user(facts)
        except KeyError as missing:
            raise NoCredentials(f"{place} has no {missing}") from None
        except NotAKey as problem:
            raise NoCredentials(f"{place}: {problem}") from None
        raise NoCredentials(
            f"{place} holds credentials of the type '{kind}', which this version does not know; "
            "a key of a service account or a login by gcloud can be used"
        )

    def _of_service_account(self, facts: Mapping[str, Any]) -> Token:
        url = facts.get("token_uri") or _TOKENS
        now = int(time.time())
        claims = {
            "iss": facts["client_email"],
            "scope": _SCOPE,
            "aud": url,
            "iat": now,
            "exp": now + _HOUR,
        }
        signed = statement(
            claims, pem=facts["private_key"], key_id=str(facts.get("private_key_id", ""))
        )
        form = {"grant_type": _SIGNED, "assertion": signed}
        return granted(self._transport, url, form, who="Google")

    def _of_user(self, facts: Mapping[str, Any]) -> Token:
        form = {
            "grant_type": "refresh_token",
            "refresh_token": facts["refresh_token"],
            "client_id": facts["client_id"],
            "client_secret": facts["client_secret"],
        }
        return granted(self._transport, facts.get("token_uri") or _TOKENS, form, who="Google")

    def _of_machine(self) -> Token | None:
        if self._environment.get("NO_GCE_CHECK", "").lower() == "true":
            return None
        host = self._environment.get("GCE_METADATA_HOST", _MACHINE)
        url = f"http://{host}/computeMetadata/v1/instance/service-accounts/default/token"
        headers = {"Metadata-Flavor": "Google"}
        try:
            here = self._transport.send(
                "GET",
                f"http://{host}/",
                headers=lambda: headers,
                connect_seconds=_MACHINE_SECONDS,
            )
        except StorageFault:
            return None
        if here.headers.get("metadata-flavor") != "Google":
            return None
        return asked_for_token(
            self._transport, "GET", url, headers=headers, who="This machine's account"
        )


def _text(file: str) -> str:
    try:
        return Path(file).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        told = getattr(problem, "strerror", None) or "it is no text"
        raise NoCredentials(f"the credentials in {file} cannot be read: {told}") from None
