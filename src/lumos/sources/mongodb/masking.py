"""Mask secrets in pipelines, validators and indexes."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeGuard

from lumos.config.secret import MASK, is_secret_name, redact

# Their arguments describe the type of a value, not the value.
_TYPE_OPERATORS: Final = ("$type", "$exists", "$size")
# A validator has the schema of documents below this key.
_SCHEMA_KEY: Final = "$jsonSchema"
# Keywords of JSON Schema with rules by property name, and with values.
_PROPERTY_KEYWORDS: Final = ("properties", "patternProperties")
_VALUE_KEYWORDS: Final = ("enum", "const")
# Contains pipelines by the name of their output.
_FACET: Final = "$facet"
# Operators that compare an expression with the value next to it.
_COMPARISONS: Final = (
    "$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$cmp", "$in", "$strcasecmp", "$setEquals",
    "$setIsSubset", "$indexOfArray", "$indexOfBytes", "$indexOfCP",
)  # fmt: skip
# Arguments of operators with a field, and with a value for it.
_FIELD_ARGUMENTS: Final = ("$getField", "input", "field", "path", "k")
_VALUE_ARGUMENTS: Final = ("value", "regex", "find", "query", "v")

# Keys that define variables, and the names of default variables.
_VARIABLES: Final = ("let", "vars")
_DEFAULT_VARIABLES: Final = ("this", "value")
# Temporarily appended to variables that refer to a secret.
_SECRET_SUFFIX: Final = ".\0secret"
# Program code, which may contain values anywhere.
_CODE: Final = ("$where", "$code", "body", "init", "accumulate", "merge", "finalize")


def mask_secrets(value: Any) -> Any:
    """Mask values that are compared with or stored under a key that names a secret.

    The rules of a validator for a key such as `password` are not masked.
    """
    return _unmark_variables(_mask_value(_mark_variables(value, frozenset())))


def _mark_variables(value: Any, secret_variables: frozenset[str]) -> Any:
    """Append the suffix to variables that refer to the field of a secret."""
    if isinstance(value, Mapping):
        all_variables = secret_variables | set(_secret_variables(value, secret_variables))
        return {key: _mark_variables(item, all_variables) for key, item in value.items()}
    if isinstance(value, list):
        return [_mark_variables(item, secret_variables) for item in value]
    if _is_field(value) and value.removeprefix("$$").partition(".")[0] in secret_variables:
        return value + _SECRET_SUFFIX
    return value


def _secret_variables(value: Mapping[str, Any], known: frozenset[str]) -> Iterator[str]:
    """The variables defined by an operator that refer to a secret."""
    for container_key in _VARIABLES:
        if isinstance(variables := value.get(container_key), Mapping):
            yield from (
                name
                for name, item in variables.items()
                if _refers_to_secret(_mark_variables(item, known))
            )
    if "input" in value and _names_secret(_mark_variables(value["input"], known)):
        yield from _DEFAULT_VARIABLES if "as" not in value else (str(value["as"]),)


def _unmark_variables(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _unmark_variables(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_unmark_variables(item) for item in value]
    return value.removesuffix(_SECRET_SUFFIX) if _is_field(value) else value


def _mask_value(value: Any) -> Any:
    if isinstance(value, Mapping):
        has_secret_field = any(
            _names_secret(value[key]) for key in _FIELD_ARGUMENTS if key in value
        )
        return {
            key: _mask_all(item)
            if has_secret_field and key in _VALUE_ARGUMENTS
            else _mask_under_key(key, item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        # A list such as `["$password", ...]` is a comparison for any operator.
        is_secret = any(_is_field(item) and is_secret_name(item) for item in value)
        return [
            _mask_all(item) if is_secret and not _is_field(item) else _mask_value(item)
            for item in value
        ]
    return redact(value) if isinstance(value, str) else value


def _mask_under_key(key: str, value: Any) -> Any:
    if is_secret_name(key) or (key in _CODE and isinstance(value, str) and is_secret_name(value)):
        return _mask_all(value)
    if key == _SCHEMA_KEY:
        return _mask_schema(value, of_secret=False)
    if isinstance(value, Mapping) and key == _FACET:
        return {name: _mask_value(item) for name, item in value.items()}
    if isinstance(value, list) and key in _COMPARISONS and any(map(_refers_to_secret, value)):
        return [_mask_literals(item) for item in value]
    return _mask_value(value)


def _mask_literals(value: Any) -> Any:
    """Mask the literals of an expression, but not its fields."""
    if isinstance(value, Mapping):
        return {
            key: _mask_all(item) if key == "$literal" else _mask_literals(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_mask_literals(item) for item in value]
    return value if _is_field(value) else _mask_all(value)


def _mask_schema(value: Any, *, of_secret: bool) -> Any:
    """Mask the possible values of secrets in the rules of a validator."""
    if isinstance(value, list):
        return [_mask_schema(item, of_secret=of_secret) for item in value]
    if not isinstance(value, Mapping):
        return _mask_value(value)
    rules = {}
    for rule, item in value.items():
        if rule in _PROPERTY_KEYWORDS and isinstance(item, Mapping):
            rules[rule] = {
                name: _mask_schema(more, of_secret=of_secret or is_secret_name(name))
                for name, more in item.items()
            }
        elif rule in _VALUE_KEYWORDS and of_secret:
            rules[rule] = _mask_all(item)
        else:
            rules[rule] = _mask_schema(item, of_secret=of_secret)
    return rules


def _mask_all(value: Any) -> Any:
    """Mask all values; the structure stays."""
    if isinstance(value, Mapping):
        return {
            key: _mask_value(item) if key in _TYPE_OPERATORS else _mask_all(item)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_mask_all(item) for item in value]
    return value if value is None or isinstance(value, bool) else MASK


def _refers_to_secret(value: Any) -> bool:
    """Whether an expression refers to a key that names a secret."""
    if isinstance(value, Mapping):
        return any(
            _names_secret(item) if key in _FIELD_ARGUMENTS else _refers_to_secret(item)
            for key, item in value.items()
        )
    if isinstance(value, list):
        return any(map(_refers_to_secret, value))
    return _is_field(value) and is_secret_name(value)


def _names_secret(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_names_secret, value))
    return is_secret_name(value) if isinstance(value, str) else _refers_to_secret(value)


def _is_field(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and value.startswith("$")
