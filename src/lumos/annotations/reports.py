"""Reports of the commands on annotations and owners, as the SDK returns and --json prints them."""

from datetime import datetime
from typing import Literal

import msgspec

from lumos.model.annotation import Slot
from lumos.model.catalog import GlossaryTerm
from lumos.model.report import FORMAT_VERSION, Report


class AnnotatedDataset(Report, frozen=True, kw_only=True):
    """A dataset whose annotations changed; without an `event_id` nothing was written."""

    urn: str
    name: str
    changes: tuple[str, ...]
    cloud_version: str
    schema_version: str
    event_id: str | None = None


class OverruledAnnotation(Report, frozen=True, kw_only=True):
    """An annotation without effect: one of higher rank, by the author or reporter `by`, applies."""

    urn: str
    field: str
    what: str
    by: str


class AnnotationReport(Report, frozen=True, kw_only=True):
    """The report of every command that changes annotations.

    `matched` is the number of selected datasets, `changed` the number of changed ones (in a dry
    run, of those that would change). `overruled` are new annotations without effect.
    """

    format_version: str = FORMAT_VERSION
    action: str
    dry_run: bool
    matched: int
    changed: int
    datasets: tuple[AnnotatedDataset, ...]
    overruled: tuple[OverruledAnnotation, ...] = msgspec.field(default=(), name="kept")
    # Users, groups and terms that were written, such as `term Customer`.
    items: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


class ListedAnnotation(Report, frozen=True, kw_only=True):
    """An annotation of a dataset or a field, with its reporter, author and time if known.

    Annotations of a deleted field stay stored in case the field returns. `state` is `said` if the
    dataset has the annotation, and `field gone` if its field does not exist.
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


class LabelCount(Report, frozen=True, kw_only=True):
    """A tag, term, label or property, and how many datasets and fields have it."""

    name: str
    datasets: int
    fields: int


class AnnotationListReport(Report, frozen=True, kw_only=True):
    """The result of a `list` command: annotations, and the number of uses of each label."""

    format_version: str = FORMAT_VERSION
    datasets: int
    labels: tuple[LabelCount, ...]
    annotations: tuple[ListedAnnotation, ...] = msgspec.field(name="words")
    glossary: tuple[GlossaryTerm, ...] | None = None


class MissingDocs(Report, frozen=True, kw_only=True):
    """A dataset without some of the documentation that the configuration requires."""

    urn: str
    name: str
    missing: tuple[str, ...]
    owners: tuple[str, ...]


class ExemptDataset(Report, frozen=True, kw_only=True):
    """A dataset that is exempt from required documentation, and why."""

    urn: str
    name: str
    pattern: str
    reason: str


class MissingDocsReport(Report, frozen=True, kw_only=True):
    """The result of `lumos doc check`; `blocks` if missing documentation is an error.

    `in_baseline` counts datasets whose missing documentation is in the baseline of the gate.
    """

    format_version: str = FORMAT_VERSION
    required: tuple[str, ...]
    mode: str
    checked: int
    complete: int
    blocks: bool
    datasets: tuple[MissingDocs, ...]
    exempt: tuple[ExemptDataset, ...]
    in_baseline: int = 0


class OwnerReport(Report, frozen=True, kw_only=True):
    """A user or a group, and the number of datasets that they own, by ownership type."""

    name: str
    kind: Literal["user", "group"]
    registered: bool
    email: str | None
    display_name: str | None
    members: tuple[str, ...]
    datasets: dict[str, int]


class OwnedDataset(Report, frozen=True, kw_only=True):
    """A dataset and its owners."""

    urn: str
    name: str
    owners: tuple[dict[str, str], ...]


class OwnerListReport(Report, frozen=True, kw_only=True):
    """The result of `lumos owner list`."""

    format_version: str = FORMAT_VERSION
    datasets: int
    unowned: int
    unowned_share: float
    owners: tuple[OwnerReport, ...]
    # Filled if datasets were named, or with --unowned.
    owned: tuple[OwnedDataset, ...] = ()


class OwnerShowReport(Report, frozen=True, kw_only=True):
    """The result of `lumos owner show`."""

    format_version: str = FORMAT_VERSION
    owner: OwnerReport
    owned: tuple[OwnedDataset, ...]


class OwnerAddReport(Report, frozen=True, kw_only=True):
    """The result of `lumos owner add`."""

    format_version: str = FORMAT_VERSION
    name: str
    kind: Literal["user", "group"]
    created: bool
    changed: bool


class OwnerImportReport(AnnotationReport, frozen=True, kw_only=True):
    """The result of `lumos owner import`; `rules` is the number of rules or models with owners."""

    kind: Literal["codeowners", "dbt"]
    rules: int
    unmatched: tuple[str, ...] = ()


class TermReport(Report, frozen=True, kw_only=True):
    """The result of `lumos term set` and `lumos term undefine`."""

    format_version: str = FORMAT_VERSION
    term: GlossaryTerm
    created: bool
    changed: bool
