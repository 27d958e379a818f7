"""Groups the changes since the last digest by recipient (pure).

Owners get the changes of their datasets, and breaking changes of other datasets that affect these.
Digests mention neither new data nor the flags of reminders.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from lumos.model.annotation import REMINDER
from lumos.model.change import ChangeEvent, EventType
from lumos.model.urn import Urn
from lumos.notifications.messages import printable_text
from lumos.notifications.reminder_text import bullet_list
from lumos.rendering.text import join_names, plural
from lumos.schemas.wording import blast_radius_of

TITLE: Final = "{change_count}, {breaking_count} breaking"
TEMPLATE: Final = """\
Hi {owner_name},

{change_count} since {since}.

Breaking changes:
{breaking}

Other changes:
{changes}

Catalog: {catalog_url}"""
_MAX_NAMES: Final = 5
_NOUNS: Final = {
    EventType.CREATED: ("new dataset", "new datasets"),
    EventType.SCHEMA_CHANGED: ("schema change", "schema changes"),
    EventType.METADATA_CHANGED: ("annotation change", "annotation changes"),
    EventType.DELETED: ("deleted dataset", "deleted datasets"),
    EventType.RESTORED: ("restored dataset", "restored datasets"),
    EventType.RENAMED: ("renamed dataset", "renamed datasets"),
    EventType.MERGED: ("merged dataset", "merged datasets"),
    EventType.SPLIT: ("split dataset", "split datasets"),
}


class Digest:
    """The changes for one recipient: a sentence for each breaking one, names for the others."""

    def __init__(self) -> None:
        self.breaking: list[str] = []
        self._others: dict[EventType, list[str]] = {}

    def add(self, event: ChangeEvent) -> None:
        name = printable_text(Urn.parse(event.urn).name)
        if is_breaking(event):
            effect = "" if event.affected is None else blast_radius_of(event.affected)
            sentence = f"{name}: {'; '.join(filter(None, (event.summary, effect)))}"
            self.breaking.append(printable_text(sentence))
        else:
            self._others.setdefault(event.type, []).append(name)

    @property
    def count(self) -> int:
        """The number of changes."""
        return len(self.breaking) + sum(map(len, self._others.values()))

    def values(self) -> dict[str, str]:
        """The values of placeholders about the changes."""
        counts = []
        for type, nouns in _NOUNS.items():
            if names := self._others.get(type):
                distinct = list(dict.fromkeys(names))
                counts.append(f"{plural(len(names), *nouns)}: {join_names(distinct, _MAX_NAMES)}")
        return {
            "change_count": plural(self.count, "change"),
            "breaking_count": str(len(self.breaking)),
            "breaking": bullet_list(self.breaking),
            "changes": bullet_list(counts),
        }


def group_changes(
    events: Iterable[ChangeEvent],
    owners: Mapping[str, Sequence[str]],
    *,
    named: Sequence[str],
    to_owners: bool,
) -> tuple[dict[str, Digest], Digest]:
    """The digest of each recipient, and a digest of the changes that concern no owner.

    `owners` are the owners of datasets by URN. `named` recipients get all changes.
    """
    digests: dict[str, Digest] = {}
    unowned = Digest()
    for event in events:
        recipients = dict.fromkeys(owners.get(event.urn, ()))
        if is_breaking(event) and event.affected is not None:
            for each in event.affected.datasets:
                # The current owners or, if there are none, the owners at the time of the change.
                recipients |= dict.fromkeys(owners.get(each.urn) or each.owners)
        if to_owners and not recipients:
            unowned.add(event)
        for name in {**(recipients if to_owners else {}), **dict.fromkeys(named)}:
            digests.setdefault(name, Digest()).add(event)
    return digests, unowned


def is_mentioned(event: ChangeEvent) -> bool:
    """Whether a digest mentions an event."""
    reporter = str(event.metadata.get("reporter", ""))
    return event.type in _NOUNS and not reporter.startswith(REMINDER)


def is_breaking(event: ChangeEvent) -> bool:
    """Whether consumers may fail according to the compatibility rules or to their SQL."""
    return event.breaking or (event.affected is not None and event.affected.breaking > 0)
