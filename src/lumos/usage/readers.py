"""What readers are called in the store: as in the log, or by names that only a key gives away."""

import hashlib
from collections.abc import Callable
from functools import partial

from lumos.config.settings import UsageSettings


def naming(settings: UsageSettings) -> Callable[[str], str] | None:
    """How readers are renamed, where the configuration wants that."""
    if settings.readers == "names":
        return None
    assert settings.key is not None, "the configuration was checked"
    return partial(pseudonym, key=settings.key.reveal().encode())


def pseudonym(name: str, *, key: bytes) -> str:
    """Always the same for the same name and key, and nobody's name."""
    from lumos.usage.query_log import UNKNOWN_READER

    if name == UNKNOWN_READER:
        return name
    short_key = hashlib.blake2b(key, digest_size=32).digest()
    return "reader-" + hashlib.blake2b(name.encode(), key=short_key, digest_size=6).hexdigest()
