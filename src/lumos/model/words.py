"""What is said of a dataset and its fields, and by whom.

Aspects and schemas hold what counts. Whose words they are is kept beside them, so that each
reporter can take back its own words and no others.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

Slot: TypeAlias = Literal[
    "description",
    "business_context",
    "domain",
    "owner",
    "tag",
    "term",
    "compliance",
    "property",
]

# The place where the data lies: comments of a database, documentation in files.
PLACE: Final = "place"
# People: at a keyboard, in another catalog, and in files under review (`file:<path>`).
USER: Final = "user"
IMPORT: Final = "import"
FILE: Final = "file:"
# Guessed from names by rules of the configuration.
INFERRED: Final = "inferred"


class Key(NamedTuple):
    """What a word is about: a field (`path` is empty for the dataset itself), and what of it.

    `name` says which tag, term, label, property or owner (`TYPE:kind:name`) is meant.
    """

    path: str
    slot: Slot
    name: str = ""


class Word(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that is said; without a value it says that something is not so."""

    value: str | None = ""
    author: str | None = None
    at: datetime | None = None


Words: TypeAlias = Mapping[Key, Word]
Said: TypeAlias = Mapping[str, Words]
"""All that is said of one dataset, by reporter."""


class _Row(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    path: str = ""
    slot: Slot
    name: str = ""
    word: Word


class Saying(msgspec.Struct, frozen=True, kw_only=True):
    """All that one reporter says of a dataset, as it is kept."""

    reporter: str
    rows: tuple[_Row, ...] = ()

    @classmethod
    def of(cls, reporter: str, words: Words) -> "Saying":
        rows = (_Row(path=key.path, slot=key.slot, name=key.name, word=word)
                for key, word in sorted(words.items()))  # fmt: skip
        return cls(reporter=reporter, rows=tuple(rows))

    @property
    def words(self) -> dict[Key, Word]:
        """What is said, by what it is about."""
        return {Key(row.path, row.slot, row.name): row.word for row in self.rows}
