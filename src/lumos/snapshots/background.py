"""Work beside other work, which is not waited for once something has failed."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from threading import Event, Thread
from typing import TypeVar

from lumos.errors import LumosError

T = TypeVar("T")


class NotWanted(LumosError):
    """Nobody waits any more for what is being done."""

    def __init__(self) -> None:
        super().__init__("It is no longer wanted.")


class Wish:
    """Whether what is being done is still wanted."""

    def __init__(self) -> None:
        self._is_over = Event()

    def drop(self) -> None:
        """Ends the work soon."""
        self._is_over.set()

    def check(self) -> None:
        """Ends the work where it is no longer wanted."""
        if self._is_over.is_set():
            raise NotWanted

    def while_wanted(self, values: Iterable[T]) -> Iterator[T]:
        """The values, as long as somebody wants them."""
        for value in values:
            self.check()
            yield value


def begun(work: Callable[[], T], name: str) -> "Future[T]":
    """What a thread of its own will have made of some work.

    No exit waits for the thread, unlike those of an executor: a catalog may take minutes to give
    up.
    """
    future: Future[T] = Future()

    def run() -> None:
        try:
            made = work()
        except BaseException as problem:  # noqa: BLE001 - raised where it is waited for
            future.set_exception(problem)
        else:
            future.set_result(made)

    Thread(target=run, name=name, daemon=True).start()
    return future


def all_or_first_failure(futures: "Sequence[Future[T]]") -> list[T]:
    """What all of them made; where one fails, it is not waited for the others."""
    done, _ = wait(futures, return_when=FIRST_EXCEPTION)
    for future in done:
        future.result()
    return [future.result() for future in futures]
