"""A dataset as statements of DataHub and back.

Reading gives an entry, and carries along those statements that writing the entry would not make
anew: aspects that Lumos has none for, and details of the others. Writing begins with what is
carried and changes only what says something else than the entry.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any, Final, NamedTuple

import msgspec

from lumos.catalogs.carried_properties import own_properties, pack, restored, unpack
from lumos.catalogs.datahub_model import facts, lineage, schemas
from lumos.catalogs.datahub_model.extras import (
    CATALOG,
    Statements,
    carried_in,
    folded,
    left_over,
    over,
    plain,
    stated,
    unkept,
    without,
)
from lumos.catalogs.datahub_model.lenses import State, changed
from lumos.catalogs.datahub_model.names import instance_name, instance_urn, lumos_urn, platform_urn
from lumos.catalogs.datahub_model.naming import Naming
from lumos.catalogs.datahub_model.shapes import OddAspect
from lumos.catalogs.datahub_model.statements import AspectStatement, DataHubExtras, Entity
from lumos.catalogs.interface import How
from lumos.model.catalog import CatalogEntry
from lumos.model.dataset import Properties
from lumos.model.schema import Schema
from lumos.model.urn import Urn

INSTANCE: Final = "dataPlatformInstance"
NATIVE: Final = frozenset(
    {"schema", "lineage", "ownership", "governance", "documentation", "properties", "definition"}
)
_SHOWN: Final = NATIVE | {"name", "timestamps"}
# DataHub's search index takes no longer texts.
_LONGEST: Final = 30_000


class DataHubAspects(NamedTuple):
    """The statements about a dataset, and how each of its aspects is held in them."""

    statements: list[AspectStatement]
    held: dict[str, How]


class Aspects(NamedTuple):
    """An entity's aspects, and how those of the entry are held in them."""

    entity: Entity
    state: State
    held: dict[str, How]


def instance_of(statements: Iterable[AspectStatement]) -> str | None:
    """The instance that a dataset is said to be in."""
    return _instance(folded(statements))


def tidied(statement: AspectStatement) -> AspectStatement:
    """What a statement says for itself, without what Lumos wrote into it to find its way back."""
    return lineage.tidied(statement)


class DataHubEntries:
    """Turns entries into statements and back, under the names of one place.

    A `keeper` is a place that keeps aspects only. Statements that an entry carries and that would
    not come back from there are packed into the properties, too.
    """

    def __init__(self, naming: Naming, keeper: DataHubExtras | None = None) -> None:
        self._naming = naming
        self._keeper = keeper
        self._last_schema: tuple[Any, Any, str, Schema | None] = (None, None, "", None)

    def read(self, urn: str, statements: Sequence[AspectStatement]) -> CatalogEntry:
        """The dataset that statements are about, with those that must be carried along."""
        statements = _in_force(statements)
        state = folded(statements)
        if any(statement.removes_all for statement in statements):
            facts.write_deleted(state, True)
        entry = self._entry(urn, state)
        made: State = {}
        self._write(made, entry)
        if self._keeper is None:
            carried = left_over(statements, made, tidied=_carriable)
        else:
            made = self._keeper.kept(self._entity(urn), made)
            carried = left_over(statements, made, tidied=lambda each: self._carriable(urn, each))
            carried.update(self._still_true(entry, state))
        others = without(entry.raw)
        if carried or len(others) != len(entry.raw):
            carried_for_all = {**others, CATALOG: carried} if carried else others
            return msgspec.structs.replace(entry, raw=carried_for_all)
        return entry

    def render(self, entry: CatalogEntry) -> DataHubAspects:
        """The statements that say exactly what the entry says."""
        carried = carried_in(entry.raw)
        bare = msgspec.structs.replace(entry, raw=self._packable(entry, carried))
        state: State = {}
        held = self._write(state, bare)
        if not carried:
            return DataHubAspects(stated(state, carried), held)
        ends = [] if self._keeper else [each for each in _each(carried) if each.removes_all]
        carried = {
            aspect: [each for each in group if not each.removes_all]
            for aspect, group in carried.items()
        }
        state = over(state, carried)
        is_erased = entry.deleted and bool(ends)
        told = state.get(facts.STATUS)
        if is_erased:
            facts.write_deleted(state, True)
        if self._entry(entry.urn, state) != bare:
            held = self._write(state, bare, is_new=False)
        if not is_erased:
            # What is there again was not deleted.
            return DataHubAspects(stated(state, carried), held)
        # The deletion itself says it, as the last word.
        state = {**state, facts.STATUS: told} if told is not None else _without_status(state)
        return DataHubAspects([*stated(state, carried), *ends], held)

    def aspects(self, entry: CatalogEntry) -> Aspects:
        """The aspects that say what an entry says, as far as its place takes them."""
        rendered = self.render(entry)
        entity, state = self._entity(entry.urn), folded(rendered.statements)
        if self._keeper is not None and CATALOG in entry.raw:
            state = self._keeper.sent(entity, state)
        return Aspects(entity, state, rendered.held)

    def _entity(self, urn: str) -> Entity:
        own = self._naming.datahub(urn)
        assert own is not None, "entries have URNs of datasets"
        return Entity("dataset", own)

    def _packable(self, entry: CatalogEntry, carried: Statements) -> dict[str, Any]:
        """What an entry carries and its place has no room for."""
        others = without(entry.raw)
        if self._keeper is None or not carried:
            return others
        lost = unkept(carried, self._entity(entry.urn), self._keeper)
        if any(each.removes_all for each in _each(lost)) and facts.STATUS in carried:
            # The deletion says it, and not the mark that will be in its place.
            lost[facts.STATUS] = carried[facts.STATUS]
        if lost and carried.get(facts.PROPERTIES) == []:
            # These will be there only because all this is packed into them.
            lost[facts.PROPERTIES] = []
        if not lost:
            return others
        # The order of keys says nothing, and the same shall be packed as the same text.
        told: dict[str, Any] = msgspec.json.decode(
            msgspec.json.encode({**others, CATALOG: plain(lost)}, order="sorted")
        )
        return told

    def _still_true(self, entry: CatalogEntry, state: State) -> dict[str, Any]:
        """The packed statements about aspects that nobody changed since."""
        assert self._keeper is not None, "only keepers lose statements"
        try:
            packed = carried_in(entry.raw)
        except OddAspect:
            # Not as Lumos packed it.
            return {}
        entity = self._entity(entry.urn)
        is_erased = entry.deleted and any(each.removes_all for each in _each(packed))
        true: Statements = {}
        for aspect, group in packed.items():
            if any(each.removes_all for each in group) or (is_erased and aspect == facts.STATUS):
                is_true = is_erased
            elif aspect == facts.PROPERTIES and not group:
                now = self._body(entry.urn, state, aspect) or {}
                is_true = now in ({}, {"name": entry.name})
            else:
                then = self._keeper.sent(entity, folded(group))
                is_true = self._body(entry.urn, then, aspect) == self._body(
                    entry.urn, state, aspect
                )
            if is_true:
                true[aspect] = group
        return plain(true)

    def _body(self, urn: str, state: State, aspect: str) -> Any:
        """What is said of an aspect, or nothing."""
        if aspect not in state:
            return None
        return self._carriable(urn, AspectStatement(aspect=aspect, body=state[aspect])).body

    def _carriable(self, urn: str, statement: AspectStatement) -> AspectStatement:
        """A statement as it is carried, in the normal form of its place."""
        tidy = _carriable(statement)
        if self._keeper is None or not tidy.replaces:
            return tidy
        kept = self._keeper.kept(self._entity(urn), {tidy.aspect: tidy.body})
        return msgspec.structs.replace(tidy, body=kept.get(tidy.aspect))

    def _write(self, state: State, entry: CatalogEntry, *, is_new: bool = True) -> dict[str, How]:
        """Makes a state say what an entry says, natively as far as that goes."""
        urn = _parsed(entry.urn)
        now = self._shown(entry.urn, state)
        own = self._write_identity(state, entry, now, is_new=is_new)
        if now.schema != entry.schema and schemas.write(
            state, entry.schema, urn.platform, entry.name
        ):
            rows, edits = state.get(schemas.SCHEMA), state.get(schemas.EDITS)
            self._last_schema = (rows, edits, urn.platform, entry.schema)
        if now.lineage != entry.lineage:
            lineage.write(state, entry.lineage, self._naming, own)
        if now.ownership != entry.ownership:
            facts.write_ownership(state, entry.ownership)
        if now.governance != entry.governance:
            facts.write_governance(state, entry.governance)
        if now.definition != entry.definition:
            facts.write_definition(state, entry.definition)
        facts.write_documentation(state, entry.documentation)
        facts.write_timestamps(state, entry.timestamps)
        facts.write_deleted(state, entry.deleted)
        properties = entry.properties or {}
        facts.write_structured(state, properties)
        custom = own_properties(
            {key: text for key, text in properties.items() if not facts.is_structured(key)}
        )
        facts.write_custom(state, custom)
        packed = pack(entry, self._shown(entry.urn, self._reported(state)), longest=_LONGEST)
        facts.write_custom(state, {**custom, **packed.properties})
        return packed.held

    def _write_identity(
        self, state: State, entry: CatalogEntry, now: CatalogEntry, *, is_new: bool
    ) -> str:
        """Names a dataset and says which instance it is in; gives its name in DataHub.

        Of a dataset that is not new the name is written only where it says another one: an aspect
        with nothing but a name would take the place of what is only carried.
        """
        urn = _parsed(entry.urn)
        own = self._naming.datahub(entry.urn)
        assert own is not None, "entries have URNs of datasets"
        if now.name != entry.name or (is_new and facts.PROPERTIES not in state):
            facts.write_name(state, entry.name)
        if urn.instance:
            if _instance(state) != urn.instance:
                instance = instance_urn(urn.platform, urn.instance)
                changed(state, INSTANCE, platform=platform_urn(urn.platform), instance=instance)
        elif lumos_urn(own, _instance(state)) != urn:
            changed(state, INSTANCE, instance=None)
        return own

    def _entry(self, urn: str, state: State) -> CatalogEntry:
        """The entry that a state says, natively and in what Lumos packed into it."""
        exact = unpack(facts.read_custom(state)).exact
        shown = self._shown(urn, state)
        return restored(shown, exact, native=_SHOWN, as_shown=self._as_shown)

    def _as_shown(self, entry: CatalogEntry) -> CatalogEntry:
        state: State = {}
        self._write(state, entry)
        return self._shown(entry.urn, self._reported(state))

    def _reported(self, state: State) -> State:
        """A state without what its place takes for nothing."""
        return state if self._keeper is None else self._keeper.without_empty(state)

    def _shown(self, text: str, state: State) -> CatalogEntry:
        """The entry that DataHub shows."""
        urn = _parsed(text)
        return CatalogEntry(
            urn=text,
            name=facts.read_name(state, urn.name),
            platform=urn.platform,
            schema=self._schema(state, urn.platform),
            lineage=lineage.read(state, self._naming),
            ownership=facts.read_ownership(state),
            governance=facts.read_governance(state),
            documentation=facts.read_documentation(state),
            properties=_properties(state),
            definition=facts.read_definition(state),
            timestamps=facts.read_timestamps(state),
            deleted=facts.read_deleted(state),
        )

    def _schema(self, state: State, platform: str) -> Schema | None:
        """The schema of a state, which mostly is the one that was asked for last."""
        rows, edits = state.get(schemas.SCHEMA), state.get(schemas.EDITS)
        if rows is None:
            return None
        if self._last_schema[:3] != (rows, edits, platform):
            self._last_schema = (rows, edits, platform, schemas.read(state, platform))
        return self._last_schema[3]


_parsed = lru_cache(maxsize=4_096)(Urn.parse)


def _each(statements: Statements) -> Iterable[AspectStatement]:
    return chain.from_iterable(statements.values())


def _in_force(statements: Sequence[AspectStatement]) -> Sequence[AspectStatement]:
    """The statements without those before a deletion after which the dataset was made anew."""
    ends = [number for number, each in enumerate(statements) if each.removes_all]
    later = statements[ends[-1] + 1 :] if ends else []
    return later if any(each.replaces for each in later) else statements


def _without_status(state: State) -> State:
    return {aspect: body for aspect, body in state.items() if aspect != facts.STATUS}


def _carriable(statement: AspectStatement) -> AspectStatement:
    """A statement without what Lumos packed into it, which the entry itself says."""
    if statement.aspect == facts.PROPERTIES and statement.replaces:
        return msgspec.structs.replace(statement, body=facts.without_packed(statement.body))
    return tidied(statement)


def _instance(state: State) -> str | None:
    return instance_name((state.get(INSTANCE) or {}).get("instance") or "")


def _properties(state: State) -> Properties | None:
    own = unpack(facts.read_custom(state)).own
    return {**own, **facts.read_structured(state)} or None
