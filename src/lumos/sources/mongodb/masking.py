"""Values in pipelines, validators and indexes that look like secrets."""

from collections.abc import Mapping
from typing import Any, Final

from lumos.config.secret import MASK, names_secret, redacted

# They say of which form a value is, and not which it is.
_OF_FORM: Final = ("$type", "$exists", "$size")
# The words of a validator that name values.
_OF_VALUES: Final = ("enum", "const")
# Below them stand the rules for keys, by their names.
_DECLARING: Final = ("properties", "patternProperties")


def masked(value: Any, *, declares: bool = False) -> Any:
    """The value, with a mask for whatever is compared to or put under a key that names a secret.

    A validator's rules for a key that is called `password` are no secret.
    """
    if isinstance(value, Mapping):
        return {key: _under(key, each, declares=declares) for key, each in value.items()}
    if isinstance(value, list):
        # `{$eq: ["$password", ...]}` compares, too.
        is_secret = any(_is_field(each) and names_secret(each) for each in value)
        return [
            _hidden(each) if is_secret and not _is_field(each) else masked(each) for each in value
        ]
    return redacted(value) if isinstance(value, str) else value


def _under(key: str, value: Any, *, declares: bool) -> Any:
    if not names_secret(key):
        return masked(value, declares=key in _DECLARING)
    if not declares or not isinstance(value, Mapping):
        return _hidden(value)
    return {
        rule: _hidden(each) if rule in _OF_VALUES else _under(rule, each, declares=False)
        for rule, each in value.items()
    }


def _hidden(value: Any) -> Any:
    """The value's form without anything that is in it."""
    if isinstance(value, Mapping):
        return {
            key: masked(each) if key in _OF_FORM else _hidden(each) for key, each in value.items()
        }
    if isinstance(value, list):
        return [_hidden(each) for each in value]
    return value if value is None or isinstance(value, bool) else MASK


def _is_field(value: object) -> bool:
    return isinstance(value, str) and value.startswith("$")
