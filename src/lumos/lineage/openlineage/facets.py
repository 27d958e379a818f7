"""The facets of OpenLineage that Lumos reads, and their conversion to column lineage."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

import msgspec

from lumos.lineage.openlineage.events import DatasetKey
from lumos.model.json_codec import decode_json
from lumos.model.lineage import ColumnMapping, ColumnUse, Derivation, UseKind

FacetT = TypeVar("FacetT", bound=msgspec.Struct)


class _FacetObject(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A JSON object in a facet; unknown keys are ignored."""


class Transformation(_FacetObject, frozen=True, kw_only=True):
    type: str | None = None
    subtype: str | None = None
    description: str | None = None
    masking: bool | None = None


class InputField(_FacetObject, frozen=True, kw_only=True):
    namespace: str
    name: str
    field: str
    transformations: list[Transformation] | None = None


class FieldLineage(_FacetObject, frozen=True, kw_only=True):
    """The origins of a column; older events describe the transformation here."""

    input_fields: list[InputField] | None = None
    transformation_type: str | None = None
    transformation_description: str | None = None


class ColumnLineageFacet(_FacetObject, frozen=True, kw_only=True):
    fields: dict[str, FieldLineage] = {}
    dataset: list[InputField] | None = None


class SchemaField(_FacetObject, frozen=True, kw_only=True):
    name: str
    type: str | None = None
    description: str | None = None


class SchemaFacet(_FacetObject, frozen=True, kw_only=True):
    fields: list[SchemaField] | None = None


class DocumentationFacet(_FacetObject, frozen=True, kw_only=True):
    description: str | None = None


class FacetOwner(_FacetObject, frozen=True, kw_only=True):
    name: str
    type: str | None = None


class OwnershipFacet(_FacetObject, frozen=True, kw_only=True):
    owners: list[FacetOwner] | None = None


class SymlinkIdentifier(_FacetObject, frozen=True, kw_only=True):
    namespace: str
    name: str
    type: str | None = None


class SymlinksFacet(_FacetObject, frozen=True, kw_only=True):
    identifiers: list[SymlinkIdentifier] | None = None


class FacetTag(_FacetObject, frozen=True, kw_only=True):
    key: str
    value: Any = None
    field: str | None = None


class TagsFacet(_FacetObject, frozen=True, kw_only=True):
    tags: list[FacetTag] | None = None


class LifecycleFacet(_FacetObject, frozen=True, kw_only=True):
    lifecycle_state_change: str | None = None


class SizesFacet(_FacetObject, frozen=True, kw_only=True):
    """The amount of data that was read; depending on the facet, in `size` or `bytes`."""

    row_count: int | None = None
    size: int | None = None
    bytes: int | None = None


class JobTypeFacet(_FacetObject, frozen=True, kw_only=True):
    processing_type: str | None = None
    integration: str | None = None
    job_type: str | None = None


class _ParentJob(_FacetObject, frozen=True, kw_only=True):
    namespace: str
    name: str


class ParentFacet(_FacetObject, frozen=True, kw_only=True):
    job: _ParentJob


class SourceCodeFacet(_FacetObject, frozen=True, kw_only=True):
    url: str | None = None


FACET_NAMES: Final[dict[type[msgspec.Struct], str]] = {
    ColumnLineageFacet: "columnLineage",
    SchemaFacet: "schema",
    DocumentationFacet: "documentation",
    OwnershipFacet: "ownership",
    SymlinksFacet: "symlinks",
    TagsFacet: "tags",
    LifecycleFacet: "lifecycleStateChange",
    JobTypeFacet: "jobType",
    ParentFacet: "parent",
    SourceCodeFacet: "sourceCodeLocation",
}

SIZE_FACETS: Final = ("inputStatistics", "dataQualityMetrics")
# All facets that are read.
READ_FACETS: Final = frozenset((*FACET_NAMES.values(), *SIZE_FACETS))


def read_facet(facets: Mapping[str, msgspec.Raw], name: str, kind: type[FacetT]) -> FacetT | None:
    """Decode the facet of this name, if present; raises `msgspec.MsgspecError` if it is invalid."""
    raw = facets.get(name)
    if raw is None or bytes(raw).strip() == b"null":
        return None
    return decode_json(raw, kind)


_DERIVATIONS: Final = {each.value: each for each in Derivation}
_USES: Final = {each.value: each for each in UseKind} | {"GROUPBY": UseKind.GROUP_BY}
_MASKED: Final = "masked"


class InputColumns(msgspec.Struct, kw_only=True):
    """The columns of one input that an output is derived from, or that affect it."""

    mappings: dict[ColumnMapping, None]
    uses: dict[ColumnUse, None]


def columns_by_input(facet: ColumnLineageFacet) -> dict[DatasetKey, InputColumns]:
    """The distinct column mappings and uses of each input."""
    by_input: dict[DatasetKey, InputColumns] = {}
    for column, lineage in facet.fields.items():
        for field in lineage.input_fields or ():
            columns = _columns(by_input, field)
            for each in _mappings_and_uses(field, _transformations(field, lineage), column):
                _add(columns, each)
    for field in facet.dataset or ():
        columns = _columns(by_input, field)
        for transformation in field.transformations or (Transformation(type="INDIRECT"),):
            _add(columns, _column_use(field, transformation, None))
    return by_input


def _columns(by_input: dict[DatasetKey, InputColumns], field: InputField) -> InputColumns:
    key = DatasetKey(field.namespace, field.name)
    return by_input.setdefault(key, InputColumns(mappings={}, uses={}))


def _add(columns: InputColumns, link: ColumnMapping | ColumnUse) -> None:
    if isinstance(link, ColumnMapping):
        columns.mappings[link] = None
    else:
        columns.uses[link] = None


def _transformations(field: InputField, lineage: FieldLineage) -> Iterable[Transformation]:
    """The transformations of an input field; older events have a single one per output column."""
    if field.transformations:
        return field.transformations
    older_type = (lineage.transformation_type or "").upper()
    return (
        Transformation(
            type="DIRECT",
            subtype="TRANSFORMATION" if older_type == "MASKED" else older_type or None,
            description=lineage.transformation_description,
            masking=older_type == "MASKED",
        ),
    )


def _mappings_and_uses(
    field: InputField, transformations: Iterable[Transformation], column: str
) -> Iterator[ColumnMapping | ColumnUse]:
    for each in transformations:
        subtype = (each.subtype or "").upper()
        if (each.type or "DIRECT").upper() == "INDIRECT" or subtype in _USES:
            yield _column_use(field, each, column)
            continue
        yield ColumnMapping(
            upstream=field.field,
            downstream=column,
            transformation=each.description or (_MASKED if each.masking else None),
            # An unknown subtype still means that the value is changed.
            derivation=_DERIVATIONS.get(subtype, Derivation.TRANSFORMATION) if subtype else None,
        )


def _column_use(field: InputField, transformation: Transformation, column: str | None) -> ColumnUse:
    return ColumnUse(
        upstream=field.field,
        usage=_USES.get((transformation.subtype or "").upper(), UseKind.CONDITIONAL),
        downstream=column,
        expression=transformation.description or None,
    )
