"""Whose words are whose, beside the datasets that they are about."""

from lumos.model.annotation import Annotation, AnnotationKey
from lumos.store import Store
from lumos.store.annotations import annotations_in
from store.conftest import AT, dataset

WORDS = {
    AnnotationKey("email", "tag", "pii"): Annotation(author="jane", at=AT),
    AnnotationKey("", "domain"): Annotation(value="x"),
}
ORDERS = "lumos://file/lake/orders"


def filled(store: Store) -> Store:
    with store.transaction() as transaction:
        for name in ("orders", "items"):
            transaction.save(dataset(name))
        transaction.save(dataset("other", source="file:/else"))
        transaction.annotations.put(ORDERS, "user", WORDS)
        transaction.annotations.put(
            ORDERS, "dbt:" + "x" * 500, {AnnotationKey("", "domain"): Annotation(value="y")}
        )
        transaction.annotations.put("lumos://file/lake/other", "user", WORDS)
    return store


def test_words_are_kept_by_reporter_and_source(store: Store) -> None:
    filled(store)
    assert store.annotations.of_source("file:/lake") == {
        ORDERS: {
            "user": WORDS,
            "dbt:" + "x" * 500: {AnnotationKey("", "domain"): Annotation(value="y")},
        }
    }
    assert store.annotations.urns("user") == (ORDERS, "lumos://file/lake/other")
    assert store.annotations.urns("nobody") == ()
    assert [urn for urn, _ in store.annotations.all()] == [ORDERS, "lumos://file/lake/other"]


def test_no_words_leave_no_row(store: Store) -> None:
    filled(store)
    before = store.counts()["beside"]
    with store.transaction() as transaction:
        transaction.annotations.put(ORDERS, "user", {})
        assert transaction.annotations.get(ORDERS).keys() == {"dbt:" + "x" * 500}
    assert store.counts()["beside"] == before - 1


def test_words_go_along_with_a_renamed_and_a_merged_dataset(store: Store) -> None:
    filled(store)
    with store.transaction() as transaction:
        known = transaction.known(ORDERS)
        assert known is not None
        transaction.rename(known, to="lumos://file/lake/new", name="new", at=AT)
        renamed = transaction.known("lumos://file/lake/new")
        assert renamed is not None
        transaction.absorb(renamed, into="lumos://file/lake/items", at=AT)
        assert transaction.annotations.get("lumos://file/lake/items")["user"] == WORDS
        transaction.absorb(renamed, into="lumos://file/lake/other", at=AT)
        assert transaction.annotations.get("lumos://file/lake/other") == {"user": WORDS}


def test_words_are_told_from_what_else_is_kept_beside(store: Store) -> None:
    filled(store)
    with store.transaction() as transaction:
        stored = transaction.entries.get([ORDERS])[ORDERS]
    assert annotations_in({**stored.extras, "carried": b"{}"})["user"] == WORDS
