"""Polls a folder in the background: tasks report their progress by writing files to it."""

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
    """Within the context, call `report` periodically with the names of the files in a folder."""
    finished = Event()

    def poll() -> None:
        while not finished.wait(_POLLING_SECONDS):
            try:
                names = storage.files(folder)
            except OSError:
                # The tasks report errors of the storage.
                continue
            report(names)

    thread = Thread(target=poll, name="progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        finished.set()
        thread.join()
