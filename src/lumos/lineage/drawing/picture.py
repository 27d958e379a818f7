"""The content of a lineage picture, independent of its output format."""

from typing import Literal

import msgspec

from lumos.model.lineage import ColumnMapping, ColumnUse, LineageType

Mark = Literal["breaking", "undetermined", "compatible"]


class BoxReason(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The reason for a verdict; `where` is a position (file:line), `path` a path of columns."""

    text: str
    verdict: Mark
    clause: str = ""
    where: str = ""
    path: tuple[str, ...] = ()


class BoxImpact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The impact of a change on one dataset; the changed dataset has `changes` and no verdict.

    `columns` are its columns that change as a consequence.
    """

    verdict: Mark | None = None
    affected: bool = True
    changes: tuple[str, ...] = ()
    reasons: tuple[BoxReason, ...] = ()
    columns: tuple[str, ...] = ()
    recommendations: tuple[str, ...] = ()


class Box(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A dataset with its columns; `depth` is its distance from the start, negative if upstream.

    `state` is empty for datasets that are only known from lineage. `mark` colours a verdict, which
    `impact` explains.
    """

    urn: str
    name: str
    platform: str
    depth: int = 0
    state: str = ""
    owners: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    mark: Mark | None = None
    impact: BoxImpact | None = None


class Arrow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An edge between two datasets, with its reporters (`origins`), jobs and columns.

    `mark` colours the lines from the upstream columns `marked`, or all lines if there are none.
    """

    upstream: str
    downstream: str
    # A factory, since omit_defaults omits a value only if it is the same object as the default.
    type: LineageType = msgspec.field(default_factory=lambda: "TRANSFORMED")
    confidence: float = 1.0
    origins: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()
    columns: tuple[ColumnMapping, ...] = ()
    uses: tuple[ColumnUse, ...] = ()
    mark: Mark | None = None
    marked: tuple[str, ...] = ()


class PictureStep(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A step from one column to another; None stands for all columns.

    Without `columns`, the first column only influences the second.
    """

    upstream: str
    upstream_column: str | None
    downstream: str
    downstream_column: str | None
    columns: tuple[ColumnMapping, ...] = ()
    uses: tuple[ColumnUse, ...] = ()


class Picture(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The lineage around a dataset or one of its columns."""

    urn: str
    column: str | None = None
    boxes: tuple[Box, ...] = ()
    arrows: tuple[Arrow, ...] = ()
    # For a column, the column steps that are summarised in the arrows.
    steps: tuple[PictureStep, ...] = ()
    cycles: tuple[tuple[str, ...], ...] = ()
    # The number of reachable datasets; `truncated` if some of them are left out.
    total: int = 0
    truncated: bool = False
