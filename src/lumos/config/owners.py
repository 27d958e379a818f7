"""Which owners that files name are groups, and which are users."""

from fnmatch import fnmatchcase
from typing import Final, Literal, TypeAlias

from lumos.config.section import Section
from lumos.config.sources import Names
from lumos.errors import MisuseError

OwnerKind: TypeAlias = Literal["user", "group"]

# Names whose last word is one of these are groups where the configuration names none.
_USUAL_GROUPS: Final = tuple(
    f"{start}{word}{end}"
    for word in ("team", "group", "squad", "guild", "chapter")
    for start in ("", "*[-_ .]")
    for end in ("", "s")
)


class OwnerRules(Section, frozen=True, kw_only=True):
    """Groups and users by name, where a file does not say which they are; `*` is any text."""

    groups: Names | None = None
    users: Names = ()

    def __post_init__(self) -> None:
        groups = self.groups or ()
        if not all(pattern.strip() for pattern in (*groups, *self.users)):
            raise MisuseError("A name or pattern of owners is empty.")
        both = {each.casefold() for each in groups} & {each.casefold() for each in self.users}
        if both:
            raise MisuseError(
                f"'{min(both)}' stands under 'groups' and under 'users'. Take it out of one."
            )

    def configured_kind(self, name: str) -> OwnerKind | None:
        """What the configuration says of a name; users count before groups."""
        if _fits(name, self.users):
            return "user"
        return "group" if _fits(name, self.groups or ()) else None

    def kind(self, name: str) -> OwnerKind:
        """What somebody is of whom nothing else is known."""
        usual = _USUAL_GROUPS if self.groups is None else ()
        return self.configured_kind(name) or ("group" if _fits(name, usual) else "user")


def _fits(name: str, patterns: Names) -> bool:
    folded = name.casefold()
    return any(fnmatchcase(folded, pattern.casefold()) for pattern in patterns)
