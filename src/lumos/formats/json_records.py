"""The records in the beginning of a JSON file: lines, an array, or objects one after the other."""

import json
import re
from typing import Any, Final, NamedTuple

import msgspec

_SPACE: Final = re.compile(r"[ \t\r\n]*")
_TOKEN: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"|["{}\[\]]', re.DOTALL)
_CLOSING: Final = {"{": "}", "[": "]"}
_LONGEST_INTEGER: Final = 100
# How often the last record in an array that a sample cuts off may turn out to be a part of one.
_TRIES: Final = 3
_MOST_BAD: Final = 100


class Records(NamedTuple):
    """Values, how often something between them is no JSON, and the share of the text they take."""

    values: list[Any]
    bad: int = 0
    share: float = 1.0
    is_array: bool = False


def _integer(text: str) -> int:
    # Python refuses to read very long ones; beyond some length all are too large alike.
    return int(text) if len(text) <= _LONGEST_INTEGER else 10**_LONGEST_INTEGER


_quick_decoder = msgspec.json.Decoder()
# Slower, but it says where a value ends, and knows NaN.
_decoder = json.JSONDecoder(parse_int=_integer)


def quick_records(data: bytes, *, whole: bool) -> Records | None:
    """The values in UTF-8 text without any fault but its end; nothing where there is another."""
    if whole:
        values = _decoded(data)
        if values is None:
            return None
        only = values[0] if len(values) == 1 else None
        return Records(only, is_array=True) if isinstance(only, list) else Records(values)
    if data.lstrip()[:1] == b"[":
        return _quick_elements(data)
    for end in (data.rfind(b"\n") + 1, data.rfind(b"\n}") + 2):
        values = _decoded(data[:end])
        if values:
            return Records(values, share=end / len(data))
    return None


def _quick_elements(data: bytes) -> Records | None:
    end = len(data)
    for _ in range(_TRIES):
        end = data.rfind(b"}", 0, end)
        if end < 0:
            return None
        values = _decoded(data[: end + 1] + b"]")
        if values is not None and len(values) == 1:
            return Records(values[0], share=end / len(data), is_array=True)
    return None


def _decoded(data: bytes) -> list[Any] | None:
    try:
        return _quick_decoder.decode_lines(data)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def all_records(text: str, *, whole: bool) -> Records:
    """The values in any text, with what is no JSON between them counted; or RecursionError."""
    start = _after_space(text, 0)
    if text.startswith("[", start):
        array = _elements(text, start + 1, whole=whole)
        if array is not None:
            return array
    return _sequence(text, whole=whole)


def _elements(text: str, position: int, *, whole: bool) -> Records | None:
    """The complete elements of one array; nothing where more follows it."""
    values: list[Any] = []
    end = position
    try:
        while True:
            position = _after_space(text, position)
            if text.startswith("]", position):
                is_all = _after_space(text, position + 1) == len(text)
                return Records(values, is_array=True) if is_all else None
            value, position = _decoder.raw_decode(text, position)
            position = end = _after_space(text, position)
            values.append(value)
            if text.startswith(",", position):
                position += 1
            elif not text.startswith("]", position):
                break
    except ValueError:
        pass
    # A sample ends inside an array as a matter of course; a whole file must not.
    return Records(values, bad=int(whole), share=end / len(text), is_array=True)


def _sequence(text: str, *, whole: bool) -> Records:
    values: list[Any] = []
    bad = position = end = 0
    while bad <= _MOST_BAD + len(values):
        position = _after_space(text, position)
        if position == len(text):
            break
        try:
            value, position = _decoder.raw_decode(text, position)
            values.append(value)
            end = position
        except ValueError:
            next_line = text.find("\n{", position)
            if next_line < 0:
                bad += whole
                break
            bad += 1
            position = next_line + 1
    return Records(values, bad=bad, share=(end or 1) / len(text))


def cut_record(text: str) -> Any | None:
    """A record that is longer than the text, as far as it holds complete objects in a list."""
    open: list[str] = []
    complete: tuple[int, str] | None = None
    for token in _TOKEN.finditer(text):
        kind = text[token.start()]
        if kind in _CLOSING:
            open.append(kind)
        elif kind != '"':
            if not open or _CLOSING[open.pop()] != kind:
                return None
            if kind == "}" and open[-1:] == ["["]:
                complete = token.end(), "".join(open)
        elif len(token[0]) == 1:
            # The text ends inside quotes.
            break
    if complete is None:
        return None
    end, still_open = complete
    closing = "".join(_CLOSING[kind] for kind in reversed(still_open))
    try:
        return _decoder.decode(text[:end] + closing)
    except ValueError:
        return None


def _after_space(text: str, position: int) -> int:
    space = _SPACE.match(text, position)
    return space.end() if space else position
