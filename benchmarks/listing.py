"""A listing of 1,000,000 objects beside bare loops over its pages, and a scan that plans with it.

The server runs in a process of its own and answers all alike. Every way has its own process, too,
and says of each object the key, the size, the time and the ETag. `bare` asks without signing and
parses XML; `boto3` and `obstore` are what people use. The scan lists, plans and records twice, and
opens nothing.
"""

import http.client
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote_plus, unquote_plus, urlsplit
from xml.etree import ElementTree

from benchmarks.consumption import peak_megabytes
from benchmarks.servers import TESTS, serving

OBJECTS = 1_000_000
TIMES = 3
_PARTS = 64
_BUCKET = "lake"
_SPACE = "{http://s3.amazonaws.com/doc/2006-03-01/}"

# Key, size, time and ETag.
Object: TypeAlias = tuple[str, int, datetime | int, str]


def measure() -> dict[str, Any]:
    """Seconds of processors and memory of each way, medians by turns; then of the scans."""
    with serving("faults.many_keys", str(OBJECTS), "days") as url:
        taken: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
        for _ in range(TIMES):
            for way, runs in taken.items():
                runs.append(_told([sys.executable, "-m", "benchmarks.listing", way, url]))
                sys.stderr.write(f"  {way}: {_rounded(runs[-1])}\n")
        scans = _scans(url)
    ways = {
        way: {name: statistics.median(run[name] for run in runs) for name in runs[0]}
        for way, runs in taken.items()
    }
    floors = [way for way in ways if way != "lumos"]
    return {
        "objects": OBJECTS,
        **{way: _rounded(told) for way, told in ways.items()},
        **{
            f"lumos_times_{floor}": round(
                ways["lumos"]["processor_seconds"] / ways[floor]["processor_seconds"], 2
            )
            for floor in floors
        },
        **{
            scan: {
                **_rounded(told),
                "times_listing": round(
                    told["processor_seconds"] / ways["lumos"]["processor_seconds"], 2
                ),
            }
            for scan, told in zip(("first_scan", "scan_again"), scans, strict=True)
        },
    }


def _rounded(told: dict[str, float]) -> dict[str, float]:
    return {name: round(each, 2) for name, each in told.items()}


def _scans(url: str) -> list[dict[str, float]]:
    with tempfile.TemporaryDirectory() as state:
        command = [sys.executable, "-m", "faults.million_scan", url, state, str(_PARTS)]
        scans: list[dict[str, float]] = _told(command, folder=TESTS)
    for scan in scans:
        _check(int(scan["listed"]))
    return [
        {
            "processor_seconds": scan["processor_seconds"],
            "seconds": scan["seconds"],
            "peak_megabytes": scan["peak"],
        }
        for scan in scans
    ]


def _told(command: list[str], *, folder: Path | None = None) -> Any:
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=folder)
    return json.loads(done.stdout)


def _check(found: int) -> None:
    if found != OBJECTS:
        raise RuntimeError(f"{found} objects were listed instead of {OBJECTS}")


def _bare(url: str) -> Callable[[], Iterator[Object]]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc)
    question = f"/{_BUCKET}?list-type=2&max-keys=1000&encoding-type=url"

    def listed() -> Iterator[Object]:
        target = question
        while target:
            connection.request("GET", target)
            root = ElementTree.fromstring(connection.getresponse().read())
            for node in root.iter(f"{_SPACE}Contents"):
                yield (
                    unquote_plus(node.findtext(f"{_SPACE}Key", "")),
                    int(node.findtext(f"{_SPACE}Size", "")),
                    datetime.fromisoformat(node.findtext(f"{_SPACE}LastModified", "")),
                    node.findtext(f"{_SPACE}ETag", ""),
                )
            token = root.findtext(f"{_SPACE}NextContinuationToken")
            target = f"{question}&continuation-token={quote_plus(token)}" if token else ""

    return listed


def _boto3(url: str) -> Callable[[], Iterator[Object]]:
    import boto3

    client = boto3.client(
        "s3",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="any",
        aws_secret_access_key="any",
    )

    def listed() -> Iterator[Object]:
        for page in client.get_paginator("list_objects_v2").paginate(Bucket=_BUCKET):
            for each in page["Contents"]:
                yield each["Key"], each["Size"], each["LastModified"], each["ETag"]

    return listed


def _obstore(url: str) -> Callable[[], Iterator[Object]]:
    from obstore.store import S3Store

    store = S3Store(
        _BUCKET,
        endpoint=url,
        region="us-east-1",
        access_key_id="any",
        secret_access_key="any",
        client_options={"allow_http": True},
    )

    def listed() -> Iterator[Object]:
        for page in store.list(chunk_size=1000):
            for each in page:
                yield each["path"], each["size"], each["last_modified"], each["e_tag"] or ""

    return listed


def _lumos(url: str) -> Callable[[], Iterator[Object]]:
    from lumos.storage import KeyRange, ListedFile
    from lumos.storage.s3 import S3Access, S3Storage

    access = S3Access(
        endpoint_url=url, region="us-east-1", access_key_id="any", secret_access_key="any"
    )
    storage = S3Storage(access)

    def listed() -> Iterator[Object]:
        for each in storage.walk(KeyRange(f"s3://{_BUCKET}")):
            assert isinstance(each, ListedFile), each
            yield each.path, each.size, each.modified, each.etag

    return listed


WAYS: dict[str, Callable[[str], Callable[[], Iterator[Object]]]] = {
    "bare": _bare,
    "boto3": _boto3,
    "obstore": _obstore,
    "lumos": _lumos,
}


def _listing(way: str, url: str) -> None:
    """Goes through a listing and writes down what that took, without imports."""
    listed = WAYS[way](url)
    before, started, used = peak_megabytes(), time.perf_counter(), time.process_time()
    _check(sum(1 for _ in listed()))
    told = {
        "processor_seconds": time.process_time() - used,
        "seconds": time.perf_counter() - started,
        "megabytes_before": before,
        "peak_megabytes": peak_megabytes(),
    }
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    _listing(sys.argv[1], sys.argv[2])
