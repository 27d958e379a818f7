"""JSON from files that other programs wrote: whatever is wrong with it is one kind of error."""

from typing import Any, TypeVar, overload

import msgspec

Value = TypeVar("Value")


class NestedTooDeeply(msgspec.DecodeError):
    """Lists and objects lie in each other deeper than Python's stack allows."""

    def __init__(self) -> None:
        super().__init__("JSON is nested too deeply")


@overload
def decode_json(data: bytes | msgspec.Raw) -> Any: ...
@overload
def decode_json(data: bytes | msgspec.Raw, type: type[Value]) -> Value: ...
def decode_json(data: bytes | msgspec.Raw, type: Any = Any) -> Any:
    """The value of that type from JSON; raises `msgspec.MsgspecError` for every unreadable text.

    msgspec itself lets UnicodeDecodeError and RecursionError through.
    """
    try:
        return msgspec.json.decode(data, type=type)
    except UnicodeDecodeError as problem:
        raise msgspec.DecodeError(f"JSON is not UTF-8 text: {problem.reason}") from None
    except RecursionError:
        raise NestedTooDeeply from None
