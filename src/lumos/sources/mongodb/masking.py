"""Values in pipelines, validators and indexes that look like secrets."""

from collections.abc import Mapping
from typing import Any

from lumos.config.secret import MASK, names_secret, redacted


def masked(value: Any) -> Any:
    """The value, with a mask for texts and numbers under keys that name a secret.

    A validator's rules for a key that is called `password` are no secret.
    """
    if isinstance(value, Mapping):
        return {
            key: MASK if names_secret(key) and _is_plain(each) else masked(each)
            for key, each in value.items()
        }
    if isinstance(value, list):
        return [masked(each) for each in value]
    return redacted(value) if isinstance(value, str) else value


def _is_plain(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)
