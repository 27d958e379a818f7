"""The report on publishing to a catalog."""

from datetime import datetime

from lumos.model.report import FORMAT_VERSION, Report


class RefusedPublish(Report, frozen=True, kw_only=True):
    """An entry that the catalog does not take; it is tried again the next time."""

    kind: str
    key: str
    problem: str


class PublishConflict(Report, frozen=True, kw_only=True):
    """Something that people and Lumos both changed since Lumos last wrote; theirs was kept."""

    key: str
    path: str
    theirs: str
    ours: str


class PublishReport(Report, frozen=True, kw_only=True):
    """What a catalog was told; `problem` says why the rest waits, where it does.

    `told` are datasets, `unchanged` those of them that the catalog had just so, `hidden` those that
    are gone; `items` is what is no dataset. A catalog that `is_down` does nothing at all for us;
    where it is asked again and again, it is left in peace until `next_try`.
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
        """Whether the catalog has heard of everything."""
        return self.problem is None and not self.refused

    @property
    def complaint(self) -> str | None:
        """Why something waits, and for what, in a sentence."""
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
