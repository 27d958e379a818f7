"""Texts as a server of OpenMetadata keeps them."""

from lumos.model.json_codec import to_json


def shown_text(text: str) -> str:
    """A text without NUL, which the server's database takes in no text."""
    return text.replace("\0", "\N{REPLACEMENT CHARACTER}")


def kept_text(text: str) -> str:
    """A text of Lumos's own that comes back as it is: JSON where it would not."""
    return text if shown_text(text) == text else to_json(text).decode()
