"""Settings of the garbage collector for work that creates millions of values."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused_gc() -> Iterator[None]:
    """Disable the garbage collector while values are created that all stay alive."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def frozen_gc() -> Iterator[None]:
    """Exclude existing values from garbage collection; new ones are still collected.

    Does nothing if values are frozen already, because `gc.unfreeze` would release those, too.
    """
    if gc.get_freeze_count():
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
