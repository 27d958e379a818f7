"""What a picture of lineage shows, whatever it is drawn with."""

from typing import Literal

import msgspec

from lumos.model.lineage import ColumnMapping, ColumnUse, LineageType

Mark = Literal["breaking", "undetermined", "compatible"]


class BoxReason(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a dataset has its verdict: the clause, `where` it is (file:line), the columns to it."""

    text: str
    verdict: Mark
    clause: str = ""
    where: str = ""
    path: tuple[str, ...] = ()


class BoxImpact(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a change means for one dataset; what changes itself has `changes` instead of a verdict.

    `columns` are its own that change as a consequence.
    """

    verdict: Mark | None = None
    affected: bool = True
    changes: tuple[str, ...] = ()
    reasons: tuple[BoxReason, ...] = ()
    columns: tuple[str, ...] = ()
    recommendations: tuple[str, ...] = ()


class Box(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A dataset, how far it is from where one looks (less than 0: upstream), and its columns.

    `state` is empty for what the store only knows from others; `mark` paints a verdict, which
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
    """Data flows from one dataset to another; who says so, which jobs move it, which columns.

    `mark` paints what leads on from the upstream columns `marked`, or all of it if there are none.
    """

    upstream: str
    downstream: str
    type: LineageType = "TRANSFORMED"
    confidence: float = 1.0
    origins: tuple[str, ...] = ()
    jobs: tuple[str, ...] = ()
    columns: tuple[ColumnMapping, ...] = ()
    uses: tuple[ColumnUse, ...] = ()
    mark: Mark | None = None
    marked: tuple[str, ...] = ()


class Step(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The way from one column to another, or to or from all (None).

    Without `columns`, the one only decides about the other.
    """

    upstream: str
    upstream_column: str | None
    downstream: str
    downstream_column: str | None
    columns: tuple[ColumnMapping, ...] = ()
    uses: tuple[ColumnUse, ...] = ()


class Picture(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Datasets and how they hang together, seen from one of them or from one of its columns."""

    urn: str
    column: str | None = None
    boxes: tuple[Box, ...] = ()
    arrows: tuple[Arrow, ...] = ()
    # Of a column, the single steps that the arrows are made of.
    steps: tuple[Step, ...] = ()
    cycles: tuple[tuple[str, ...], ...] = ()
    # Datasets within reach, and whether some of them are not in the picture.
    total: int = 0
    truncated: bool = False
