"""Many things as few calls: chunks that a server takes, and the one in them that it does not."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeVar

from lumos.errors import CatalogError, CatalogUnavailable

T = TypeVar("T")

_SERVER_FAULT: Final = 500
# So many different things in a row are not all poisoned: the server itself is ill.
_MANY: Final = 5


def one(_: object) -> int:
    """The weight of a thing that counts once."""
    return 1


def chunked(
    items: Iterable[T],
    *,
    most: int,
    most_bytes: int,
    size: Callable[[T], int],
    count: Callable[[T], int] = one,
) -> Iterator[list[T]]:
    """Things in their order, as many together as a call may hold; each stays in one piece.

    `count` says how many parts of a call a thing takes up, `size` how many bytes. One that is too
    large by itself is alone in its chunk.
    """
    chunk: list[T] = []
    parts = volume = 0
    for item in items:
        more, bigger = count(item), size(item)
        if chunk and (parts + more > most or volume + bigger > most_bytes):
            yield chunk
            chunk, parts, volume = [], 0, 0
        chunk.append(item)
        parts, volume = parts + more, volume + bigger
    if chunk:
        yield chunk


def in_halves(
    items: Sequence[T], send: Callable[[Sequence[T]], object]
) -> Iterator[tuple[T, CatalogError | None]]:
    """Sends things in one call, and where that is refused in halves, so that one bad thing does
    not hold up its neighbours; each comes with the problem that it alone has, if any.

    A catalog that does nothing at all raises, and so does one that fails at everything.
    """
    failed = 0
    waiting = [items] if items else []
    while waiting:
        part = waiting.pop()
        try:
            send(part)
        except CatalogUnavailable:
            raise
        except CatalogError as problem:
            if len(part) > 1:
                half = len(part) // 2
                waiting += [part[half:], part[:half]]
                continue
            failed = failed + 1 if (problem.status or 0) >= _SERVER_FAULT else 0
            if failed >= _MANY:
                raise CatalogUnavailable(
                    str(problem), platform=problem.platform, status=problem.status, retryable=True
                ) from problem
            yield part[0], problem
        else:
            failed = 0
            yield from ((item, None) for item in part)
