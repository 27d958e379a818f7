"""Tokens for Google Cloud Storage, which google-auth gets from keys, user logins or federation."""

import json
import logging
import os
import warnings
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC
from pathlib import Path
from typing import Any, Final, TypeAlias

from lumos.config.secret import MASK, redact
from lumos.http.client import CA_BUNDLE
from lumos.storage.errors import NoCredentials
from lumos.storage.gcs.access import GcsAccess
from lumos.storage.tokens import Token, TokenCache, vendor_module

_SCOPES: Final = ("https://www.googleapis.com/auth/devstorage.read_write",)
_SECRET_KEYS: Final = ("private_key", "refresh_token", "client_secret")

_GoogleCredentials: TypeAlias = Any


class GcsCredentials:
    """The tokens for a GcsAccess, fetched on first use and renewed before they expire."""

    def __init__(self, access: GcsAccess, scopes: Sequence[str] = _SCOPES) -> None:
        self._access = access
        self._scopes = scopes
        self._tokens = TokenCache(self._fetch)
        self._google_credentials: _GoogleCredentials = None
        self._request: Any = None

    def current(self) -> Token | None:
        """A token that is valid for a few minutes; None for anonymous access."""
        return None if self._access.anonymous else self._tokens.current()

    def mask_secrets(self, text: str) -> str:
        """The text with all secrets masked."""
        with suppress(ValueError, AttributeError, TypeError):
            document = json.loads(self._access.credentials)
            for secret in filter(None, (document.get(key) for key in _SECRET_KEYS)):
                text = text.replace(secret, MASK)
        return self._tokens.mask_secrets(text)

    def _fetch(self) -> Token:
        errors = _google("google.auth.exceptions")
        try:
            if self._google_credentials is None:
                self._request = _new_request()
                self._google_credentials = self._load()
            self._google_credentials.refresh(self._request)
        except NoCredentials:
            raise
        except (errors.RefreshError, errors.TransportError) as problem:
            # The other arguments contain the entire response, so they are not shown.
            text = self.mask_secrets(redact(" ".join(str(problem.args[0]).split())))[:300]
            raise NoCredentials(f"Google returned no token: {text}", code="NoToken") from None
        expiry = self._google_credentials.expiry
        expires = None if expiry is None else expiry.replace(tzinfo=UTC).timestamp()
        return Token(self._google_credentials.token, expires)

    def _load(self) -> _GoogleCredentials:
        access = self._access
        auth, errors = _google("google.auth"), _google("google.auth.exceptions")
        source = access.credentials_file or (
            "'credentials'" if access.credentials else "the default credentials"
        )
        # Lumos needs no project, so google-auth's warning about a missing project is suppressed.
        logging.getLogger("google.auth._default").setLevel(logging.ERROR)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                # Scopes are added below: with scopes, google-auth would look for a project.
                if access.credentials or access.credentials_file:
                    document = json.loads(access.credentials or _text(access.credentials_file))
                    credentials, _ = auth.load_credentials_from_dict(
                        document, request=self._request
                    )
                else:
                    credentials, _ = auth.default(request=self._request)
            except errors.DefaultCredentialsError as problem:
                # A MalformedError names the missing keys; other causes may quote the credentials.
                cause = problem.__cause__
                shown = cause if isinstance(cause, errors.MalformedError) else problem
                text = redact(" ".join(str(shown.args[0]).split()))[:300].rstrip(".")
                if "default credentials were not found" in text:
                    raise NoCredentials("no credentials were found", code="NoCredentials") from None
                raise NoCredentials(f"{source} contains no Google credentials: {text}") from None
            except (AttributeError, TypeError, ValueError):
                # The message may quote the credentials.
                raise NoCredentials(f"{source} contains no Google credentials") from None
        return _google("google.auth.credentials").with_scopes_if_required(credentials, self._scopes)


def _google(name: str) -> Any:
    return vendor_module(name, library="google-auth", extra="gcs")


def _new_request() -> Any:
    """A request object for google-auth, with the CA bundle of Lumos."""
    transport = _google("google.auth.transport.requests")
    session = _google("requests").Session()
    session.verify = os.environ.get(CA_BUNDLE) or True
    return transport.Request(session)


def _text(file: str) -> str:
    try:
        return Path(file).expanduser().read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        reason = getattr(problem, "strerror", None) or "not a text file"
        raise NoCredentials(f"the credentials in {file} cannot be read: {reason}") from None
