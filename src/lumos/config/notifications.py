"""Who is told of what: channels, messages about changes, and reminders."""

import re
from typing import Annotated, ClassVar, Final

from msgspec import Meta, field

from lumos.config.secret import Secret
from lumos.config.section import Section, spelled
from lumos.config.sources import Names
from lumos.errors import MisuseError, UnknownName, did_you_mean
from lumos.model.change import EventType, Verdict
from lumos.model.pattern import DatasetPattern

# What a template may name in braces.
PLACEHOLDERS: Final = (
    "dataset_name",
    "urn",
    "location",
    "owner_name",
    "event",
    "event_id",
    "verdict",
    "summary",
    "changes",
    "blast_radius",
    "affected",
    "affected_owners",
    "schema_version",
    "cloud_version",
    "time",
)
# Text in quotes is taken for JSON, which has braces of its own.
_IN_BRACES: Final = re.compile(r"\{\{[^{}]*\}\}|\{([^{}\"\n]*)\}")
PLACEHOLDER: Final = re.compile(r"\{\{([A-Za-z_]\w*)\}\}|\{([A-Za-z_]\w*)\}", re.ASCII)

_TITLE: Final = "{dataset_name} {schema_version}: {verdict}"
_TEMPLATE: Final = """\
{event}: {summary}
{changes}
{blast_radius}
{affected}
{urn} {cloud_version}
{location}
owner: {owner_name}
{time}"""


class ChangeRule(Section, frozen=True, kw_only=True):
    """Which changes are told over which channels, and in which words.

    What is not given lets everything through, but for `events`: those with changes of a schema.
    """

    channels: Annotated[Names, Meta(min_length=1), spelled(one=("channel",))]
    datasets: Annotated[Names, spelled(one=("dataset",))] = ()
    verdicts: Annotated[tuple[Verdict, ...], spelled(one=("verdict",))] = ()
    owners: Annotated[Names, spelled(one=("owner",))] = ()
    events: Annotated[tuple[EventType, ...], spelled(one=("event",))] = ()
    title: str = _TITLE
    template: str = _TEMPLATE

    def __post_init__(self) -> None:
        for text in (self.title, self.template):
            _check_placeholders(text)
        for pattern in self.datasets:
            DatasetPattern(pattern)


class Reminder(Section, frozen=True, kw_only=True):
    """A message sent on a schedule (cron), to owners or named people, over named channels."""

    schedule: str
    recipients: Names = ()
    template: str = ""
    channels: Names = ()


class Notifications(Section, frozen=True, kw_only=True):
    """Messages about changes, and reminders by name; a channel's address holds a secret."""

    rest: ClassVar[str | None] = "reminders"

    channels: dict[str, Secret] = field(default_factory=dict)
    changes: tuple[ChangeRule, ...] = ()
    max_tries: Annotated[int, Meta(ge=1, description="a number of tries, at least 1")] = 60
    reminders: dict[str, Reminder] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for rule in self.changes:
            for channel in rule.channels:
                if channel not in self.channels:
                    raise UnknownName("channel", channel, self.channels)


def _check_placeholders(text: str) -> None:
    for match in _IN_BRACES.finditer(text):
        name = match.group(1)
        if name is not None and name not in PLACEHOLDERS:
            hint = did_you_mean(name, PLACEHOLDERS) or f" Known: {', '.join(PLACEHOLDERS)}."
            raise MisuseError(
                f"A template names {{{name}}}, which is no fact of a change.{hint} "
                f"Write {{{{{name}}}}} for the word itself in braces."
            )
