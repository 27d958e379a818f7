"""The column lineage facet as mappings and uses, in its older and its newer form."""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from lumos.lineage.openlineage.facets import ColumnLineage, FieldLineage, InputField, Transformation
from lumos.lineage.openlineage.runs import DatasetKey
from lumos.model.lineage import ColumnMapping, ColumnUse, Derivation, UseKind

_DERIVATIONS: Final = {each.value: each for each in Derivation}
_USES: Final = {each.value: each for each in UseKind} | {"GROUPBY": UseKind.GROUP_BY}
_MASKED: Final = "masked"


class Columns(msgspec.Struct, kw_only=True):
    """What one input gives to the columns of an output, and how it decides about them."""

    mappings: dict[ColumnMapping, None]
    uses: dict[ColumnUse, None]


def columns_of(facet: ColumnLineage) -> dict[DatasetKey, Columns]:
    """The mappings and uses of each input, each of them once."""
    found: dict[DatasetKey, Columns] = {}
    for column, lineage in facet.fields.items():
        for field in lineage.input_fields or ():
            columns = _columns(found, field)
            for each in _facts(field, _transformations(field, lineage), column):
                _put(columns, each)
    for field in facet.dataset or ():
        columns = _columns(found, field)
        for transformation in field.transformations or (Transformation(type="INDIRECT"),):
            _put(columns, _use(field, transformation, None))
    return found


def _columns(found: dict[DatasetKey, Columns], field: InputField) -> Columns:
    key = DatasetKey(field.namespace, field.name)
    return found.setdefault(key, Columns(mappings={}, uses={}))


def _put(columns: Columns, fact: ColumnMapping | ColumnUse) -> None:
    if isinstance(fact, ColumnMapping):
        columns.mappings[fact] = None
    else:
        columns.uses[fact] = None


def _transformations(field: InputField, lineage: FieldLineage) -> Iterable[Transformation]:
    """Those of the input field, or else what the older form says of the output column."""
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
            # A subtype that is not known still says that the value is not the same.
            derivation=_DERIVATIONS.get(subtype, Derivation.TRANSFORMATION) if subtype else None,
        )


def _use(field: InputField, transformation: Transformation, column: str | None) -> ColumnUse:
    return ColumnUse(
        upstream=field.field,
        usage=_USES.get((transformation.subtype or "").upper(), UseKind.CONDITIONAL),
        downstream=column,
        expression=transformation.description or None,
    )
