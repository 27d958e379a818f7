"""The base class of reports, which commands print as JSON and the SDK returns."""

from typing import Final, Self

import msgspec

FORMAT_VERSION: Final = "1.0"


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A result of a command or SDK method."""

    @classmethod
    def copy_of(cls, value: object) -> Self:
        """A report with the values of the attributes of the same names of another value."""
        return cls(**{name: getattr(value, name) for name in cls.__struct_fields__})
