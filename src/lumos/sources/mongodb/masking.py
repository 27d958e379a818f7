"""Values in pipelines, validators and indexes that look like secrets."""

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeGuard

from lumos.config.secret import MASK, is_secret_name, redact

# They say of which form a value is, and not which it is.
_OF_FORM: Final = ("$type", "$exists", "$size")
# Below it a validator declares what documents are like.
_DECLARATION: Final = "$jsonSchema"
# Its words for the rules of keys, by their names, and for values.
_OF_KEYS: Final = ("properties", "patternProperties")
_OF_VALUES: Final = ("enum", "const")
# Below it stand whole pipelines, by the names of what they make.
_PIPELINES: Final = "$facet"
# What an expression is compared to stands beside it.
_COMPARING: Final = (
    "$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$cmp", "$in", "$strcasecmp", "$setEquals",
    "$setIsSubset", "$indexOfArray", "$indexOfBytes", "$indexOfCP",
)  # fmt: skip
# Where an operator says which key it means, and where what it does with it.
_MEANT: Final = ("$getField", "input", "field", "path", "k")
_GIVEN: Final = ("value", "regex", "find", "query", "v")

# Where variables are given their names, and how those are called that nobody names.
_VARIABLES: Final = ("let", "vars")
_EACH: Final = ("this", "value")
# Put after a variable that stands for a secret, and taken away again.
_MARK: Final = ".\0secret"
# Programs, which hold values anywhere.
_CODE: Final = ("$where", "$code", "body", "init", "accumulate", "merge", "finalize")


def mask_secrets(value: Any) -> Any:
    """The value, with a mask for whatever is compared to or put under a key that names a secret.

    A validator's rules for a key that is called `password` are no secret.
    """
    return _unmarked(_masked(_marked(value, frozenset())))


def _marked(value: Any, stand_ins: frozenset[str]) -> Any:
    """The value, in which variables that stand for a secret's key name a secret, too."""
    if isinstance(value, Mapping):
        inside = stand_ins | set(_stand_ins(value, stand_ins))
        return {key: _marked(each, inside) for key, each in value.items()}
    if isinstance(value, list):
        return [_marked(each, stand_ins) for each in value]
    if _is_field(value) and value.removeprefix("$$").partition(".")[0] in stand_ins:
        return value + _MARK
    return value


def _stand_ins(value: Mapping[str, Any], known: frozenset[str]) -> Iterator[str]:
    """The variables that an operator gives to what is in it, as far as they are secrets."""
    for holder in _VARIABLES:
        if isinstance(variables := value.get(holder), Mapping):
            yield from (
                name for name, each in variables.items() if _means_secret(_marked(each, known))
            )
    if "input" in value and _names(_marked(value["input"], known)):
        yield from _EACH if "as" not in value else (str(value["as"]),)


def _unmarked(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _unmarked(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_unmarked(each) for each in value]
    return value.removesuffix(_MARK) if _is_field(value) else value


def _masked(value: Any) -> Any:
    if isinstance(value, Mapping):
        is_meant = any(_names(value[key]) for key in _MEANT if key in value)
        return {
            key: _hidden(each) if is_meant and key in _GIVEN else _under(key, each)
            for key, each in value.items()
        }
    if isinstance(value, list):
        # `["$password", ...]` compares whatever the operator is.
        is_secret = any(_is_field(each) and is_secret_name(each) for each in value)
        return [
            _hidden(each) if is_secret and not _is_field(each) else _masked(each) for each in value
        ]
    return redact(value) if isinstance(value, str) else value


def _under(key: str, value: Any) -> Any:
    if is_secret_name(key) or (key in _CODE and isinstance(value, str) and is_secret_name(value)):
        return _hidden(value)
    if key == _DECLARATION:
        return _declared(value, of_secret=False)
    if isinstance(value, Mapping) and key == _PIPELINES:
        return {name: _masked(each) for name, each in value.items()}
    if isinstance(value, list) and key in _COMPARING and any(map(_means_secret, value)):
        return [_compared(each) for each in value]
    return _masked(value)


def _compared(value: Any) -> Any:
    """An expression without what it says outright, which leaves the keys that it looks at."""
    if isinstance(value, Mapping):
        return {
            key: _hidden(each) if key == "$literal" else _compared(each)
            for key, each in value.items()
        }
    if isinstance(value, list):
        return [_compared(each) for each in value]
    return value if _is_field(value) else _hidden(value)


def _declared(value: Any, *, of_secret: bool) -> Any:
    """The rules of a validator without the values that a secret may have."""
    if isinstance(value, list):
        return [_declared(each, of_secret=of_secret) for each in value]
    if not isinstance(value, Mapping):
        return _masked(value)
    rules = {}
    for rule, each in value.items():
        if rule in _OF_KEYS and isinstance(each, Mapping):
            rules[rule] = {
                name: _declared(more, of_secret=of_secret or is_secret_name(name))
                for name, more in each.items()
            }
        elif rule in _OF_VALUES and of_secret:
            rules[rule] = _hidden(each)
        else:
            rules[rule] = _declared(each, of_secret=of_secret)
    return rules


def _hidden(value: Any) -> Any:
    """The value's form without anything that is in it."""
    if isinstance(value, Mapping):
        return {
            key: _masked(each) if key in _OF_FORM else _hidden(each) for key, each in value.items()
        }
    if isinstance(value, list):
        return [_hidden(each) for each in value]
    return value if value is None or isinstance(value, bool) else MASK


def _means_secret(value: Any) -> bool:
    """Whether an expression looks at a key that names a secret."""
    if isinstance(value, Mapping):
        return any(
            _names(each) if key in _MEANT else _means_secret(each) for key, each in value.items()
        )
    if isinstance(value, list):
        return any(map(_means_secret, value))
    return _is_field(value) and is_secret_name(value)


def _names(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_names, value))
    return is_secret_name(value) if isinstance(value, str) else _means_secret(value)


def _is_field(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and value.startswith("$")
