"""Which statements have to be carried along because nothing would make them anew."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from lumos.catalogs.datahub_model.json_patches import patched
from lumos.catalogs.datahub_model.lenses import State
from lumos.catalogs.datahub_model.shapes import OddAspect, checked, is_readable
from lumos.catalogs.datahub_model.statements import AspectStatement, DataHubExtras, Entity

CATALOG: Final = "datahub"

# By aspect; an empty list says that there shall be no statement where one would be made.
Statements: TypeAlias = dict[str, list[AspectStatement]]


class _Carried(msgspec.Struct, omit_defaults=True):
    """A statement about the aspect that it stands under."""

    body: Any = None
    beside: dict[str, Any] = {}


def folded(statements: Iterable[AspectStatement]) -> State:
    """The aspects that statements leave behind, the later ones over the earlier."""
    state: State = {}
    for statement in statements:
        if statement.replaces:
            state[statement.aspect] = statement.body
        elif statement.removes:
            state.pop(statement.aspect, None)
        elif statement.patches:
            before = state.get(statement.aspect)
            body = patched(statement.aspect, before, statement.body)
            if body != before and is_readable(statement.aspect, body):
                state[statement.aspect] = body
    return state


def left_over(
    statements: Sequence[AspectStatement],
    made: State,
    *,
    tidied: Callable[[AspectStatement], AspectStatement] = lambda statement: statement,
) -> dict[str, Any]:
    """What is carried: all statements about aspects that are not exactly as they would be made."""
    said: Statements = {aspect: [] for aspect in made}
    for statement in statements:
        said.setdefault(statement.aspect, []).append(statement)
    carried: Statements = {}
    for aspect, group in said.items():
        wanted = [AspectStatement(aspect=aspect, body=made.get(aspect))]
        if group == wanted:
            continue
        tidy = [tidied(statement) for statement in group]
        if tidy != [tidied(statement) for statement in wanted]:
            carried[aspect] = tidy
    return plain(carried)


def carried_in(carried: Mapping[str, Any]) -> Statements:
    """The statements in what an entry or an item carries for DataHub."""
    found: Statements = {}
    mine = carried.get(CATALOG, {})
    if not isinstance(mine, dict):
        raise OddAspect(f"raw.{CATALOG}", f"Expected `object`, got {mine!r}")
    for aspect, items in mine.items():
        try:
            group = msgspec.convert(items, list[_Carried])
        except msgspec.ValidationError as problem:
            raise OddAspect(f"raw.{CATALOG}.{aspect}", str(problem)) from None
        found[aspect] = checked(
            AspectStatement(aspect=aspect, body=item.body, beside=item.beside) for item in group
        )
    return found


def over(made: State, carried: Statements) -> State:
    """The aspects as they would be made, with those that are carried in their place."""
    state = {aspect: body for aspect, body in made.items() if aspect not in carried}
    for group in carried.values():
        state.update(folded(group))
    return state


def stated(state: State, carried: Statements) -> list[AspectStatement]:
    """The statements that leave a state behind, carried ones as they are where they still fit."""
    statements: list[AspectStatement] = []
    for aspect in {**carried, **state}:
        group = carried.get(aspect, [])
        if folded(group).get(aspect) == state.get(aspect):
            statements += group
        elif aspect in state:
            statements += _restated(group, aspect, state[aspect])
    return statements


def unkept(carried: Statements, entity: Entity, keeper: DataHubExtras) -> Statements:
    """The statements that a place would not give back as they are."""
    found: Statements = {}
    for aspect, group in carried.items():
        state = keeper.kept(entity, keeper.sent(entity, folded(group)))
        back = [AspectStatement(aspect=name, body=body) for name, body in state.items()]
        if back != group:
            found[aspect] = group
    return found


def plain(statements: Statements) -> dict[str, Any]:
    """Statements as an entry or an item carries them."""
    return {aspect: [_plain(each) for each in group] for aspect, group in statements.items()}


def without(carried: Mapping[str, Any]) -> dict[str, Any]:
    """What is carried for other catalogs."""
    return {catalog: body for catalog, body in carried.items() if catalog != CATALOG}


def _restated(group: list[AspectStatement], aspect: str, body: Any) -> list[AspectStatement]:
    """The statements about an aspect, the last of which now says something else."""
    last = next((n for n in reversed(range(len(group))) if group[n].replaces), None)
    if last is None or any(each.removes or each.patches for each in group[last + 1 :]):
        return [*group, AspectStatement(aspect=aspect, body=body)]
    return [
        msgspec.structs.replace(each, body=body) if number == last else each
        for number, each in enumerate(group)
    ]


def _plain(statement: AspectStatement) -> dict[str, Any]:
    carried = _Carried(body=statement.body, beside=statement.beside)
    plain: dict[str, Any] = msgspec.to_builtins(carried)
    return plain
