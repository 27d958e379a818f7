"""The names of a timeline's files: which actions began, and which of them ended."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from lumos.formats.tables.interface import Entry

_NAME: Final = re.compile(
    r"(?P<begun>\d{14}(?:\d{3})?)(?:_(?P<ended>\d{14}(?:\d{3})?))?"
    r"(?:\.(?P<action>[a-z]+))?(?:\.(?P<state>requested|inflight))?\Z",
    re.ASCII,
)
# The actions that change what the table holds; compactions end as the first two, clustering as
# the third.
WRITES: Final = frozenset({"commit", "deltacommit", "replacecommit"})
# What they are called until they end.
_PENDING_WRITES: Final = WRITES | {"compaction", "logcompaction", "clustering"}
# Clocks of no two places are further apart; beyond that a file was copied.
_ZONES: Final = timedelta(hours=15)


class Instant(NamedTuple):
    """An action: when it began, when it ended if that is told, and the file that says so."""

    begun: str
    ended: str
    action: str
    entry: Entry

    @property
    def place(self) -> tuple[str, str]:
        """Where it stands in the order of time."""
        return (self.ended or self.begun, self.begun)


class Timeline(NamedTuple):
    """The instants that are not archived; `first` is where they begin."""

    writes: tuple[Instant, ...]
    first: str
    pending_compactions: frozenset[str]


def timeline_of(entries: Iterable[Entry]) -> Timeline:
    """The timeline of a folder's files; files of another kind are passed over."""
    writes: dict[str, Instant] = {}
    begun: set[str] = set()
    compactions: set[str] = set()
    saved: set[str] = set()
    for entry in entries:
        match = _NAME.match(entry.name)
        if match is None:
            continue
        instant, action, state = match["begun"], match["action"], match["state"]
        # `<instant>.inflight` is a commit's, as Hudi wrote them first.
        if action in ("inflight", None):
            begun.add(instant)
        elif state is not None:
            if action in _PENDING_WRITES:
                begun.add(instant)
            if action == "compaction":
                compactions.add(instant)
        elif action == "savepoint":
            saved.add(instant)
        elif action in WRITES:
            begun.add(instant)
            writes[instant] = Instant(instant, match["ended"] or "", action, entry)
    ordered = tuple(sorted(writes.values(), key=lambda write: write.place))
    # Archiving leaves saved instants behind, so those are no beginning.
    first = min(begun - saved, default=min(begun, default=""))
    return Timeline(ordered, first, frozenset(compactions - writes.keys()))


def time_of(instant: str, modified: int, *, is_in_utc: bool) -> tuple[datetime, bool]:
    """When an instant was, and whether that is sure; `modified` is when its file was written."""
    written = datetime.fromtimestamp(modified / 1_000_000, UTC)
    told = _told(instant)
    if told is None:
        return written, False
    if is_in_utc:
        return told, True
    # The writer's zone is unknown; its file tells the time as long as nobody copied it.
    return (written if abs(written - told) <= _ZONES else told), False


def _told(instant: str) -> datetime | None:
    try:
        # Many times as quick as naming the parts of this form.
        told = datetime.fromisoformat(f"{instant[:8]}T{instant[8:14]}+00:00")
    except ValueError:
        return None
    return told + timedelta(milliseconds=int(instant[14:] or 0))
