"""Bounds for child processes that read damaged files: a hang or a flood ends them, with a name."""

import faulthandler
import resource
from collections.abc import Iterator
from contextlib import contextmanager

SECONDS = 20
# Beyond what the process has when it begins; no file of these tests is longer than a few megabytes.
MEMORY = 1 << 30


def limit_memory() -> None:
    """No more memory than a reading can need; beyond it Python raises a MemoryError."""
    with open("/proc/self/statm", encoding="ascii") as statm:
        pages = int(statm.read().split()[0])
    most = pages * resource.getpagesize() + MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


@contextmanager
def limited_time() -> Iterator[None]:
    """Ends the process with every thread's stack where what is inside takes too long."""
    faulthandler.dump_traceback_later(SECONDS, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()
