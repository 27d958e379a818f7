"""The two versions of a dataset: its cloud version and its schema's semantic version.

The cloud version, such as `S-312`, counts all changes of a dataset, including those of its data.
"""

import enum
import re
from typing import Final, Literal, TypeAlias, assert_never

import msgspec

from lumos.errors import MisuseError

DEFAULT_PREFIX: Final = "S-"
Level: TypeAlias = Literal["major", "minor", "patch", "none"]
_SEMVER: Final = re.compile(r"(\d+)\.(\d+)\.(\d+)\Z", re.ASCII)
_CLOUD: Final = re.compile(r"(.*?)(\d+)\Z", re.ASCII | re.DOTALL)


class ChangeType(enum.StrEnum):
    """The reason for a new cloud version."""

    SCHEMA_CHANGE = "SCHEMA_CHANGE"
    DATA_UPDATE = "DATA_UPDATE"
    METADATA_UPDATE = "METADATA_UPDATE"


class SchemaVersion(msgspec.Struct, frozen=True, order=True):
    """A semantic version: major.minor.patch."""

    major: int = 1
    minor: int = 0
    patch: int = 0

    @classmethod
    def parse(cls, text: str) -> "SchemaVersion":
        match = _SEMVER.match(text)
        if match is None:
            raise MisuseError(f"'{text}' is not a schema version. One looks like 2.1.0")
        return cls(*map(int, match.groups()))

    def next_major(self) -> "SchemaVersion":
        return SchemaVersion(self.major + 1, 0, 0)

    def next_minor(self) -> "SchemaVersion":
        return SchemaVersion(self.major, self.minor + 1, 0)

    def next_patch(self) -> "SchemaVersion":
        return SchemaVersion(self.major, self.minor, self.patch + 1)

    def next(self, level: Level) -> "SchemaVersion":
        """The version after a change of that level."""
        match level:
            case "major":
                return self.next_major()
            case "minor":
                return self.next_minor()
            case "patch":
                return self.next_patch()
            case "none":
                return self
            case _ as unreachable:
                assert_never(unreachable)

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


class CloudVersion(msgspec.Struct, frozen=True):
    """A counter with a prefix, incremented with each detected change: S-311, S-312."""

    number: int = 1
    prefix: str = DEFAULT_PREFIX

    @classmethod
    def parse(cls, text: str) -> "CloudVersion":
        match = _CLOUD.match(text)
        if match is None:
            raise MisuseError(f"'{text}' is not a cloud version. One looks like S-312")
        return cls(int(match.group(2)), match.group(1))

    def next(self, *, prefix: str) -> "CloudVersion":
        """The next version; the number continues even if the prefix changes."""
        return CloudVersion(self.number + 1, prefix)

    def __str__(self) -> str:
        return f"{self.prefix}{self.number}"
