"""The facets that Lumos reads: column lineage, schema, documentation, owners, tags, sizes."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

import msgspec

from lumos.lineage.openlineage.events import DatasetKey
from lumos.model.json_codec import decode_json
from lumos.model.lineage import ColumnMapping, ColumnUse, Derivation, UseKind

Facet = TypeVar("Facet", bound=msgspec.Struct)


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A part of a facet; unknown keys are ignored."""


class Transformation(_Part, frozen=True, kw_only=True):
    type: str | None = None
    subtype: str | None = None
    description: str | None = None
    masking: bool | None = None


class InputField(_Part, frozen=True, kw_only=True):
    namespace: str
    name: str
    field: str
    transformations: list[Transformation] | None = None


class FieldLineage(_Part, frozen=True, kw_only=True):
    """The origins of a column; older events describe the transformation here."""

    input_fields: list[InputField] | None = None
    transformation_type: str | None = None
    transformation_description: str | None = None


class ColumnLineageFacet(_Part, frozen=True, kw_only=True):
    fields: dict[str, FieldLineage] = {}
    dataset: list[InputField] | None = None


class SchemaField(_Part, frozen=True, kw_only=True):
    name: str
    type: str | None = None
    description: str | None = None


class SchemaFacet(_Part, frozen=True, kw_only=True):
    fields: list[SchemaField] | None = None


class DocumentationFacet(_Part, frozen=True, kw_only=True):
    description: str | None = None


class FacetOwner(_Part, frozen=True, kw_only=True):
    name: str
    type: str | None = None


class OwnershipFacet(_Part, frozen=True, kw_only=True):
    owners: list[FacetOwner] | None = None


class SymlinkIdentifier(_Part, frozen=True, kw_only=True):
    namespace: str
    name: str
    type: str | None = None


class SymlinksFacet(_Part, frozen=True, kw_only=True):
    identifiers: list[SymlinkIdentifier] | None = None


class FacetTag(_Part, frozen=True, kw_only=True):
    key: str
    value: Any = None
    field: str | None = None


class TagsFacet(_Part, frozen=True, kw_only=True):
    tags: list[FacetTag] | None = None


class LifecycleFacet(_Part, frozen=True, kw_only=True):
    lifecycle_state_change: str | None = None


class SizesFacet(_Part, frozen=True, kw_only=True):
    """The amount of data read; one facet has `size`, another `bytes`."""

    row_count: int | None = None
    size: int | None = None
    bytes: int | None = None


class JobTypeFacet(_Part, frozen=True, kw_only=True):
    processing_type: str | None = None
    integration: str | None = None
    job_type: str | None = None


class _Named(_Part, frozen=True, kw_only=True):
    namespace: str
    name: str


class ParentFacet(_Part, frozen=True, kw_only=True):
    job: _Named


class SourceCodeFacet(_Part, frozen=True, kw_only=True):
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


def facet(facets: Mapping[str, msgspec.Raw] | None, kind: type[Facet]) -> Facet | None:
    """The facet of a kind; raises `msgspec.MsgspecError` if it is invalid."""
    return named(facets, FACET_NAMES[kind], kind)


def named(facets: Mapping[str, msgspec.Raw] | None, name: str, kind: type[Facet]) -> Facet | None:
    """The facet with a name, decoded as a kind."""
    found = (facets or {}).get(name)
    if found is None or bytes(found).strip() == b"null":
        return None
    return decode_json(found, kind)


_DERIVATIONS: Final = {each.value: each for each in Derivation}
_USES: Final = {each.value: each for each in UseKind} | {"GROUPBY": UseKind.GROUP_BY}
_MASKED: Final = "masked"


class InputColumns(msgspec.Struct, kw_only=True):
    """The columns of one input that an output is made from or influenced by."""

    mappings: dict[ColumnMapping, None]
    uses: dict[ColumnUse, None]


def columns_of(facet: ColumnLineageFacet) -> dict[DatasetKey, InputColumns]:
    """The mappings and uses of each input, each of them once."""
    found: dict[DatasetKey, InputColumns] = {}
    for column, lineage in facet.fields.items():
        for field in lineage.input_fields or ():
            columns = _columns(found, field)
            for each in _facts(field, _transformations(field, lineage), column):
                _add_fact(columns, each)
    for field in facet.dataset or ():
        columns = _columns(found, field)
        for transformation in field.transformations or (Transformation(type="INDIRECT"),):
            _add_fact(columns, _use(field, transformation, None))
    return found


def _columns(found: dict[DatasetKey, InputColumns], field: InputField) -> InputColumns:
    key = DatasetKey(field.namespace, field.name)
    return found.setdefault(key, InputColumns(mappings={}, uses={}))


def _add_fact(columns: InputColumns, fact: ColumnMapping | ColumnUse) -> None:
    if isinstance(fact, ColumnMapping):
        columns.mappings[fact] = None
    else:
        columns.uses[fact] = None


def _transformations(field: InputField, lineage: FieldLineage) -> Iterable[Transformation]:
    """The transformations of the input field, or the older form at the output column."""
    if field.transformations:
        return field.transformations
    older = (lineage.transformation_type or "").upper()
    return (
        Transformation(
            type="DIRECT",
            subtype="TRANSFORMATION" if older == "MASKED" else older or None,
            description=lineage.transformation_description,
            masking=older == "MASKED",
        ),
    )


def _facts(
    field: InputField, transformations: Iterable[Transformation], column: str
) -> Iterator[ColumnMapping | ColumnUse]:
    for each in transformations:
        subtype = (each.subtype or "").upper()
        if (each.type or "DIRECT").upper() == "INDIRECT" or subtype in _USES:
            yield _use(field, each, column)
            continue
        yield ColumnMapping(
            upstream=field.field,
            downstream=column,
            transformation=each.description or (_MASKED if each.masking else None),
            # An unknown subtype still means that the value is changed.
            derivation=_DERIVATIONS.get(subtype, Derivation.TRANSFORMATION) if subtype else None,
        )


def _use(field: InputField, transformation: Transformation, column: str | None) -> ColumnUse:
    return ColumnUse(
        upstream=field.field,
        usage=_USES.get((transformation.subtype or "").upper(), UseKind.CONDITIONAL),
        downstream=column,
        expression=transformation.description or None,
    )
