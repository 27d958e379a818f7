"""Reports of publishing to a catalog."""

from datetime import datetime

import msgspec

from lumos.model.report import FORMAT_VERSION, Report


class RefusedPublish(Report, frozen=True, kw_only=True):
    """An entry that the catalog rejected; the next run retries it."""

    kind: str
    key: str
    problem: str


class PublishConflict(Report, frozen=True, kw_only=True):
    """A value that both users and Lumos changed since the last write; the users' value wins."""

    key: str
    path: str
    theirs: str
    ours: str


class CatalogChangeReport(Report, frozen=True, kw_only=True):
    """A change of a dataset that a catalog recorded; `column` if a column was changed."""

    at: datetime
    author: str
    action: str
    details: str
    column: str | None


class CatalogHistoryReport(Report, frozen=True, kw_only=True):
    """The changes of a dataset that a catalog recorded, newest first."""

    format_version: str = FORMAT_VERSION
    catalog: str
    urn: str
    changes: tuple[CatalogChangeReport, ...]


class PublishReport(Report, frozen=True, kw_only=True):
    """The result of publishing to a catalog; `problem` says why changes are still pending.

    The counts are `published` datasets, `unchanged` ones among these, which the catalog already had
    in this form, `hidden` datasets, which were deleted, and `items`: all other entries. If the
    catalog `is_down`, it is not called again before `next_try`.
    """

    format_version: str = FORMAT_VERSION
    platform: str
    kind: str
    published: int = msgspec.field(default=0, name="told")
    unchanged: int = 0
    hidden: int = 0
    items: int = 0
    waiting: int = 0
    refused: tuple[RefusedPublish, ...] = ()
    conflicts: tuple[PublishConflict, ...] = ()
    problem: str | None = None
    status: int | None = None
    is_down: bool = False
    next_try: datetime | None = None

    @property
    def is_complete(self) -> bool:
        return self.problem is None and not self.refused

    @property
    def pending_message(self) -> str | None:
        """A message that says why changes are pending and how to retry them, or None."""
        if self.problem is None:
            return None
        why = self.problem if self.status is None else str(self.status)
        datasets = "dataset" if self.waiting == 1 else "datasets"
        when = "the next scan"
        if self.next_try is not None:
            when = f"a scan after {self.next_try:%H:%M:%S} UTC"
        return (
            f"{self.waiting:,} {datasets} not yet published to {self.kind} ({why.rstrip('.')}). "
            f"Retry with `lumos sync`, or wait for {when}."
        )
