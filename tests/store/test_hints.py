"""Hints in the store, on every database."""

from lumos.store import Store
from store.conftest import AT


def add(store: Store, *paths: str, name: str | None = None, split: bool = False) -> bool:
    with store.transaction() as transaction:
        id = transaction.hints.add(paths, name=name, split=split, author="jane", at=AT)
    return id is not None


def test_hints_are_kept_in_the_order_they_were_added(store: Store) -> None:
    assert add(store, "/lake/z/**", split=True)
    assert add(store, "/lake/a", "/lake/b", name="both")
    first, second = store.hints.list()
    assert (first.paths, first.name, first.split) == (("/lake/z/**",), None, True)
    assert (second.paths, second.name, second.split) == (("/lake/a", "/lake/b"), "both", False)
    assert (first.author, first.added_at) == ("jane", AT)


def test_the_same_hint_is_kept_once(store: Store) -> None:
    assert add(store, "/lake/a", name="x")
    assert not add(store, "/lake/a", name="x")
    assert add(store, "/lake/a", name="y")
    assert len(store.hints.list()) == 2


def test_a_removed_hint_may_come_back(store: Store) -> None:
    add(store, "/lake/a")
    (hint,) = store.hints.list()
    with store.transaction() as transaction:
        assert transaction.hints.remove(hint.id)
        assert not transaction.hints.remove(hint.id)
    assert store.hints.list() == []
    assert add(store, "/lake/a")
