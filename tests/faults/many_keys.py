"""A bucket of very many keys, for tests and benchmarks: `python -m faults.many_keys COUNT LAYOUT`.

As a program it serves the bucket `lake`, says where, and ends when its standard input does.
"""

import sys
from typing import Literal, cast

from s3_server import S3Server

Layout = Literal["flat", "days"]


def keys(count: int, layout: Layout) -> list[str]:
    """All in one folder, or in a folder for each of 84 days."""
    if layout == "flat":
        return [f"events/part-{number:08d}.parquet" for number in range(count)]
    return [
        f"raw/events/dt=2024-{1 + number % 12:02d}-{1 + number % 28:02d}/part-{number:08d}.parquet"
        for number in range(count)
    ]


def served(count: int, layout: Layout) -> S3Server:
    """A server of that many empty objects."""
    return S3Server({"lake": dict.fromkeys(keys(count, layout), b"")})


if __name__ == "__main__":
    with served(int(sys.argv[1]), cast("Layout", sys.argv[2])) as server:
        sys.stdout.write(f"{server.url}\n")
        sys.stdout.flush()
        sys.stdin.read()
