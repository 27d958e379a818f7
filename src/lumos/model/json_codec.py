"""Encodes values of the model as JSON or plain values; data types as their canonical text."""

from collections.abc import Sequence
from typing import Any, TypeVar, overload

import msgspec

from lumos.model.types import DataType, parse_type

Value = TypeVar("Value")


def _to_wire(value: object) -> object:
    if isinstance(value, DataType):
        return value.text
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _from_wire(type: type[Any], value: Any) -> Any:
    if type is DataType and isinstance(value, str):
        return parse_type(value)
    raise TypeError(f"expected the text of a type, found {value!r}")


# Decimals are written as numbers, with their exact digits.
_encoder = msgspec.json.Encoder(enc_hook=_to_wire, decimal_format="number")


def to_json(value: object, *, indent: int | None = None) -> bytes:
    """The value as JSON."""
    encoded = _encoder.encode(value)
    return encoded if indent is None else msgspec.json.format(encoded, indent=indent)


def from_json(data: bytes | str, type: type[Value]) -> Value:
    """The value of that type from JSON."""
    return msgspec.json.decode(data, type=type, dec_hook=_from_wire)


def to_plain(value: object) -> Any:
    """The value as dictionaries, lists or tuples, and scalars."""
    return msgspec.to_builtins(value, enc_hook=_to_wire)


def from_plain(value: object, type: type[Value]) -> Value:
    """The value of that type from dictionaries, lists and scalars."""
    return msgspec.convert(value, type=type, dec_hook=_from_wire)


class NestedTooDeeply(msgspec.DecodeError):
    """JSON that is nested deeper than the Python stack allows."""

    def __init__(self) -> None:
        super().__init__("JSON is nested too deeply")


@overload
def decode_json(data: bytes | msgspec.Raw) -> Any: ...
@overload
def decode_json(data: bytes | msgspec.Raw, type: type[Value]) -> Value: ...
def decode_json(data: bytes | msgspec.Raw, type: Any = Any) -> Any:
    """Decode JSON; raises `msgspec.MsgspecError` for every invalid input.

    msgspec itself may raise UnicodeDecodeError and RecursionError.
    """
    try:
        return msgspec.json.decode(data, type=type)
    except UnicodeDecodeError as problem:
        raise msgspec.DecodeError(f"JSON is not UTF-8 text: {problem.reason}") from None
    except RecursionError:
        raise NestedTooDeeply from None
