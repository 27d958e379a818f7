"""Tolerant access to JSON of other tools, and conversion of default values."""

import json
import math
from typing import Any


def text_at(value: dict[str, Any], key: str) -> str | None:
    """The string under the key, if it is one."""
    found = value.get(key)
    return found if isinstance(found, str) else None


def number_at(value: dict[str, Any], key: str) -> int | None:
    """The whole number under the key, if it is one."""
    found = value.get(key)
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def object_at(value: dict[str, Any], key: str) -> dict[str, Any]:
    """The object under the key, or an empty one."""
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def objects_at(value: dict[str, Any], key: str) -> list[dict[str, Any]]:
    """The objects in the list under the key."""
    found = value.get(key)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def texts_at(value: dict[str, Any], key: str) -> list[str]:
    """The strings in the list under the key."""
    found = value.get(key)
    return [each for each in found if isinstance(each, str)] if isinstance(found, list) else []


def default_text(value: object) -> str | None:
    """A default as text: JSON, except that a string is itself."""
    if isinstance(value, str):
        return value
    try:
        return json.dumps(value, ensure_ascii=False)
    except (RecursionError, TypeError, ValueError):
        # Defaults that nest too deep or are not JSON are dropped.
        return None


def default_value(text: str) -> Any:
    """The JSON value of a default's text, or the text itself if it is not JSON."""
    try:
        value = json.loads(text)
    except (RecursionError, ValueError):
        return text
    # Python accepts NaN and Infinity, which are not JSON.
    return text if isinstance(value, float) and not math.isfinite(value) else value
