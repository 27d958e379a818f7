"""The garbage collector around work with very many values."""

import gc

import pytest

from lumos.store.garbage_collection import frozen_gc


@pytest.fixture(autouse=True)
def _nothing_is_set_aside() -> None:
    """The test run itself has set aside what it collected."""
    gc.unfreeze()


def test_what_is_there_is_set_aside_and_comes_back() -> None:
    with frozen_gc():
        assert gc.get_freeze_count() > 0
        assert gc.isenabled()
    assert gc.get_freeze_count() == 0


def test_it_comes_back_after_a_failure() -> None:
    with pytest.raises(ValueError, match="no"), frozen_gc():
        raise ValueError("no")
    assert gc.get_freeze_count() == 0


def test_what_somebody_else_set_aside_stays_there() -> None:
    gc.freeze()
    try:
        with frozen_gc():
            pass
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()
