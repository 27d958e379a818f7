"""What is written to a catalog that people edit: laws over arbitrary edits, and the stories."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from lumos.catalogs.three_way_merge import MEASURED, Conflict, merge, merge_item
from lumos.model.catalog import CatalogEntity, CatalogEntry
from lumos.model.dataset import (
    ASPECTS,
    Documentation,
    Governance,
    Lineage,
    Owner,
    Ownership,
    Schedule,
    Statistics,
    UpstreamEdge,
)
from lumos.model.lineage import ColumnMapping, ColumnUse, UseKind
from lumos.model.schema import Field, NestedField, Schema
from lumos.model.types import INT64, STRING, Member, Struct

WORDS = ("a", "b", "c", "d")
PLACE = Struct((Member("x", INT64), Member("y", STRING)))
# What Lumos alone measures follows Lumos, so laws about people's edits leave it out.
EDITED = tuple(name for name in ASPECTS if name not in {*MEASURED, "schema"})


def some(*values: Any) -> SearchStrategy[tuple[Any, ...]]:
    return st.lists(st.sampled_from(values), unique=True, max_size=4).map(tuple)


TAGS = some(*WORDS)
TEXTS = st.none() | st.sampled_from(WORDS)
OWNERS = st.builds(
    Owner, name=st.sampled_from(("ann", "bob")), kind=st.sampled_from(("user", "group")),
    type=st.sampled_from(("TECHNICAL_OWNER", "DATA_STEWARD")),
)  # fmt: skip
COLUMNS = st.builds(
    ColumnMapping, upstream=st.sampled_from(("u", "v")), downstream=st.sampled_from(("x", "y")),
    transformation=TEXTS,
)  # fmt: skip
USES = st.builds(
    ColumnUse, upstream=st.just("u"), usage=st.just(UseKind.JOIN), expression=TEXTS,
    line=st.none() | st.integers(1, 2),
)  # fmt: skip
EDGES = st.lists(
    st.builds(
        UpstreamEdge,
        urn=st.sampled_from(("lumos://s3/a", "lumos://s3/b")),
        type=st.sampled_from(("TRANSFORMED", "COPIED")),
        columns=st.lists(
            COLUMNS, unique_by=lambda each: (each.upstream, each.downstream), max_size=3
        ).map(tuple),
        uses=st.lists(USES, unique_by=lambda use: use.expression, max_size=2).map(tuple),
    ),
    unique_by=lambda edge: edge.urn,
    max_size=2,
).map(tuple)
NOTES = st.lists(
    st.builds(
        NestedField, path=st.sampled_from(("p.x", "p.y")), description=TEXTS, tags=TAGS,
        native_type=st.none() | st.just("n"),
    ).filter(lambda note: note != NestedField(path=note.path)),
    unique_by=lambda note: note.path,
    max_size=2,
).map(tuple)  # fmt: skip
FIELDS = st.lists(
    st.builds(
        Field, name=st.sampled_from(("i", "s")), type=st.sampled_from((INT64, STRING)),
        nullable=st.booleans(), description=TEXTS, tags=TAGS,
    )
    | st.builds(Field, name=st.just("p"), type=st.just(PLACE), nested=NOTES),
    unique_by=lambda field: field.name,
    max_size=3,
).map(lambda fields: Schema(fields=tuple(fields)))  # fmt: skip
# What a catalog says of a dataset in a way of its own: things with names, lists, and more of these.
RECORDS = st.dictionaries(
    st.sampled_from(WORDS),
    st.sampled_from(WORDS)
    | st.lists(st.sampled_from(WORDS), unique=True, max_size=3)
    | st.lists(
        st.fixed_dictionaries({"tag": st.sampled_from(WORDS)}, optional={"context": TEXTS}),
        unique_by=lambda item: item["tag"],
        max_size=3,
    ),
    max_size=3,
)
CARRIED = st.dictionaries(
    st.sampled_from(("datahub", "atlas")),
    st.dictionaries(
        st.sampled_from(("embed", "globalTags")),
        st.lists(st.fixed_dictionaries({"body": RECORDS}), min_size=1, max_size=2),
        min_size=1,
    ),
)
ENTRIES = st.builds(
    CatalogEntry,
    urn=st.just("lumos://s3/lake/orders"),
    name=st.sampled_from(WORDS),
    platform=st.just("s3"),
    schema=st.none() | FIELDS,
    statistics=st.none() | st.builds(Statistics, file_count=st.integers(0, 3)),
    governance=st.none() | st.builds(Governance, tags=TAGS, terms=TAGS, compliance=TAGS),
    ownership=st.none()
    | st.lists(OWNERS, unique=True, max_size=3).map(lambda each: Ownership(owners=tuple(each))),
    documentation=st.none()
    | st.builds(Documentation, description=TEXTS, business_context=TEXTS, domain=TEXTS),
    properties=st.none() | st.dictionaries(st.sampled_from(WORDS), st.sampled_from(WORDS)),
    schedule=st.none() | st.builds(Schedule, cron=st.sampled_from(("0 1 * * *", "0 2 * * *"))),
    lineage=st.none() | st.builds(Lineage, upstream=EDGES, downstream=EDGES),
    deleted=st.booleans(),
    raw=CARRIED,
)


def over(entry: CatalogEntry, below: CatalogEntry) -> CatalogEntry:
    """The entry with the aspects of another where it has none."""
    given = {name: value for name in ASPECTS if (value := getattr(entry, name)) is not None}
    carried = entry.raw or below.raw
    return msgspec.structs.replace(
        below, name=entry.name, deleted=entry.deleted, raw=carried, **given
    )


@given(ENTRIES)
def test_an_empty_catalog_gets_what_lumos_has(ours: CatalogEntry) -> None:
    assert merge(None, None, ours).entry == ours


@given(ENTRIES, ENTRIES)
def test_where_nobody_edited_the_catalog_follows_lumos(
    base: CatalogEntry, ours: CatalogEntry
) -> None:
    merged = merge(base, base, ours)
    assert merged.entry == over(ours, base)
    assert not merged.conflicts


@given(ENTRIES, ENTRIES)
def test_where_lumos_has_nothing_new_every_edit_stays(
    base: CatalogEntry, theirs: CatalogEntry
) -> None:
    merged = merge(base, theirs, base)
    assert not merged.conflicts
    for name in (*EDITED, "deleted", "raw"):
        assert getattr(merged.entry, name) == getattr(theirs, name), name


@given(ENTRIES, ENTRIES, ENTRIES)
def test_writing_again_changes_nothing(
    base: CatalogEntry, theirs: CatalogEntry, ours: CatalogEntry
) -> None:
    once = merge(base, theirs, ours).entry
    # What was claimed once stays the base of what is not claimed this time.
    again = merge(over(ours, base), once, ours)
    assert again.entry == once
    assert not again.conflicts


@given(ENTRIES, ENTRIES)
def test_where_both_sides_agree_there_is_nothing_to_decide(
    base: CatalogEntry, ours: CatalogEntry
) -> None:
    merged = merge(base, ours, ours)
    assert merged.entry == ours
    assert not merged.conflicts


@given(TAGS, TAGS, TAGS)
def test_tags_of_people_stay_and_no_ghosts_remain(base: Any, theirs: Any, ours: Any) -> None:
    merged = merge(*(_tagged(tags) for tags in (base, theirs, ours))).entry.governance
    assert merged is not None
    tags = set(merged.tags)
    assert tags >= set(theirs) - set(base), "what people added is there"
    assert not tags & (set(base) - set(ours)), "what Lumos no longer claims is gone"
    assert not tags & (set(base) & set(ours) - set(theirs)), "what people removed stays removed"
    assert tags >= set(ours) - set(base), "what Lumos newly claims is there"
    assert tags <= set(theirs) | set(ours)


@given(ENTRIES, ENTRIES, ENTRIES)
def test_columns_are_those_that_lumos_found(
    base: CatalogEntry, theirs: CatalogEntry, ours: CatalogEntry
) -> None:
    merged = merge(base, theirs, ours).entry
    if ours.schema is None:
        assert merged.schema == theirs.schema
    else:
        assert merged.schema is not None
        assert merged.schema.shape == ours.schema.shape


@pytest.mark.parametrize(
    ("base", "theirs", "ours", "kept"),
    [
        pytest.param(None, "by hand", None, "by hand", id="written by people"),
        pytest.param("scan", "by hand", "scan", "by hand", id="edited by people"),
        pytest.param("scan", "scan", "rescan", "rescan", id="changed at the source"),
        pytest.param("scan", "scan", None, None, id="no longer claimed"),
        pytest.param("scan", None, "scan", None, id="cleared by people"),
        pytest.param("scan", "by hand", None, "by hand", id="edited and no longer claimed"),
    ],
)
def test_the_description_of_a_column(
    base: str | None, theirs: str | None, ours: str | None, kept: str | None
) -> None:
    merged = merge(*(_described(text) for text in (base, theirs, ours))).entry
    assert merged.schema is not None
    assert merged.schema.fields[0].description == kept


@pytest.mark.parametrize(
    ("base", "theirs", "ours", "hidden"),
    [
        pytest.param(None, True, False, True, id="hidden before Lumos came"),
        pytest.param(None, False, True, True, id="gone before it was written"),
        pytest.param(False, True, False, True, id="hidden by people"),
        pytest.param(True, True, False, False, id="came back"),
        pytest.param(True, False, True, False, id="shown by people"),
        pytest.param(False, False, True, True, id="went"),
    ],
)
def test_who_hides_a_dataset(base: bool | None, theirs: bool, ours: bool, hidden: bool) -> None:
    def entry(deleted: bool) -> CatalogEntry:
        return CatalogEntry(urn="lumos://s3/a", name="a", platform="s3", deleted=deleted)

    merged = merge(None if base is None else entry(base), entry(theirs), entry(ours))
    assert merged.entry.deleted == hidden
    told = (
        [Conflict(path="deleted", theirs="hidden", ours="visible")]
        if base is None and theirs
        else []
    )
    assert list(merged.conflicts) == told


def test_a_conflict_is_told_and_people_win() -> None:
    sides = (
        CatalogEntry(
            urn="lumos://s3/a", name="a", platform="s3", documentation=Documentation(description=t)
        )
        for t in ("first", "by hand", "second")
    )
    merged = merge(*sides)
    assert merged.entry.documentation == Documentation(description="by hand")
    assert merged.conflicts == (
        Conflict(path="documentation.description", theirs="by hand", ours="second"),
    )


def test_people_keep_their_words_on_a_part_that_lumos_no_longer_describes() -> None:
    def noted(*notes: NestedField) -> CatalogEntry:
        field = Field(name="p", type=PLACE, nested=notes)
        return CatalogEntry(
            urn="lumos://s3/a", name="a", platform="s3", schema=Schema(fields=(field,))
        )

    base = noted(NestedField(path="p.x", description="Net", tags=("scan",)))
    by_hand = NestedField(path="p.x", description="By hand", tags=("scan", "gold"))
    merged = merge(base, noted(by_hand), noted())
    assert merged.entry == noted(NestedField(path="p.x", description="By hand", tags=("gold",)))
    assert [each.path for each in merged.conflicts] == ["schema.p.p.x.description"]
    assert merge(base, noted(*base.schema.fields[0].nested), noted()).entry == noted()  # type: ignore[union-attr]
    tagged = noted(NestedField(path="p.x", description="Net", tags=("scan", "gold")))
    assert merge(base, tagged, noted()).entry == noted(NestedField(path="p.x", tags=("gold",)))


def test_a_note_on_a_part_that_is_gone_goes_with_it() -> None:
    def nested(type: Struct, *notes: NestedField) -> CatalogEntry:
        field = Field(name="p", type=type, nested=notes)
        return CatalogEntry(
            urn="lumos://s3/a", name="a", platform="s3", schema=Schema(fields=(field,))
        )

    by_hand = (NestedField(path="p.x", description="kept"), NestedField(path="p.y", tags=("t",)))
    theirs, ours = nested(PLACE, *by_hand), nested(Struct((Member("x", INT64),)))
    schema = merge(nested(PLACE), theirs, ours).entry.schema
    assert schema is not None
    assert schema.fields[0].nested == by_hand[:1]


def test_a_catalog_s_own_records_stay_beside_what_lumos_brings() -> None:
    theirs = _carrying(datahub={"browsePaths": [1], "ownership": [2]}, atlas={"x": [3]})
    ours = _carrying(datahub={"ownership": [4]})
    assert merge(None, theirs, ours).entry.raw == {
        "datahub": {"browsePaths": [1], "ownership": [4, 2]},
        "atlas": {"x": [3]},
    }


@pytest.mark.parametrize(
    ("base", "theirs", "ours", "merged"),
    [
        pytest.param({"note": "a", "n": 1}, {"note": "b", "n": 1}, {"note": "a", "n": 2},
                     {"note": "b", "n": 2}, id="keys of one object"),
        pytest.param({"n": 1}, {"n": 1}, {}, {}, id="gone at the source"),
        pytest.param({"n": 1}, {}, {"n": 1}, {}, id="taken out by people"),
        pytest.param({"l": ["a", "b"]}, {"l": ["b", "c"]}, {"l": ["a", "b", "d"]},
                     {"l": ["b", "d", "c"]}, id="members of a list"),
        pytest.param({"l": [{"tag": "a"}]}, {"l": [{"tag": "a", "context": "c"}]},
                     {"l": [{"tag": "a"}, {"tag": "b"}]},
                     {"l": [{"tag": "a", "context": "c"}, {"tag": "b"}]}, id="things with names"),
        pytest.param({"l": [{"tagFQN": "A.b", "labelType": "Manual"}]},
                     {"l": [{"tagFQN": "A.b", "labelType": "Manual", "state": "Confirmed"}]},
                     {"l": [{"tagFQN": "A.b", "labelType": "Derived"}, {"tagFQN": "A.c"}]},
                     {"l": [{"tagFQN": "A.b", "labelType": "Derived", "state": "Confirmed"},
                            {"tagFQN": "A.c"}]}, id="labels"),
        pytest.param({"l": [{"id": "1", "fullyQualifiedName": "a.b"}]},
                     {"l": [{"id": "1", "fullyQualifiedName": "a.b"},
                            {"id": "2", "fullyQualifiedName": "a.c"}]},
                     {"l": [{"id": "9", "fullyQualifiedName": "a.b"}]},
                     {"l": [{"id": "9", "fullyQualifiedName": "a.b"},
                            {"id": "2", "fullyQualifiedName": "a.c"}]},
                     id="references, whose numbers are those of one server"),
        pytest.param({"o": {"x": 1}}, {"o": {"x": 1, "y": 2}}, {"o": {"x": 3}},
                     {"o": {"x": 3, "y": 2}}, id="objects in objects"),
    ],
)  # fmt: skip
def test_both_sides_change_a_record_in_different_places(
    base: Any, theirs: Any, ours: Any, merged: Any
) -> None:
    sides = (_carrying(datahub={"embed": [{"body": body}]}) for body in (base, theirs, ours))
    result = merge(*sides)
    assert result.entry.raw == {"datahub": {"embed": [{"body": merged}]}}
    assert not result.conflicts


def test_one_conflict_in_two_places_is_told_once() -> None:
    base, theirs, ours = (
        CatalogEntry(
            urn="lumos://s3/a", name="a", platform="s3",
            documentation=Documentation(description=text),
            raw={"datahub": {"datasetProperties": [{"body": {"description": text}}]}},
        )
        for text in ("first", "by hand", "second")
    )  # fmt: skip
    assert [each.path for each in merge(base, theirs, ours).conflicts] == [
        "documentation.description"
    ]


def _carrying(**records: Any) -> CatalogEntry:
    return CatalogEntry(urn="lumos://s3/a", name="a", platform="s3", raw=records)


def _tagged(tags: tuple[str, ...]) -> CatalogEntry:
    return CatalogEntry(
        urn="lumos://s3/a", name="a", platform="s3", governance=Governance(tags=tags)
    )


def _described(text: str | None) -> CatalogEntry:
    field = Field(name="id", type=INT64, description=text)
    return CatalogEntry(urn="lumos://s3/a", name="a", platform="s3", schema=Schema(fields=(field,)))


def governed(*tags: str) -> CatalogEntry:
    return CatalogEntry(
        urn="lumos://s3/a", name="a", platform="s3", governance=Governance(tags=tags)
    )


@pytest.mark.parametrize(
    ("theirs", "expected"),
    [
        (("domain", "one"), ("two", "domain")),
        (("domain", "two"), ("two", "domain")),
        (("domain", "mine", "one"), ("domain", "mine", "two")),
    ],
)
def test_tags_keep_our_order_unless_users_changed_them(
    theirs: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    merged = merge(governed("one", "domain"), governed(*theirs), governed("two", "domain")).entry
    assert merged.governance == Governance(tags=expected)


def test_an_order_of_users_stays_while_ours_is_the_same() -> None:
    ours = governed("one", "domain")
    changed = msgspec.structs.replace(ours, properties={"changed": "yes"})
    assert merge(ours, governed("domain", "one"), changed).entry.governance == Governance(
        tags=("domain", "one")
    )


def test_references_of_an_entity_are_merged_one_by_one() -> None:
    base, theirs, ours = (
        CatalogEntity(urn="lumos:dashboard:looker/7", references={"charts": charts})
        for charts in (("a", "b"), ("a", "b", "by-hand"), ("b", "new"))
    )
    merged = merge_item(base, theirs, ours)
    assert merged.item.references == {"charts": ("b", "by-hand", "new")}
    assert not merged.conflicts
