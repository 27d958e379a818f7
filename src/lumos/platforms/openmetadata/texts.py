"""Texts as a server of OpenMetadata keeps them."""

from lumos.model.codec import to_json


def shown_text(text: str) -> str:
    """A text without what the server's database takes in no text: NUL, and half characters."""
    cleaned = text.replace("\0", "\N{REPLACEMENT CHARACTER}")
    return cleaned.encode("utf-8", "replace").decode() if not cleaned.isascii() else cleaned


def kept_text(text: str) -> str:
    """A text of Lumos's own that comes back as it is: JSON where it would not."""
    return text if shown_text(text) == text and text.strip() == text else to_json(text).decode()
