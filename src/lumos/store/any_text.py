"""Any text on PostgreSQL, which takes none with NUL in it: that travels under another sign."""

import re
from typing import Any, Final

# A code point that is promised never to be a character.
_SIGN: Final = "\U0010ffff"
_SIGNS: Final = {"\x00": f"{_SIGN}0", _SIGN: f"{_SIGN}1"}
_TEXTS: Final = {sign: text for text, sign in _SIGNS.items()}
_HIDDEN: Final = re.compile(f"[\x00{_SIGN}]")
_SHOWN: Final = re.compile(f"{_SIGN}[01]")


def hidden(text: str) -> str:
    """The text with signs for what PostgreSQL does not take."""
    if "\x00" not in text and _SIGN not in text:
        return text
    return _HIDDEN.sub(lambda match: _SIGNS[match.group()], text)


def shown(text: str) -> str:
    """The text that was hidden."""
    return text if _SIGN not in text else _SHOWN.sub(lambda match: _TEXTS[match.group()], text)


def allow_any_text(connection: Any) -> None:
    """Lets a connection of psycopg take and give any text."""
    from psycopg.types.string import StrDumperUnknown, TextLoader

    class Dumper(StrDumperUnknown):
        def dump(self, obj: str) -> Any:
            return super().dump(hidden(obj))

    class Loader(TextLoader):
        def load(self, data: Any) -> Any:
            text = super().load(data)
            return shown(text) if isinstance(text, str) else text

    connection.adapters.register_dumper(str, Dumper)
    for name in ("text", "varchar"):
        connection.adapters.register_loader(name, Loader)
