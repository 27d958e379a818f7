"""What every catalog keeps to, whatever it is made of."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from lumos.catalogs import (
    CatalogItem,
    Connects,
    FailedEntry,
    Filters,
    Platform,
    WritesInBatches,
    WritesMany,
    WrittenEntry,
)
from lumos.model.catalog import CatalogEntity, CatalogEntry, GlossaryTerm, Group, Job, User
from lumos.model.dataset import (
    ASPECTS,
    Dataset,
    Documentation,
    Governance,
    Lineage,
    Location,
    Owner,
    Ownership,
    UpstreamEdge,
)
from lumos.model.schema import Field, Schema
from lumos.model.types import INT64, STRING
from lumos.model.urn import Urn

from .contract_catalogs import (
    CATALOGS,
    POSTGRES,
    REAL_ATLAS,
    Catalog,
    atlas_at,
    called,
    local_on,
    together,
)
from .sample_inventory import CUSTOMERS, ORDERS, REPORT, items, rich

Opened = Callable[[], Catalog]


@pytest.fixture(
    params=[
        *CATALOGS,
        pytest.param(POSTGRES, marks=pytest.mark.slow),
        pytest.param(REAL_ATLAS, marks=pytest.mark.slow),
    ],
    ids=called,
)
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Opened:
    """Opens the same catalog, each time without what it knew before."""
    if request.param == POSTGRES:
        url = request.getfixturevalue("empty_postgres")
        return lambda: local_on(url)
    if request.param == REAL_ATLAS:
        address = request.getfixturevalue("emptied_atlas")
        return lambda: atlas_at(address)
    return lambda: CATALOGS[request.param](tmp_path)


def plain(name: str = "orders", **aspects: object) -> CatalogEntry:
    urn = f"lumos://s3/lake/{name}"
    return CatalogEntry(urn=urn, name=name, platform="s3", **aspects)  # type: ignore[arg-type]


def put(catalog: Catalog, estate: list[CatalogEntry]) -> None:
    """Puts entries into a catalog that has none of them."""
    with together(catalog):
        for written in catalog.put_many(estate, current={}):
            assert isinstance(written, WrittenEntry), written


def held(catalog: Catalog) -> list[CatalogItem]:
    """The items as a catalog holds them."""
    return [catalog.item_as_stored(item) for item in items()]


def test_a_catalog_is_made_of_what_it_can_do(opened: Opened) -> None:
    catalog = opened()
    assert isinstance(catalog, Platform)
    assert catalog.kind in CATALOGS
    assert catalog.native <= set(ASPECTS)


def test_what_is_put_is_what_comes_back(opened: Opened) -> None:
    for entry in rich():
        opened().put(entry)
    for entry in rich():
        assert opened().get(entry.urn) == entry


def test_nothing_is_known_of_what_was_never_written(opened: Opened) -> None:
    assert opened().get("lumos://s3/lake/nothing") is None
    assert list(opened().export()) == []
    assert list(opened().items()) == []


def test_putting_the_same_again_changes_nothing(opened: Opened) -> None:
    for entry in rich():
        assert opened().put(entry).changed
    for entry in opened().export():
        assert not opened().put(entry).changed


def test_what_a_put_entry_does_not_say_is_gone(opened: Opened) -> None:
    entry = rich()[0]
    opened().put(entry)
    bare = CatalogEntry(urn=entry.urn, name=entry.name, platform=entry.platform)
    assert opened().put(bare).changed
    assert opened().get(entry.urn) == bare


def test_how_each_aspect_is_held_is_told(opened: Opened) -> None:
    catalog = opened()
    entry = rich()[0]
    held = catalog.put(entry).held
    assert held.keys() == {name for name in ASPECTS if getattr(entry, name) is not None}
    for name, how in held.items():
        assert (how == "properties") == (name not in catalog.native), name


def test_how_each_aspect_is_held_is_known_before_it_is_written(opened: Opened) -> None:
    for entry in rich():
        expected = dict(opened().storage_of(entry))
        assert opened().get(entry.urn) is None
        assert {**expected, **opened().put(entry).held} == expected


def test_an_emitted_dataset_leaves_other_aspects_alone(opened: Opened) -> None:
    opened().emit(
        Dataset(
            urn="lumos://s3/lake/a", name="a", platform="s3", location=Location(uri="s3://lake/a")
        )
    )
    opened().emit(
        Dataset(urn="lumos://s3/lake/a", name="a", platform="s3", documentation=Documentation(description="An a."))
    )  # fmt: skip
    found = opened().get("lumos://s3/lake/a")
    assert found is not None
    assert found.location == Location(uri="s3://lake/a")
    assert found.documentation == Documentation(description="An a.")


def test_what_people_edited_stays_and_what_lumos_no_longer_claims_goes(opened: Opened) -> None:
    schema = Schema(fields=(Field(name="id", type=INT64), Field(name="old", type=STRING)))
    base = plain(governance=Governance(tags=("scanned", "pii")), schema=schema)
    opened().write(base)
    # Somebody works in the catalog.
    found = opened().get(base.urn)
    assert found is not None
    described = Field(name="id", type=INT64, description="By hand")
    opened().put(
        msgspec.structs.replace(
            found,
            governance=Governance(tags=("scanned", "pii", "by hand")),
            schema=Schema(fields=(described, schema.fields[1])),
            documentation=Documentation(description="By hand"),
        )
    )
    ours = plain(
        governance=Governance(tags=("scanned",)),
        schema=Schema(fields=(Field(name="id", type=INT64),)),
    )
    opened().write(ours, base=base)
    merged = opened().get(base.urn)
    assert merged is not None
    assert merged.governance == Governance(tags=("scanned", "by hand"))
    assert merged.schema == Schema(fields=(described,))
    assert merged.documentation == Documentation(description="By hand")


def test_a_conflict_is_told(opened: Opened) -> None:
    base, theirs, ours = (
        plain(documentation=Documentation(description=text))
        for text in ("first", "by hand", "second")
    )
    opened().put(theirs)
    written = opened().write(ours, base=base)
    assert [conflict.path for conflict in written.conflicts] == ["documentation.description"]
    assert opened().get(base.urn) == theirs


def test_edges_and_owners_are_added_to_those_that_are_there(opened: Opened) -> None:
    first, second = Owner(name="ann"), Owner(name="team", kind="group", type="DATA_STEWARD")
    opened().put(plain(ownership=Ownership(owners=(first,))))
    for _ in range(2):
        opened().emit_ownership("lumos://s3/lake/orders", second)
        opened().emit_lineage("lumos://s3/lake/a", "lumos://s3/lake/orders", "COPIED")
        opened().emit_lineage("lumos://s3/lake/b", "lumos://s3/lake/orders")
    found = opened().get("lumos://s3/lake/orders")
    assert found is not None
    assert found.ownership == Ownership(owners=(first, second))
    assert found.lineage == Lineage(
        upstream=(
            UpstreamEdge(urn="lumos://s3/lake/a", type="COPIED"),
            UpstreamEdge(urn="lumos://s3/lake/b"),
        )
    )


def test_an_edge_makes_a_dataset_that_is_not_there_yet(opened: Opened) -> None:
    opened().emit_lineage(ORDERS, CUSTOMERS)
    found = opened().get(CUSTOMERS)
    assert found is not None
    assert found.name == "Customers"


def test_a_deleted_dataset_says_so_and_keeps_what_was_known(opened: Opened) -> None:
    entry = rich()[0]
    opened().put(entry)
    for _ in range(2):
        opened().delete(entry.urn)
    opened().delete("lumos://s3/lake/nothing")
    assert opened().get(entry.urn) == msgspec.structs.replace(entry, deleted=True)
    assert list(opened().search("orders")) == []
    opened().put(entry)
    assert opened().get(entry.urn) == entry


def test_an_erased_dataset_was_never_there(opened: Opened) -> None:
    for entry in rich():
        opened().put(entry)
    opened().erase(CUSTOMERS)
    opened().erase("lumos://s3/lake/nothing")
    assert opened().get(CUSTOMERS) is None
    assert [entry.urn for entry in opened().export()] == sorted((ORDERS, REPORT))


@pytest.mark.parametrize("backwards", [False, True])
def test_datasets_that_differ_only_in_case_instance_or_environment_are_kept_apart(
    opened: Opened, backwards: bool
) -> None:
    urns = sorted(
        f"lumos://{rest}"
        for rest in ("postgres/eu/db/t", "postgres@eu/db/t", "postgres@us/db/t", "postgres/eu/db/T",
                     "postgres/eu/db/t?env=DEV", "postgres@eu/db/t?env=DEV", "postgres/eu/db/t?env=INT",
                     "postgres/eu.db/t", "postgres/eu/db.t", "s3/eu/db/t", "s3@eu/db/t", "s3/eu.db/t")
    )  # fmt: skip
    estate = [CatalogEntry(urn=urn, name=urn, platform=Urn.parse(urn).platform) for urn in urns]
    put(opened(), estate[::-1] if backwards else estate)
    assert list(opened().export()) == estate


def test_edges_lead_to_datasets_that_differ_only_in_their_instance(opened: Opened) -> None:
    urns = ("lumos://postgres/eu/db/t", "lumos://postgres@eu/db/t", "lumos://postgres@us/db/t")
    edges = Lineage(upstream=tuple(UpstreamEdge(urn=urn) for urn in urns))
    estate = [CatalogEntry(urn=urn, name="t", platform="postgres", lineage=edges) for urn in urns]
    for entry in estate:
        opened().put(entry)
    assert list(opened().export()) == estate


def test_every_dataset_is_read_page_by_page(opened: Opened) -> None:
    urns = [f"lumos://s3/lake/t{number:04}" for number in range(1_203)]
    text = Documentation(description="Somewhere a needle")
    put(
        opened(),
        [CatalogEntry(urn=urn, name=urn[-5:], platform="s3", documentation=text) for urn in urns],
    )
    assert [entry.urn for entry in opened().export()] == urns
    assert [entry.urn for entry in opened().export(after=urns[700])] == urns[701:]
    assert len(list(opened().search("lake"))) == len(urns)
    assert len(list(opened().search("needle"))) == len(urns)
    assert len(list(opened().search("lake", limit=7))) == 7


@pytest.mark.parametrize(
    ("text", "filters", "found"),
    [
        ("orders", Filters(), [ORDERS]),
        ("ORDERS", Filters(), [ORDERS]),
        ("since", Filters(), [ORDERS]),
        ("data lake", Filters(platform="s3"), [ORDERS]),
        ("data lake", Filters(platform="gcs"), []),
        ("Customers", Filters(owner="jane.smith"), [CUSTOMERS]),
        ("orders", Filters(tag="PII", format="parquet"), [ORDERS]),
        ("orders", Filters(tag="nope"), []),
        ("orders nothing", Filters(), []),
    ],
)
def test_datasets_are_found_by_their_words(
    opened: Opened, text: str, filters: Filters, found: list[str]
) -> None:
    for entry in rich():
        opened().put(entry)
    assert [dataset.urn for dataset in opened().search(text, filters)] == found


def test_a_batch_is_written_whole_or_not_at_all(opened: Opened) -> None:
    catalog = opened()
    if not isinstance(catalog, WritesInBatches):
        pytest.skip("It cannot write all or nothing, and does not say that it can.")
    opened().put(plain("before"))

    def half() -> None:
        with catalog.batch():
            catalog.put(plain("half"))
            assert catalog.get("lumos://s3/lake/half") is not None
            raise KeyError("somebody pulled the plug")

    with pytest.raises(KeyError):
        half()
    catalog.put(plain("after"))
    assert [entry.name for entry in opened().export()] == ["after", "before"]


def test_what_was_yielded_is_there_whatever_comes_after(opened: Opened) -> None:
    catalog = opened()
    if not isinstance(catalog, WritesMany):
        pytest.skip("It writes one by one, or all or nothing.")
    estate = [plain(f"t{number:03}") for number in range(250)]
    arrived = []
    for written in catalog.put_many(estate, current={}):
        arrived.append(written.urn)
        if len(arrived) == 3:
            # Whoever has heard of an entry finds it, while the rest is still under way.
            assert opened().get_many(arrived).keys() == set(arrived)
            break
    assert set(arrived) <= {entry.urn for entry in opened().export()}
    # What was not yielded may be there or not; it is written again without harm.
    over = opened().get_many([entry.urn for entry in estate])
    assert {each.urn for each in opened().put_many(estate, current=over)} == {
        entry.urn for entry in estate
    }
    assert list(opened().export()) == estate


def test_many_are_read_and_written_as_each_would_be(opened: Opened) -> None:
    estate = rich()
    outcomes = list(opened().put_many(estate, current={}))
    assert all(isinstance(each, WrittenEntry) and each.changed for each in outcomes)
    assert {each.urn for each in outcomes} == {entry.urn for entry in estate}
    urns = [entry.urn for entry in estate]
    found = opened().get_many([*urns, "lumos://s3/lake/nothing"])
    assert found == {entry.urn: entry for entry in estate}
    again = list(opened().put_many(estate, current=found))
    assert not any(isinstance(each, FailedEntry) or each.changed for each in again)
    assert opened().get_many([]) == {}
    assert list(opened().put_many([], current={})) == []


def test_many_are_merged_each_over_its_own_base(opened: Opened) -> None:
    def claim(name: str, text: str) -> CatalogEntry:
        return plain(name, documentation=Documentation(description=text))

    put(opened(), [claim("a", "first"), claim("b", "by hand")])
    claims = [claim("a", "second"), claim("b", "second"), claim("c", "second")]
    bases = {entry.urn: entry for entry in (claim("a", "first"), claim("b", "first"))}
    with together(catalog := opened()):
        outcomes = {each.urn: each for each in catalog.write_many(claims, bases)}
    conflicts = {
        urn: [conflict.path for conflict in each.conflicts]
        for urn, each in outcomes.items()
        if isinstance(each, WrittenEntry)
    }
    urns = [entry.urn for entry in claims]
    assert conflicts == dict(zip(urns, ([], ["documentation.description"], []), strict=True))
    texts = [entry.documentation for entry in opened().export()]
    assert texts == [Documentation(description=text) for text in ("second", "by hand", "second")]


def test_many_are_erased_and_only_those(opened: Opened) -> None:
    put(opened(), [plain(name) for name in "abcd"])
    opened().erase_many([f"lumos://s3/lake/{name}" for name in ("b", "d", "nothing")])
    assert [entry.name for entry in opened().export()] == ["a", "c"]


def test_how_many_there_are_is_told_or_unknown(opened: Opened) -> None:
    put(opened(), [plain(name) for name in "abc"])
    assert opened().count() in (None, 3)


def test_a_catalog_behind_a_network_says_who_it_is(opened: Opened) -> None:
    catalog = opened()
    if not isinstance(catalog, Connects):
        pytest.skip("It is on this machine.")
    told = catalog.check()
    assert catalog.name.partition(":")[2] in told
    catalog.close()
    assert catalog.check() == told


def test_many_items_are_read_and_written_as_each_would_be(opened: Opened) -> None:
    assert list(opened().put_items(items())) == []
    terms = [item for item in held(opened()) if isinstance(item, GlossaryTerm)]
    names = [term.name for term in terms]
    assert opened().get_items(GlossaryTerm, [*names, "nothing"]) == {
        term.name: term for term in terms
    }
    assert opened().get_items(User, []) == {}


def test_terms_people_jobs_and_the_rest_come_back(opened: Opened) -> None:
    for item in items():
        opened().put_item(item)
        opened().put_item(item)
    found = list(opened().items())
    assert len(found) == len(items())
    assert all(item in found for item in held(opened()))
    keys = {GlossaryTerm: "Order", User: "jane.smith", Group: "lake, team (eu)",
            Job: "lumos://airflow/nightly/load", CatalogEntity: "atlas:process:7"}  # fmt: skip
    for item in held(opened()):
        assert opened().get_item(type(item), keys[type(item)]) == item
        assert opened().get_item(type(item), "nothing") is None
    for item in items()[:2]:
        opened().erase_item(item)
    assert len(list(opened().items())) == len(items()) - 2
    assert list(opened().export()) == []


def test_what_a_catalog_cannot_hold_of_an_item_is_told_once(opened: Opened) -> None:
    catalog = opened()
    for item in items():
        held = catalog.item_as_stored(item)
        assert type(held) is type(item)
        assert catalog.item_as_stored(held) == held


def test_what_only_one_catalog_knows_of_travels_through_every_other(opened: Opened) -> None:
    carried = {
        "atlas": {"classifications": [{"typeName": "PII"}]},
        "openmetadata": {"x": [1, None, 2.5]},
    }
    entry = plain(raw=carried, documentation=Documentation(description="An a."))
    opened().put(entry)
    assert opened().get(entry.urn) == entry


def test_text_may_hold_anything(opened: Opened) -> None:
    odd = "a\0b\U0010ffff0"
    entry = CatalogEntry(
        urn="lumos://s3/a%00b",
        name=odd,
        platform="s3",
        format=odd,
        schema=Schema(fields=(Field(name=odd, type=STRING, description=odd, tags=(odd,)),)),
        documentation=Documentation(description=odd),
        governance=Governance(tags=(odd,), terms=(odd,)),
        ownership=Ownership(owners=(Owner(name=odd),)),
        lineage=Lineage(upstream=(UpstreamEdge(urn=f"job:{odd}"),)),
        properties={odd: odd},
    )
    term = GlossaryTerm(name=odd, definition=odd)
    opened().put(entry)
    opened().put_item(term)
    assert opened().get(entry.urn) == entry
    assert opened().get_item(GlossaryTerm, odd) == term
    assert list(opened().items()) == [term]
    assert [each.urn for each in opened().search("a")] == [entry.urn]
