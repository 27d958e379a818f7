"""Search, the same on every database."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from examples import examples
from lumos.model.dataset import Documentation, Governance, Owner, Ownership
from lumos.model.schema import parse_schema
from lumos.store import Facets, Store
from lumos.store.search import query_words, words
from store.conftest import AT, dataset


@pytest.fixture
def filled(store: Store) -> Store:
    """Four datasets with columns, words, tags and owners."""
    places = {
        "user_clicks": "raw/events/user_clicks",
        "customers": "finance/customers",
        "customerSegments": "analytics/customerSegments",
        "orders": "sales/orders",
    }
    with store.transaction() as transaction:
        for name, path in places.items():
            schema = parse_schema("event_id STRING COMMENT 'Kennung des Ereignisses'")
            if name == "orders":
                schema = parse_schema("order_id INT64\ncustomer_email STRING")
            transaction.save(
                dataset(
                    name,
                    urn=f"lumos://file/lake/{path}",
                    format="csv" if name == "orders" else "parquet",
                    schema_hash=transaction.save_schema(schema),
                )
            )
        urn = "lumos://file/lake/sales/orders"
        words = Documentation(description="Everything that was ever bought, café included")
        transaction.save_aspect(urn, "documentation", words, writer="user", at=AT)
        owners = Ownership(owners=(Owner(name="finance-team", kind="group"),))
        transaction.save_aspect(urn, "ownership", owners, writer="user", at=AT)
        transaction.save_aspect(
            urn, "governance", Governance(tags=("PII", "tier-1")), writer="user", at=AT
        )
    return store


def names(store: Store, query: str, **facets: str) -> list[str]:
    found, hits = store.search(query, Facets(**facets), limit=10)
    assert (hits.total, hits.all_counted) == (len(found), True)
    return [each.name for each in found]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        pytest.param("clicks", ["user_clicks"], id="a part of a name"),
        pytest.param("user_clicks", ["user_clicks"], id="a whole name"),
        pytest.param("userclicks", ["user_clicks"], id="a name without its underscore"),
        pytest.param("cli", ["user_clicks"], id="a beginning"),
        pytest.param("segments", ["customerSegments"], id="a part of camel case"),
        pytest.param("raw events", ["user_clicks"], id="parts of a path"),
        pytest.param("/raw/events/user_clicks", ["user_clicks"], id="a path"),
        pytest.param("events.user_clicks", ["user_clicks"], id="dots"),
        pytest.param(
            "customer", ["customers", "customerSegments", "orders"], id="names come before columns"
        ),
        pytest.param("CUSTOMER", ["customers", "customerSegments", "orders"], id="any case"),
        pytest.param("email", ["orders"], id="a column"),
        pytest.param(
            "kennung", ["customers", "customerSegments", "user_clicks"], id="a column's description"
        ),
        pytest.param("bought", ["orders"], id="a description"),
        pytest.param("cafe", ["orders"], id="without the accent"),
        pytest.param("pii", ["orders"], id="a tag"),
        pytest.param("finance team", ["orders"], id="an owner"),
        pytest.param("clicks orders", [], id="every word must be there"),
        pytest.param("nothing", [], id="nothing"),
        pytest.param("", [], id="no words"),
    ],
)
def test_a_query_finds_what_a_person_expects(
    filled: Store, query: str, expected: list[str]
) -> None:
    assert sorted(names(filled, query)) == sorted(expected)
    assert names(filled, query)[:1] == expected[:1]


@pytest.fixture
def tickets(store: Store) -> Store:
    """A dataset whose fields lie inside structs, arrays, maps and unions, and one beside it."""
    nested = """
        id INT64
        meta STRUCT<priority: INT32, `due date`: DATE, by: STRUCT<userName: STRING>>
        lines ARRAY<STRUCT<sku: STRING, state: ENUM('new: shiny','old')>>
        labels MAP<STRING, STRUCT<colour: STRING>>
        payload UNION<STRUCT<body: STRING>, STRING>
    """
    with store.transaction() as transaction:
        for name, text in {"tickets": nested, "customers": "id INT64\nemail STRING"}.items():
            hash = transaction.save_schema(parse_schema(text))
            transaction.save(dataset(name, schema_hash=hash))
    return store


@pytest.mark.parametrize(
    ("query", "fields"),
    [
        pytest.param("priority", ("meta.priority",), id="in a struct"),
        pytest.param("meta.priority", ("meta.priority",), id="by its path"),
        pytest.param("due", ("meta.`due date`",), id="a quoted name"),
        pytest.param("name", ("meta.by.userName",), id="a part of camel case in a deeper struct"),
        pytest.param("sku", ("lines[].sku",), id="in an array"),
        pytest.param("colour", ("labels{}.colour",), id="in a map"),
        pytest.param("body", ("payload<0>.body",), id="in a union"),
        pytest.param("meta", ("meta",), id="a column, without what is inside it"),
        pytest.param("tickets", (), id="a name, and no field"),
        pytest.param("tickets priority", ("meta.priority",), id="a name and a field"),
    ],
)
def test_a_nested_field_is_found_and_named(
    tickets: Store, query: str, fields: tuple[str, ...]
) -> None:
    found, hits = tickets.search(query, Facets(), limit=10)
    assert [each.name for each in found] == ["tickets"]
    assert hits.fields == ({found[0].urn: fields} if fields else {})


def test_symbols_of_an_enum_are_no_field_names(tickets: Store) -> None:
    assert names(tickets, "shiny") == []


def test_wide_tables_name_twenty_matching_fields(store: Store) -> None:
    wide = parse_schema("\n".join(f"feature_{number} INT64" for number in range(30)))
    with store.transaction() as transaction:
        transaction.save(dataset("wide", schema_hash=transaction.save_schema(wide)))
    _, hits = store.search("feature", Facets(), limit=5)
    assert hits.fields["lumos://file/lake/wide"] == tuple(f"feature_{n}" for n in range(20))


@pytest.mark.parametrize(
    ("query", "suggestion"),
    [
        pytest.param("custmer", "customer", id="a missing letter"),
        pytest.param("costumer", "customer", id="two wrong letters"),
        pytest.param("cusotmer", "customer", id="swapped letters"),
        pytest.param("oders", "orders", id="a missing second letter"),
        pytest.param("emial", "email", id="a column"),
        pytest.param("boughtt", "bought", id="a word of a description"),
        pytest.param("finanse-team", "finance-team", id="one of several words"),
        pytest.param("userclikcs", "userclicks", id="a name without its underscore"),
        pytest.param("clicks orders", None, id="known words that nothing holds together"),
        pytest.param("clicks odrers", None, id="a suggestion that would find nothing"),
        pytest.param("zebra", None, id="nothing alike"),
        pytest.param("zq", None, id="too short to guess"),
        pytest.param("20240199", None, id="a number"),
        pytest.param("customer", None, id="a query that finds something"),
    ],
)
def test_a_query_without_hits_suggests_words_of_the_index(
    filled: Store, query: str, suggestion: str | None
) -> None:
    assert filled.search(query, Facets(), limit=5)[1].suggestion == suggestion


def test_a_suggestion_keeps_to_the_facets(filled: Store) -> None:
    def suggested(**facets: str) -> str | None:
        return filled.search("custmer", Facets(**facets), limit=5)[1].suggestion

    assert suggested(format="csv") == "customer"
    assert suggested(format="avro") is None


def test_of_words_as_much_alike_the_more_frequent_one_is_suggested(store: Store) -> None:
    with store.transaction() as transaction:
        for name in ("cart_a", "card_b", "card_c", "cars_d"):
            transaction.save(dataset(name))
    assert store.search("carx", Facets(), limit=5)[1].suggestion == "card"


def test_words_in_other_scripts_are_suggested_as_people_write_them(store: Store) -> None:
    with store.transaction() as transaction:
        transaction.save(dataset("клиенты"))
    assert store.search("клиетны", Facets(), limit=5)[1].suggestion == "клиенты"


def test_facets_narrow_the_results(filled: Store) -> None:
    assert names(filled, "customer", format="csv") == ["orders"]
    assert names(filled, "orders", owner="finance-team", tag="tier-1") == ["orders"]
    assert names(filled, "orders", tag="tier-2") == []
    assert names(filled, "orders", platform="s3") == []
    assert len(names(filled, "", platform="file")) == 4


@pytest.mark.parametrize(
    "query",
    [
        "name:x",
        '"clicks"',
        "clicks OR orders",
        "clicks*",
        "NEAR(a b)",
        "a & !b | c",
        "' OR 1=1 --",
        ":*",
        "\\",
        "%",
        "{name} : x",
        "-clicks",
        "(",
        "0platform0file",
    ],
)
def test_operators_are_text_and_never_syntax(filled: Store, query: str) -> None:
    names(filled, query)


@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=st.text(max_size=60))
def test_no_query_fails(filled: Store, query: str) -> None:
    filled.search(query, Facets(owner=query, tag=query), limit=5)


@given(name=st.text(min_size=1, max_size=30))
def test_a_name_is_found_by_itself(name: str) -> None:
    have = words(name)
    for wanted in query_words(name):
        assert any(word.startswith(wanted) for word in have)


def test_the_index_follows_every_write(filled: Store) -> None:
    urn = "lumos://file/lake/sales/orders"
    with filled.transaction() as transaction:
        other = Documentation(description="sold")
        transaction.save_aspect(urn, "documentation", other, writer="user", at=AT)
    assert names(filled, "bought") == []
    assert names(filled, "sold") == ["orders"]
    with filled.transaction() as transaction:
        transaction.save(dataset("orders", urn=urn, state="missing"))
    assert names(filled, "sold") == []


def test_a_transaction_that_fails_leaves_the_index_alone(filled: Store) -> None:
    def fail() -> None:
        with filled.transaction() as transaction:
            transaction.save(dataset("invoices"))
            raise RuntimeError("the power went out")

    with pytest.raises(RuntimeError):
        fail()
    assert names(filled, "invoices") == []


def test_a_rebuilt_index_gives_the_same_answers(filled: Store) -> None:
    before = names(filled, "customer")
    assert filled.rebuild_search() == 4
    assert names(filled, "customer") == before


def test_more_matches_than_the_limit_are_counted(store: Store) -> None:
    with store.transaction() as transaction:
        for number in range(450):
            transaction.save(dataset(f"orders_{number}"))
    found, hits = store.search("orders", Facets(), limit=7)
    assert (len(found), hits.total, hits.all_counted) == (7, 450, False)
    found, hits = store.search("orders", Facets(), limit=500)
    assert (len(found), hits.total, hits.all_counted) == (450, 450, True)


@pytest.mark.parametrize("query", ["order_lines", "Order Lines", "order-lines"])
def test_the_dataset_of_exactly_that_name_is_first_among_many(store: Store, query: str) -> None:
    with store.transaction() as transaction:
        for number in range(300):
            transaction.save(dataset(f"order_lines_{number}"))
        transaction.save(dataset("order_lines"))
    found, _ = store.search(query, Facets(), limit=3)
    assert found[0].name == "order_lines"
