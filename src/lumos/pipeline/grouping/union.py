"""Several units as one."""

from collections.abc import Sequence

from lumos.pipeline.grouping.units import Rule, Unit
from lumos.pipeline.grouping.values import varying
from lumos.pipeline.placement import ANY_NAME


def one(units: Sequence[Unit], rule: Rule) -> list[Unit]:
    """The units as one; a unit alone stays as it is."""
    if len(units) < 2:
        return list(units)
    # Where some lie deeper than others, the deepest show how the dataset is partitioned.
    depth = max(len(unit.names) for unit in units)
    deepest = [unit for unit in units if len(unit.names) == depth]
    names = tuple(_general(texts) for texts in zip(*(unit.names for unit in deepest), strict=True))
    endings = {unit.ending for unit in units}
    largest = max(deepest, key=lambda unit: unit.files)
    return [
        Unit(
            names=names,
            shown=names if rule.name == "values" else largest.usual,
            ending=endings.pop() if len(endings) == 1 else "",
            format=units[0].format,
            rows=[row for unit in units for row in unit.rows],
            rules=[*dict.fromkeys(each for unit in units for each in unit.rules), rule],
        )
    ]


def _general(texts: Sequence[str]) -> str:
    """The template that fits several."""
    distinct = list(dict.fromkeys(texts))
    if len(distinct) == 1:
        return distinct[0]
    before, _, after = varying(distinct)
    return f"{''.join(before)}{ANY_NAME}{''.join(after)}"
