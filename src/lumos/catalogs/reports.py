"""The report on publishing to a catalog."""

from datetime import datetime

from lumos.model.report import FORMAT_VERSION, Report


class RefusedPublish(Report, frozen=True, kw_only=True):
    """An entry that the catalog rejected; the next run retries it."""

    kind: str
    key: str
    problem: str


class PublishConflict(Report, frozen=True, kw_only=True):
    """A value that both people and Lumos changed since the last write; theirs was kept."""

    key: str
    path: str
    theirs: str
    ours: str


class PublishReport(Report, frozen=True, kw_only=True):
    """The result of publishing to a catalog; `problem` says why changes are still pending.

    `told` counts published datasets, `unchanged` those that the catalog already had in this form,
    `hidden` those that are gone, and `items` everything else. If the catalog `is_down`, it is not
    tried again before `next_try`.
    """

    format_version: str = FORMAT_VERSION
    platform: str
    kind: str
    told: int = 0
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
        """Whether everything was published."""
        return self.problem is None and not self.refused

    @property
    def complaint(self) -> str | None:
        """Why changes are pending and when they are retried, as a sentence."""
        if self.problem is None:
            return None
        why = self.problem if self.status is None else str(self.status)
        things = "dataset waits" if self.waiting == 1 else "datasets wait"
        when = "the next scan"
        if self.next_try is not None:
            when = f"a scan after {self.next_try:%H:%M:%S} UTC"
        return (
            f"{self.kind}: {self.waiting:,} {things} to be published ({why}); "
            f"{when} or `lumos sync` retries"
        )
