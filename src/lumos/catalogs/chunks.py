"""Splits items into calls of limited size, and finds the item that makes a call fail."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, TypeVar

from lumos.errors import CatalogError, CatalogUnavailable

T = TypeVar("T")

_SERVER_FAULT: Final = 500
# After this many consecutive server errors, the server is considered down.
_MAX_SERVER_ERRORS: Final = 5


def weight_one(_: object) -> int:
    """The default of `count`: every item has one part."""
    return 1


def batched(items: Iterable[T], size: int) -> Iterator[list[T]]:
    """Group items, in order, into lists of at most `size`."""
    remaining = iter(items)
    while batch := list(islice(remaining, size)):
        yield batch


def chunked(
    items: Iterable[T],
    *,
    max_parts: int,
    max_bytes: int,
    size: Callable[[T], int],
    count: Callable[[T], int] = weight_one,
) -> Iterator[list[T]]:
    """Group items, in order, into chunks of at most `max_parts` parts and `max_bytes` bytes.

    `count` and `size` return the number of parts and bytes of an item. An item that is too large
    becomes a chunk of its own.
    """
    chunk: list[T] = []
    parts = volume = 0
    for item in items:
        item_parts, item_bytes = count(item), size(item)
        if chunk and (parts + item_parts > max_parts or volume + item_bytes > max_bytes):
            yield chunk
            chunk, parts, volume = [], 0, 0
        chunk.append(item)
        parts, volume = parts + item_parts, volume + item_bytes
    if chunk:
        yield chunk


def in_halves(
    items: Sequence[T], send: Callable[[Sequence[T]], object]
) -> Iterator[tuple[T, CatalogError | None]]:
    """Send items in one call; if it fails, send halves of them to isolate the items that fail.

    Yields each item with its error, or None. Raises CatalogUnavailable if the catalog is down.
    """
    server_errors = 0
    parts = [items] if items else []
    while parts:
        part = parts.pop()
        try:
            send(part)
        except CatalogUnavailable:
            raise
        except CatalogError as problem:
            if len(part) > 1:
                half = len(part) // 2
                parts += [part[half:], part[:half]]
                continue
            is_server_error = (problem.status or 0) >= _SERVER_FAULT
            server_errors = server_errors + 1 if is_server_error else 0
            if server_errors >= _MAX_SERVER_ERRORS:
                raise CatalogUnavailable(
                    str(problem), platform=problem.platform, status=problem.status, retryable=True
                ) from problem
            yield part[0], problem
        else:
            server_errors = 0
            yield from ((item, None) for item in part)
