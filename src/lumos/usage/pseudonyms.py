"""Names of readers in the store: as in the log, or keyed pseudonyms."""

import hashlib
from collections.abc import Callable
from functools import partial

from lumos.config.settings import UsageSettings


def reader_renamer(settings: UsageSettings) -> Callable[[str], str] | None:
    """Return the function that renames readers, if the configuration requires pseudonyms."""
    if settings.readers == "names":
        return None
    assert settings.key is not None, "no key for pseudonyms"
    return partial(pseudonym, key=settings.key.reveal().encode())


def pseudonym(name: str, *, key: bytes) -> str:
    """A stable pseudonym for a name and key."""
    from lumos.usage.query_log.reader import UNKNOWN_READER

    if name == UNKNOWN_READER:
        return name
    short_key = hashlib.blake2b(key, digest_size=32).digest()
    return "reader-" + hashlib.blake2b(name.encode(), key=short_key, digest_size=6).hexdigest()
