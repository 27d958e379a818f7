"""Reads edges that users declare in a YAML file.

lineage:
  - from: s3://lake/raw/orders
    to: analytics.totals
    job: lumos://airflow/nightly/totals
    columns:
      - from: amount
        to: total
        expression: SUM(amount)
        derivation: AGGREGATION
      - customer_id
    uses:
      - column: country
        usage: FILTER
        expression: country = 'DE'
"""

import os
from pathlib import Path
from typing import Annotated, ClassVar, Final

from msgspec import Meta

from lumos.config.reader import SectionReader
from lumos.config.section import Section, alternative_names
from lumos.config.yaml_tree import (
    ConfigProblem,
    ConfigurationError,
    ListNode,
    read_yaml,
)
from lumos.errors import MisuseError
from lumos.lineage.openlineage.naming import split_name
from lumos.lineage.reported_lineage import (
    DatasetReference,
    LocationReference,
    ReportedEdge,
    ReportedLineage,
    TableName,
    UrnReference,
)
from lumos.model.lineage import ColumnMapping, ColumnUse, Derivation, LineageType, UseKind
from lumos.model.urn import SCHEME, Urn

_KEY: Final = "lineage"

Upstream = Annotated[str, alternative_names(also=("from",))]
Downstream = Annotated[str, alternative_names(also=("to",))]


class DeclaredColumn(Section, frozen=True, kw_only=True):
    """A column and its origin; a plain name means the same column on both sides."""

    shorthand: ClassVar[str | None] = "upstream"

    upstream: Upstream
    downstream: Annotated[str | None, alternative_names(also=("to",))] = None
    expression: Annotated[str | None, alternative_names(also=("transformation",))] = None
    derivation: Derivation | None = None
    cast_to: str | None = None


class DeclaredUse(Section, frozen=True, kw_only=True):
    """A column that influences one downstream column, or all."""

    column: Annotated[str, alternative_names(also=("upstream", "from"))]
    usage: UseKind
    downstream: Annotated[str | None, alternative_names(also=("to",))] = None
    expression: str | None = None
    cast_to: str | None = None


class DeclaredEdge(Section, frozen=True, kw_only=True):
    """An edge from one dataset to another."""

    upstream: Upstream
    downstream: Downstream
    type: LineageType = "TRANSFORMED"
    confidence: Annotated[float, Meta(ge=0, le=1, description="a number from 0 to 1")] = 1.0
    job: str | None = None
    columns: tuple[DeclaredColumn, ...] = ()
    uses: tuple[DeclaredUse, ...] = ()

    def __post_init__(self) -> None:
        for name in (self.upstream, self.downstream, self.job or ""):
            if name.startswith(SCHEME):
                Urn.parse(name)
        if self.job is not None and not self.job.startswith(SCHEME):
            raise MisuseError(
                f"The job '{self.job}' must be a URN, such as lumos://airflow/nightly/totals."
            )


class Declarations(Section, frozen=True, kw_only=True):
    """The content of a file."""

    lineage: tuple[DeclaredEdge, ...] = ()


def report_declarations(file: Path, *, name: str) -> ReportedLineage:
    """The edges in a file; raises ConfigurationError with all problems by line.

    `name` is the file's name in reports. Relative paths are relative to the file's folder.
    """
    problems: list[ConfigProblem]
    root, problems = read_yaml(file, environment={})
    declared = SectionReader({}, problems).section(root, Declarations)
    if problems or not isinstance(declared, Declarations):
        raise ConfigurationError(problems)
    node = root.entries[_KEY].node if _KEY in root.entries else None
    lines = [item.position.line for item in node.items] if isinstance(node, ListNode) else []
    edges = (
        _edge(each, name, line, file.parent)
        for each, line in zip(declared.lineage, lines, strict=True)
    )
    return ReportedLineage(reporter=f"declared:{name}", edges=tuple(edges))


def parse_reference(text: str, *, folder: Path | None = None) -> DatasetReference:
    """Parse a dataset that a user named: a URN, a URL, a path, a table or the end of a path."""
    text = text.strip()
    if text.startswith(SCHEME):
        return UrnReference(urn=str(Urn.parse(text.rstrip("/"))))
    if "://" in text or text.startswith("/"):
        return LocationReference(uri=text)
    if text.startswith(("./", "../", "~")):
        path = Path(text).expanduser()
        return LocationReference(
            uri=os.path.normpath(path if folder is None else folder.absolute() / path)
        )
    if "/" in text:
        return TableName(parts=tuple(part for part in text.split("/") if part))
    return TableName(parts=split_name(text, lower=True))


def _edge(declared: DeclaredEdge, file: str, line: int | None, folder: Path) -> ReportedEdge:
    return ReportedEdge(
        upstream=parse_reference(declared.upstream, folder=folder),
        downstream=parse_reference(declared.downstream, folder=folder),
        type=declared.type,
        confidence=declared.confidence,
        job=declared.job,
        columns=tuple(
            ColumnMapping(
                upstream=each.upstream,
                downstream=each.downstream or each.upstream,
                transformation=each.expression,
                derivation=each.derivation,
                cast_to=each.cast_to,
                file=file,
                line=line,
            )
            for each in declared.columns
        ),
        uses=tuple(
            ColumnUse(
                upstream=each.column,
                usage=each.usage,
                downstream=each.downstream,
                expression=each.expression,
                cast_to=each.cast_to,
                file=file,
                line=line,
            )
            for each in declared.uses
        ),
    )
