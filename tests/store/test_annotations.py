"""Annotations by reporter, in rows of their own."""

import pytest

from lumos.model.annotation import DATA_SOURCE, Annotation, AnnotationKey, AnnotationsByReporter
from lumos.store import Store
from store.conftest import AT, dataset

TAG, DOMAIN = AnnotationKey("email", "tag", "pii"), AnnotationKey("", "domain")
OWN = {TAG: Annotation(author="jane", at=AT), DOMAIN: Annotation(value="x")}
LONG = "dbt:" + "x" * 5000
ORDERS, ITEMS, OTHER = (f"lumos://file/lake/{name}" for name in ("orders", "items", "other"))
COMMENT = {AnnotationKey("", "description"): Annotation(value="of the source")}


def filled(store: Store) -> Store:
    with store.transaction() as transaction:
        for name in ("orders", "items"):
            transaction.save(dataset(name))
        transaction.save(dataset("other", source="file:/else"))
        both = {"user": OWN, LONG: {DOMAIN: Annotation(value="y")}}
        transaction.annotations.put(ORDERS, both, before={})
        transaction.annotations.put(OTHER, {"user": OWN}, before={})
    return store


def replaced(store: Store, annotations: AnnotationsByReporter) -> AnnotationsByReporter:
    """The annotations of a dataset after all of them were replaced."""
    with store.transaction() as transaction:
        before = transaction.annotations.get(ORDERS)
        transaction.annotations.put(ORDERS, annotations, before=before)
    return store.annotations.of([ORDERS]).get(ORDERS, {})


def test_annotations_are_stored_by_reporter_and_source(store: Store) -> None:
    filled(store)
    own = {"user": OWN, LONG: {DOMAIN: Annotation(value="y")}}
    assert store.annotations.contested([ORDERS, ITEMS]) == {ORDERS: own}
    assert store.annotations.of([ORDERS, ITEMS, OTHER]) == {ORDERS: own, OTHER: {"user": OWN}}
    assert store.annotations.urns("user") == (ORDERS, OTHER)
    assert store.annotations.urns(LONG) == (ORDERS,)
    assert store.annotations.urns("nobody") == ()


def test_what_only_the_data_source_annotates_is_read_apart(store: Store) -> None:
    filled(store)
    own = {"user": OWN, DATA_SOURCE: COMMENT}
    with store.transaction() as transaction:
        transaction.annotations.put(ITEMS, {DATA_SOURCE: COMMENT}, before={})
        transaction.annotations.put(ORDERS, own, before=transaction.annotations.get(ORDERS))
    assert store.annotations.contested([ORDERS, ITEMS]) == {ORDERS: own}
    source = {DATA_SOURCE: COMMENT}
    assert store.annotations.reported("file:/lake") == {ORDERS: source, ITEMS: source}


def test_a_reporter_without_annotations_has_no_rows(store: Store) -> None:
    filled(store)
    before = store.counts()["annotation"]
    assert replaced(store, {LONG: {DOMAIN: Annotation(value="y")}}).keys() == {LONG}
    assert store.counts()["annotation"] == before - len(OWN)


@pytest.mark.parametrize(
    "annotations",
    [
        pytest.param({"user": {DOMAIN: Annotation(value=None)}}, id="denied"),
        pytest.param({"user": {TAG: Annotation()}}, id="label"),
        pytest.param({"user": {DOMAIN: Annotation(value="x", author="joe")}}, id="author"),
        pytest.param({"user": {DOMAIN: Annotation(value="nul \0 and ü")}}, id="text"),
        pytest.param({LONG: {AnnotationKey("a" * 3000, "tag", "b" * 3000): Annotation()}}, id="long"),
        pytest.param(
            {
                "a": {AnnotationKey("b", "tag", "c"): Annotation()},
                "ab": {AnnotationKey("", "tag", "c"): Annotation()},
                "": {AnnotationKey("ab", "tag", "c"): Annotation()},
            },
            id="same letters",
        ),
        pytest.param({}, id="none"),
    ],
)  # fmt: skip
def test_annotations_are_read_as_they_were_written(
    store: Store, annotations: AnnotationsByReporter
) -> None:
    filled(store)
    assert replaced(store, annotations) == annotations
    assert replaced(store, annotations) == annotations


def test_annotations_follow_a_renamed_and_a_merged_dataset(store: Store) -> None:
    filled(store)
    with store.transaction() as transaction:
        known = transaction.known(ORDERS)
        assert known is not None
        transaction.rename(known, to="lumos://file/lake/new", name="new", at=AT)
        renamed = transaction.known("lumos://file/lake/new")
        assert renamed is not None
        transaction.merge_into(renamed, into=ITEMS, at=AT)
        assert transaction.annotations.get(ITEMS)["user"] == OWN
        transaction.merge_into(renamed, into=OTHER, at=AT)
        assert transaction.annotations.get(OTHER) == {"user": OWN}


def test_a_merged_dataset_keeps_what_its_own_source_reports(store: Store) -> None:
    filled(store)
    reported = {AnnotationKey("", "description"): Annotation(value="of another source")}
    with store.transaction() as transaction:
        transaction.annotations.put(ITEMS, {DATA_SOURCE: COMMENT}, before={})
        before = transaction.annotations.get(ORDERS)
        transaction.annotations.put(ORDERS, {**before, DATA_SOURCE: reported}, before=before)
        transaction.annotations.copy(ORDERS, ITEMS)
        assert transaction.annotations.get(ITEMS) == {**before, DATA_SOURCE: COMMENT}


def test_a_deleted_dataset_leaves_no_annotations(store: Store) -> None:
    filled(store)
    with store.transaction() as transaction:
        transaction.entries.erase(ORDERS)
    assert store.annotations.of([ORDERS]) == {}
