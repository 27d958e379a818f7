"""What is no dataset: terms, users and groups as DataHub has them, and everything else as it is.

What DataHub has no place for lies beside in a platform resource, DataHub's own kind of entity for
things that only a tool knows of. So do jobs, and what was brought from other catalogs, of which
tags and domains are shown all the same.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from lumos.catalogs.datahub_model.annotations import DataHubWords
from lumos.catalogs.datahub_model.extras import (
    CATALOG,
    carried_in,
    folded,
    left_over,
    over,
    plain,
    stated,
    unkept,
    without,
)
from lumos.catalogs.datahub_model.foreign import Shown, shown_by, shown_in
from lumos.catalogs.datahub_model.item_kinds import (
    KINDS,
    WORDS,
    DataHubItemKind,
    home_of,
    key_of,
    kind_and_key,
)
from lumos.catalogs.datahub_model.lenses import State
from lumos.catalogs.datahub_model.names import entity_urn, is_acceptable
from lumos.catalogs.datahub_model.shapes import statements_of
from lumos.catalogs.datahub_model.statements import AspectStatement, DataHubExtras, Entity, Holder
from lumos.catalogs.interface import Item
from lumos.model.catalog import CatalogEntity
from lumos.model.json_codec import from_json, to_json

_RESOURCE: Final = "platformResource"
_INFO: Final = "platformResourceInfo"
_ALSO_KNOWN_AS: Final = "secondaryKeys"
_LOOSE: Final = "urn:lumos:change:"
_BEYOND_ASCII: Final = re.compile(r"[^\x00-\x7f]+")


class DataHubItems:
    """The items that one place holds."""

    def __init__(self, holder: Holder, keeper: DataHubExtras | None = None) -> None:
        self._holder = holder
        self._keeper = keeper

    def all(self) -> Iterator[Item]:
        """Every item, in the order of the place."""
        yield from self.of(list(self._holder.entities()))
        for name in self._holder.loose():
            yield self._change(name)

    def of(self, entities: Iterable[Entity]) -> Iterator[Item]:
        """The items that some entities are."""
        for entity in entities:
            if entity.type == "dataset" or self._only_shows(entity):
                continue
            kind, key = kind_and_key(entity)
            if entity.type == _RESOURCE and (exact := self._exact(entity)) is not None:
                home = self._home(KINDS[type(exact)], key_of(exact))
                if home is None or not statements_of(self._holder, home.urn):
                    yield self._with_edits(exact)
            elif (item := self.get(kind.type, key)) is not None:
                yield item

    def get(self, type: type[Item], key: str) -> Item | None:
        kind = KINDS[type]
        if self._is_loose(key):
            name = key.removeprefix(_LOOSE)
            return self._change(name) if name in self._holder.loose() else None
        home = self._home(kind, key)
        statements = [] if home is None else statements_of(self._holder, home.urn)
        exact = self._exact(_companion(kind, key))
        if home is None and exact is not None:
            return self._with_edits(exact)
        return self._read(kind, key, statements, exact)

    def as_held(self, item: Item) -> Item:
        """The item that `get` gives back once this one is put."""
        kind, key = KINDS[type(item)], key_of(item)
        if CATALOG not in item.raw or self._is_loose(key):
            return item
        rendered = self._rendered(kind, key, item)
        settled = self._read(kind, key, rendered.statements, rendered.exact)
        assert settled is not None, "something is said of what is there"
        return settled

    def put(self, item: Item) -> None:
        """Makes an item exactly this, natively as far as that goes."""
        kind, key = KINDS[type(item)], key_of(item)
        if self._is_loose(key):
            change = carried_in(item.raw)[""][0].body
            self._holder.add_loose(key.removeprefix(_LOOSE), change)
            return
        rendered = self._rendered(kind, key, item)
        if (home := self._home(kind, key)) is not None:
            self._give_way(home)
            self._holder.replace(home, rendered.statements)
        shown = self._free_to_show(item) if isinstance(item, CatalogEntity) else None
        # What is made first says of the other that it was made for it.
        self._put_companion(kind, key, rendered.exact, shown=shown)
        if shown is not None and isinstance(item, CatalogEntity):
            self._show(shown, item)

    def erase(self, item: Item) -> None:
        kind, key = KINDS[type(item)], key_of(item)
        if self._is_loose(key):
            self._holder.remove_loose(key.removeprefix(_LOOSE))
            return
        if (home := self._home(kind, key)) is not None:
            self._holder.replace(home, [])
        if isinstance(item, CatalogEntity):
            self._hide(item.urn)
        self._put_companion(kind, key, None)

    def needed(self, type: type[Item], key: str) -> tuple[Entity, ...]:
        """The entities that an item is kept in, or would be."""
        kind = KINDS[type]
        home, companion = self._home(kind, key), _companion(kind, key)
        if (shown := self._shown(key)) is not None:
            return companion, shown.entity
        if home is None:
            return (companion,)
        beside = shown_in(home)
        shows = () if beside is None else (_companion(KINDS[CatalogEntity], beside.urn),)
        return home, companion, *shows

    def needed_with(self, entity: Entity) -> tuple[Entity, ...]:
        """The entities that have to be read to know what item an entity is."""
        if entity.type == _RESOURCE and (exact := self._exact(entity)) is not None:
            return self.needed(type(exact), key_of(exact))
        if (shown := shown_in(entity)) is not None:
            return entity, _companion(KINDS[CatalogEntity], shown.urn)
        kind, key = kind_and_key(entity)
        return self.needed(kind.type, key)

    # What shows things of other catalogs

    def _shown(self, key: str) -> Shown | None:
        """What shows something of another catalog, if its place holds such entities."""
        shown = shown_by(key)
        is_held = shown is not None and (self._keeper is None or self._keeper.holds(shown.entity))
        return shown if is_held else None

    def _is_ours(self, shown: Shown) -> bool:
        """Whether an entity was made to show something."""
        return shown.entity.urn in self._noted(_companion(KINDS[CatalogEntity], shown.urn))

    def _noted(self, companion: Entity) -> list[str]:
        """The entities that were made to show what is kept in a companion."""
        info = folded(statements_of(self._holder, companion.urn)).get(_INFO) or {}
        return list(info.get(_ALSO_KNOWN_AS) or ())

    def _give_way(self, home: Entity) -> None:
        """Leaves an entity to what DataHub itself names so; what it showed is only kept."""
        shown = shown_in(home)
        if shown is None or not self._is_ours(shown):
            return
        kind = KINDS[CatalogEntity]
        exact = self._exact(_companion(kind, shown.urn))
        self._put_companion(kind, shown.urn, None if exact is None else self._with_edits(exact))

    def _only_shows(self, entity: Entity) -> bool:
        """Whether an entity says nothing but what it was made to show."""
        shown = shown_in(entity)
        if shown is None or not self._is_ours(shown):
            return False
        return folded(statements_of(self._holder, entity.urn)).keys() <= {shown.aspect}

    def _with_edits(self, exact: Item) -> Item:
        """Something of another catalog, with what people changed where it is shown."""
        shown = self._shown(exact.urn) if isinstance(exact, CatalogEntity) else None
        if shown is None or not isinstance(exact, CatalogEntity) or shown.words(exact) is None:
            return exact
        state = folded(statements_of(self._holder, shown.entity.urn))
        if shown.aspect not in state or not self._is_ours(shown):
            return exact
        return shown.with_edits(exact, shown.read(state))

    def _free_to_show(self, item: CatalogEntity) -> Shown | None:
        """What shows something of another catalog, unless somebody else has that name."""
        shown = self._shown(item.urn)
        if shown is None:
            return None
        if shown.words(item) is None:
            self._hide(item.urn)
            return None
        is_there = bool(statements_of(self._holder, shown.entity.urn))
        return None if is_there and not self._is_ours(shown) else shown

    def _show(self, shown: Shown, item: CatalogEntity) -> None:
        then = folded(statements_of(self._holder, shown.entity.urn))
        state = shown.written(then, shown.words(item) or DataHubWords())
        if self._back(shown.entity, state) != then:
            statements = [AspectStatement(aspect=name, body=body) for name, body in state.items()]
            self._holder.replace(shown.entity, statements)

    def _hide(self, key: str) -> None:
        """Takes out what was made to show something, but not what people said of it."""
        shown = self._shown(key)
        if shown is None or not self._is_ours(shown):
            return
        statements = statements_of(self._holder, shown.entity.urn)
        others = [each for each in statements if each.aspect != shown.aspect]
        self._holder.replace(shown.entity, others)

    def _is_loose(self, key: str) -> bool:
        return self._holder.keeps_loose and key.startswith(_LOOSE)

    def _home(self, kind: DataHubItemKind, key: str) -> Entity | None:
        """The entity that an item is in DataHub, if its place holds such entities."""
        home = home_of(kind, key)
        is_held = home is not None and (self._keeper is None or self._keeper.holds(home))
        return home if is_held else None

    def _rendered(self, kind: DataHubItemKind, key: str, item: Item) -> "_Rendered":
        if (home := self._home(kind, key)) is None:
            return _Rendered([], item)
        bare = msgspec.structs.replace(item, raw=without(item.raw))
        carried = carried_in(item.raw)
        state: State = {}
        kind.write(state, bare)
        state = over(state, carried)
        if kind.read(key, state) != bare:
            kind.write(state, bare)
        lost: dict[str, Any] = {}
        if self._keeper is not None:
            lost = plain(unkept(carried, home, self._keeper))
            state = self._keeper.sent(home, state)
        shown = kind.read(key, self._kept(home, state)) if state or carried else None
        if lost:
            exact: Item | None = msgspec.structs.replace(bare, raw={**bare.raw, CATALOG: lost})
        else:
            exact = None if bare == shown else bare
        return _Rendered(stated(state, carried), exact)

    def _read(
        self, kind: DataHubItemKind, key: str, statements: list[AspectStatement], exact: Item | None
    ) -> Item | None:
        """The item that statements are about, with those that must be carried along."""
        home = self._home(kind, key)
        if not statements or home is None:
            return exact
        state = folded(statements)
        item: Item = _since(kind, kind.read(key, state), exact)
        made: State = {}
        kind.write(made, item)
        carried = left_over(statements, self._kept(home, made))
        carried.update(self._still_true(item, home, state))
        others = without(item.raw)
        return msgspec.structs.replace(
            item, raw={**others, CATALOG: carried} if carried else others
        )

    def _still_true(self, item: Item, home: Entity, state: State) -> dict[str, Any]:
        """The statements kept beside that are about aspects which nobody changed since."""
        if self._keeper is None or CATALOG not in item.raw:
            return {}
        return plain(
            {
                aspect: group
                for aspect, group in carried_in(item.raw).items()
                if self._back(home, folded(group)).get(aspect) == state.get(aspect)
            }
        )

    def _back(self, home: Entity, state: State) -> State:
        """A state as it comes back from where it was sent."""
        return state if self._keeper is None else self._kept(home, self._keeper.sent(home, state))

    def _kept(self, home: Entity, state: State) -> State:
        return state if self._keeper is None else self._keeper.kept(home, state)

    def _change(self, name: str) -> CatalogEntity:
        change = self._holder.loose()[name]
        return CatalogEntity(urn=f"{_LOOSE}{name}", raw={CATALOG: {"": [{"body": change}]}})

    def _exact(self, companion: Entity) -> Item | None:
        """The item that Lumos laid into a platform resource, or nothing."""
        info = folded(statements_of(self._holder, companion.urn)).get(_INFO) or {}
        kind = WORDS.get(info.get("resourceType", ""))
        if kind is None:
            return None
        try:
            exact: Item = from_json(info["value"]["blob"], kind.type)
        except (msgspec.MsgspecError, KeyError, TypeError):
            # Not as Lumos wrote it; it comes out again as what it is now.
            return None
        return exact

    def _put_companion(
        self, kind: DataHubItemKind, key: str, item: Item | None, *, shown: Shown | None = None
    ) -> None:
        companion, statements = _companion(kind, key), []
        if item is not None:
            noted = [] if shown is None else [shown.entity.urn]
            if self._exact(companion) == item and self._noted(companion) == noted:
                return
            value = {"blob": _in_ascii(to_json(item).decode()), "contentType": "JSON"}
            body = {"resourceType": kind.word, "primaryKey": key, "value": value}
            if noted:
                body[_ALSO_KNOWN_AS] = noted
            statements = [AspectStatement(aspect=_INFO, body=body)]
        self._holder.replace(companion, statements)


class _Rendered(NamedTuple):
    """What is said of an item as DataHub has it, and all of it where that is more."""

    statements: list[AspectStatement]
    exact: Item | None


def _companion(kind: DataHubItemKind, key: str) -> Entity:
    urn = entity_urn(_RESOURCE, f"{kind.word}.{key}")
    if not is_acceptable(urn):
        mark = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        urn = entity_urn(_RESOURCE, f"{kind.word}~{mark}")
    return Entity(_RESOURCE, urn)


def _in_ascii(text: str) -> str:
    """JSON text that says the same with other characters escaped: DataHub takes it for bytes."""
    if text.isascii():
        return text
    return _BEYOND_ASCII.sub(
        lambda found: "".join(
            f"\\u{unit:04x}" for unit in memoryview(found.group().encode("utf-16-le")).cast("H")
        ),
        text,
    )


def _since(kind: DataHubItemKind, shown: Any, exact: Any) -> Any:
    """The exact item, with what changed in DataHub since."""
    if exact is None:
        return shown
    state: State = {}
    kind.write(state, exact)
    then = kind.read(key_of(exact), state)
    now = {
        field: getattr(shown, field)
        for field in shown.__struct_fields__
        if getattr(shown, field) != getattr(then, field)
    }
    return msgspec.structs.replace(exact, **now)
