"""Several results laid one over the other, by position or by name."""

from lumos.lineage.sql.relation import Column, Item, Relation, Star, UnionStar


def laid_over(branches: list[Relation], *, is_by_name: bool = False) -> Relation:
    """The union of results; the first gives the names."""
    if len(branches) == 1:
        return branches[0]
    first = branches[0]
    if is_by_name or any(branch.is_open for branch in branches):
        items = _by_name(branches, is_by_name=is_by_name)
    else:
        items = list(first.items)
        for branch in branches[1:]:
            for position, other in enumerate(branch.items[: len(items)]):
                item = items[position]
                if isinstance(item, Column) and isinstance(other, Column):
                    items[position] = item.merged(other)
    made = Relation(items)
    made.implicit = first.implicit
    made.parents = list(branches)
    return made


def _by_name(branches: list[Relation], *, is_by_name: bool) -> list[Item]:
    """Positions hold up to the first star; behind it only names can tell what belongs together."""
    first = branches[0]
    sure = 0 if is_by_name else min(_before_star(branch) for branch in branches)
    items: list[Item] = []
    for position in range(sure):
        merged: Column | None = None
        for branch in branches:
            column = branch.items[position]
            assert isinstance(column, Column)
            merged = column if merged is None else merged.merged(column)
        assert merged is not None
        items.append(merged)
    named = branches if is_by_name or first.is_open else [first]
    names = dict.fromkeys(
        item.name for branch in named for item in branch.items[sure:] if isinstance(item, Column)
    )
    union = UnionStar(branches)
    for name in names:
        found = union.column(name)
        if found is not None:
            items.append(found)
    if first.is_open or (is_by_name and any(branch.is_open for branch in branches)):
        items.append(union)
    return items


def _before_star(branch: Relation) -> int:
    for position, item in enumerate(branch.items):
        if isinstance(item, Star):
            return position
    return len(branch.items)
