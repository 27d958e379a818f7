"""Tokens that let one in for some time, and are fetched anew before it ends."""

import json
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar
from urllib.parse import urlencode

from lumos.config.secret import MASK, redact
from lumos.storage.errors import NoCredentials
from lumos.storage.http import Patience, Transport

RENEWED_BEFORE_SECONDS: Final = 300.0
_PATIENCE: Final = Patience(seconds=15, tries=4)
_USUAL_SECONDS: Final = 3600.0


class Passing(Protocol):
    """Whatever is good until some time; None is for ever."""

    @property
    def expires(self) -> float | None: ...


class Token(NamedTuple):
    """A bearer token; `expires` is in seconds since 1970."""

    text: str
    expires: float | None = None

    def __repr__(self) -> str:
        return f"Token({MASK}, expires={self.expires})"

    def scrubbed(self, told: str) -> str:
        """The text without the token."""
        return told.replace(self.text, MASK) if self.text else told


AnyPassing = TypeVar("AnyPassing", bound=Passing)


class Renewable(Generic[AnyPassing]):
    """What was found last, for as long as it is good; may be used by many threads."""

    def __init__(self, find: Callable[[], AnyPassing]) -> None:
        self._find = find
        self._lock = threading.Lock()
        self.last: AnyPassing | None = None

    def current(self) -> AnyPassing:
        """Something that is good for some minutes."""
        with self._lock:
            known = self.last
            ends = known.expires if known else 0.0
            if known is None or (ends is not None and ends - time.time() < RENEWED_BEFORE_SECONDS):
                self.last = self._find()
            assert self.last is not None
            return self.last


def granted(transport: Transport, url: str, form: Mapping[str, str], *, who: str) -> Token:
    """The token that a server of OAuth gives for a form."""
    return asked_for_token(
        transport,
        "POST",
        url,
        headers={"Content-Type": "application/x-www-form-urlencoded"},
        body=urlencode(form).encode(),
        who=who,
    )


def asked_for_token(
    transport: Transport,
    method: str,
    url: str,
    *,
    headers: Mapping[str, str],
    body: bytes = b"",
    who: str,
    connect_seconds: float = 5.0,
) -> Token:
    """The token in an answer of the usual form; what is said instead is told without secrets."""
    answer = transport.send(
        method,
        url,
        headers=lambda: headers,
        body=body,
        patience=_PATIENCE,
        connect_seconds=connect_seconds,
    )
    facts = _facts(answer.body)
    text = facts.get("access_token")
    if answer.status != 200 or not isinstance(text, str):
        told = facts.get("error_description") or facts.get("error") or f"status {answer.status}"
        said = redact(" ".join(str(told).split()))[:300]
        raise NoCredentials(f"{who} gives no token: {said}", code="NoToken", status=answer.status)
    return Token(text, _end(facts))


def _facts(body: bytes) -> dict[str, Any]:
    try:
        facts = json.loads(body)
    except ValueError:
        return {}
    return facts if isinstance(facts, dict) else {}


def _end(facts: Mapping[str, Any]) -> float:
    """When a token ends; some servers send numbers as texts."""
    try:
        if "expires_on" in facts:
            return float(facts["expires_on"])
        return time.time() + float(facts.get("expires_in", _USUAL_SECONDS))
    except (TypeError, ValueError):
        return time.time() + _USUAL_SECONDS
