"""Access tokens with a limited lifetime, from the libraries of cloud vendors."""

import threading
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final, NamedTuple

from lumos.config.secret import MASK
from lumos.storage.errors import NoCredentials

# The error code if an optional library is not installed.
NO_LIBRARY: Final = "NoLibrary"
_RENEWAL_MARGIN_SECONDS: Final = 300.0


class Token(NamedTuple):
    """A bearer token; `expires` is in seconds since 1970."""

    text: str
    expires: float | None = None

    def __repr__(self) -> str:
        return f"Token({MASK}, expires={self.expires})"


class TokenCache:
    """A thread-safe cache of the last token, renewed a few minutes before it expires."""

    def __init__(self, fetch: Callable[[], Token]) -> None:
        self._fetch = fetch
        self._lock = threading.Lock()
        self._last: Token | None = None

    def current(self) -> Token:
        """A token that is valid for a few minutes."""
        with self._lock:
            expires = None if self._last is None else self._last.expires
            is_old = expires is not None and expires - time.time() < _RENEWAL_MARGIN_SECONDS
            if self._last is None or is_old:
                self._last = self._fetch()
            return self._last

    def mask_secrets(self, text: str) -> str:
        """The text with the current token masked."""
        return text.replace(self._last.text, MASK) if self._last else text


def vendor_module(name: str, *, library: str, extra: str) -> Any:
    """Import a module of a vendor's library; only needed if there are no static keys."""
    try:
        return import_module(name)
    except ImportError:
        raise NoCredentials(
            f"credentials other than static keys need {library}, on executors too: "
            f"pip install 'lumos[{extra}]'",
            code=NO_LIBRARY,
        ) from None
