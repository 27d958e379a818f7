"""Shapes as text; everything that comes from outside is escaped."""

from html import escape


def tag(name: str, *content: str, **facts: object) -> str:
    """An element; `_` in the names of facts stands for `-`, and `class_` for `class`."""
    written = "".join(
        f' {fact.rstrip("_").replace("_", "-")}="{escape(_plain(value))}"'
        for fact, value in facts.items()
    )
    inside = "".join(content)
    return f"<{name}{written}>{inside}</{name}>" if inside else f"<{name}{written}/>"


def text(words: str, **facts: object) -> str:
    """Words in a picture."""
    return tag("text", escape(words), **facts)


def title(words: str) -> str:
    """What is shown where the pointer rests."""
    return tag("title", escape(words))


def shortened(words: str, most: int) -> str:
    """The end of a long name, which says more than its beginning."""
    return words if len(words) <= most else f"…{words[1 - most :]}"


def _plain(value: object) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)
