"""What the commands on owners and enrichment print as JSON and the SDK returns."""

from datetime import datetime
from typing import Final, Literal

import msgspec

from lumos.model.catalog import GlossaryTerm
from lumos.model.report import FORMAT_VERSION, Report
from lumos.model.words import Slot

MOST_KEPT: Final = 50


class RewordedDataset(Report, frozen=True, kw_only=True):
    """A dataset of which something else is said now; without an event nothing was written."""

    urn: str
    name: str
    changes: tuple[str, ...]
    cloud_version: str
    schema_version: str
    event_id: str | None = None


class KeptWord(Report, frozen=True, kw_only=True):
    """What was meant to be said and does not count, since others said something else."""

    urn: str
    field: str
    what: str
    by: str


class WordsReport(Report, frozen=True, kw_only=True):
    """The answer of every command that changes what is said of datasets.

    `matched` datasets were meant and `changed` ones are different now, or would be in a dry run.
    `kept` are words of others that count instead.
    """

    format_version: str = FORMAT_VERSION
    action: str
    dry_run: bool
    matched: int
    changed: int
    datasets: tuple[RewordedDataset, ...]
    kept: tuple[KeptWord, ...] = ()
    # Users, groups and terms that were written, such as `term Customer`.
    items: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    def joined(self, other: "WordsReport") -> "WordsReport":
        """Both reports as one."""
        return msgspec.structs.replace(
            self,
            matched=self.matched + other.matched,
            changed=self.changed + other.changed,
            datasets=(*self.datasets, *other.datasets),
            kept=(*self.kept, *other.kept),
            items=(*self.items, *other.items),
            remarks=(*self.remarks, *other.remarks),
        )


class SaidWord(Report, frozen=True, kw_only=True):
    """One thing that is said of a dataset or a field, by whom and since when, where that is known.

    A field that is gone keeps what is said of it until it comes back.
    """

    urn: str
    dataset: str
    field: str
    slot: Slot
    name: str
    value: str | None
    by: str | None
    author: str | None
    at: datetime | None
    state: Literal["said", "field gone"] = "said"


class Label(Report, frozen=True, kw_only=True):
    """A tag, term, label or property, and how many datasets and fields have it."""

    name: str
    datasets: int
    fields: int


class WordListReport(Report, frozen=True, kw_only=True):
    """The answer of `list`: what is said of datasets, and how often."""

    format_version: str = FORMAT_VERSION
    datasets: int
    labels: tuple[Label, ...]
    words: tuple[SaidWord, ...]
    glossary: tuple[GlossaryTerm, ...] | None = None


class MissingDocs(Report, frozen=True, kw_only=True):
    """A dataset that lacks documentation which the configuration requires."""

    urn: str
    name: str
    missing: tuple[str, ...]
    owners: tuple[str, ...]


class ExemptDataset(Report, frozen=True, kw_only=True):
    """A dataset that needs no documentation, and why."""

    urn: str
    name: str
    pattern: str
    reason: str


class MissingDocsReport(Report, frozen=True, kw_only=True):
    """The answer of `lumos doc list --missing`; `blocks` says that the configuration forbids it."""

    format_version: str = FORMAT_VERSION
    required: tuple[str, ...]
    mode: str
    checked: int
    complete: int
    blocks: bool
    datasets: tuple[MissingDocs, ...]
    exempt: tuple[ExemptDataset, ...]


class OwnerReport(Report, frozen=True, kw_only=True):
    """A user or a group, and how many datasets they own by kind of responsibility."""

    name: str
    kind: Literal["user", "group"]
    registered: bool
    email: str | None
    display_name: str | None
    members: tuple[str, ...]
    datasets: dict[str, int]


class OwnedDataset(Report, frozen=True, kw_only=True):
    """A dataset and who answers for it."""

    urn: str
    name: str
    owners: tuple[dict[str, str], ...]


class OwnerListReport(Report, frozen=True, kw_only=True):
    """The answer of `lumos owner list`."""

    format_version: str = FORMAT_VERSION
    datasets: int
    unowned: int
    unowned_share: float
    owners: tuple[OwnerReport, ...]
    # Told where datasets were asked for.
    owned: tuple[OwnedDataset, ...] = ()


class OwnerAddReport(Report, frozen=True, kw_only=True):
    """The answer of `lumos owner add`."""

    format_version: str = FORMAT_VERSION
    name: str
    kind: Literal["user", "group"]
    created: bool
    changed: bool


class OwnerImportReport(WordsReport, frozen=True, kw_only=True):
    """The answer of `lumos owner import`: which rule named the owners of how many datasets."""

    kind: Literal["codeowners", "dbt"]
    rules: int
    unmatched: tuple[str, ...] = ()


class TermReport(Report, frozen=True, kw_only=True):
    """The answer of `lumos term set`."""

    format_version: str = FORMAT_VERSION
    term: GlossaryTerm
    created: bool
    changed: bool
