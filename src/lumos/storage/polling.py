"""Polls a folder in the background, to report the progress of tasks by the files they write."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Final

from lumos.storage.interface import FileStorage

_POLLING_SECONDS: Final = 0.5


@contextmanager
def polled_files(
    storage: FileStorage, folder: str, report: Callable[[list[str]], None]
) -> Iterator[None]:
    """Call a function periodically with the names of the files in a folder."""
    finished = Event()

    def poll() -> None:
        while not finished.wait(_POLLING_SECONDS):
            try:
                names = storage.files(folder)
            except OSError:
                # If the storage fails, the tasks report it.
                continue
            report(names)

    thread = Thread(target=poll, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        finished.set()
        thread.join()
