"""Work that makes very many values which all stay."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collecting() -> Iterator[None]:
    """Spares the garbage collector from looking through values by the million that all stay."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def with_all_set_aside() -> Iterator[None]:
    """Spares it from looking through what is there already, while what comes is collected.

    Where somebody has set values aside already, it stays at that: nobody could tell them apart.
    """
    if gc.get_freeze_count():
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
