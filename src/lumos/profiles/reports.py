"""The answer of `lumos profile`."""

from lumos.model.dataset import Profile
from lumos.model.discovery import Problem
from lumos.model.report import FORMAT_VERSION, Report


class ProfileReport(Report, frozen=True, kw_only=True):
    """A profile and how it came about; `files_read` were opened now, others were measured before.

    `withheld` are the columns whose values are not told, since a label says that they are private.
    One that could read nothing is not `kept`: the profile of before stands.
    """

    format_version: str = FORMAT_VERSION
    urn: str
    name: str
    completeness: float | None
    profile: Profile
    kept: bool
    files_read: int
    files_known: int
    withheld: tuple[str, ...]
    problems: tuple[Problem, ...]
    seconds: float
