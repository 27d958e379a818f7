"""Access to JSON of other tools that ignores unexpected types, and conversion of defaults."""

import json
import math
from typing import Any


def text_at(value: dict[str, Any], key: str) -> str | None:
    """The value of a key if it is a string, else None."""
    item = value.get(key)
    return item if isinstance(item, str) else None


def number_at(value: dict[str, Any], key: str) -> int | None:
    """The value of a key if it is an integer, else None."""
    item = value.get(key)
    return item if isinstance(item, int) and not isinstance(item, bool) else None


def object_at(value: dict[str, Any], key: str) -> dict[str, Any]:
    """The value of a key if it is an object, else an empty object."""
    item = value.get(key)
    return item if isinstance(item, dict) else {}


def objects_at(value: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """The objects in the list that is the value of a key."""
    item = value.get(key)
    return [each for each in item if isinstance(each, dict)] if isinstance(item, list) else []


def texts_at(value: dict[str, Any], key: str) -> list[str]:
    """The strings in the list that is the value of a key."""
    item = value.get(key)
    return [each for each in item if isinstance(each, str)] if isinstance(item, list) else []


def default_text(value: object) -> str | None:
    """A default value as text: a string unchanged, other values as JSON."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except (RecursionError, TypeError, ValueError):
        # Ignore defaults that are nested too deeply or that JSON cannot represent.
        return None


def default_value(text: str) -> Any:
    """The default value for a text: the value if the text is JSON, else the text."""
    try:
        value = json.loads(text)
    except (RecursionError, ValueError):
        return text
    # Reject NaN and Infinity, which Python accepts although they are not JSON.
    return text if isinstance(value, float) and not math.isfinite(value) else value
