"""Two server processes with 100,000 datasets on PostgreSQL, against a bare Litestar route.

Searches and reads of datasets; memory under load with 200 open streams of events. Smaller runs:
LUMOS_BENCH_DATASETS, LUMOS_BENCH_SECONDS (of each load), LUMOS_BENCH_MEMORY_SECONDS.
"""

import asyncio
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from benchmarks import search
from lumos import Lumos

DATASETS = int(os.environ.get("LUMOS_BENCH_DATASETS", "100000"))
SECONDS = float(os.environ.get("LUMOS_BENCH_SECONDS", "10"))
MEMORY_SECONDS = float(os.environ.get("LUMOS_BENCH_MEMORY_SECONDS", "600"))
STREAMS = 200
SERVERS = 2
CONNECTIONS = 8
REQUESTS = 100
ROUNDS = 3
_REQUEST_SECONDS = 120
_SCRIPT = Path(__file__).parents[1] / "scripts" / "postgres"
_PAGE = os.sysconf("SC_PAGE_SIZE")


def measure() -> dict[str, Any]:
    """Rates and 99th percentiles of both, their ratios, and the memory of a server over time."""
    with tempfile.TemporaryDirectory(prefix="lumos-bench-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        with _postgres(folder) as url:
            config = folder / "lumos.yaml"
            config.write_text(
                f"storage: {{backend: postgres, connection_string: '{url}'}}\n"
                "server: {requests_per_minute: 100000000, event_streams: 500}\n"
            )
            requests = _fill(config)
            listed = folder / "requests.json"
            listed.write_text(json.dumps(requests))
            with (
                _processes("benchmarks.bare_server", str(config), str(listed)) as bare,
                _processes("lumos", "serve", "--config", str(config), "--workers", "0", "--port") as
                served,
            ):  # fmt: skip
                memory = asyncio.run(_memory(config, requests, served))
                found = {
                    kind: _compare(kind, requests, served.ports, bare.ports)
                    for kind in ("search", "show")
                }
    return {"datasets": DATASETS, "servers": SERVERS, "connections": CONNECTIONS, **found, **memory}


@contextmanager
def _postgres(folder: Path) -> Iterator[str]:
    data = folder / "postgres"
    started = subprocess.run([_SCRIPT, "start", data], capture_output=True, text=True, check=True)
    try:
        yield started.stdout.strip()
    finally:
        subprocess.run([_SCRIPT, "stop", data], check=True)


def _fill(config: Path) -> list[tuple[str, str]]:
    """Fill the store; the requests to send."""
    chance = random.Random(1)
    vocabulary = search._vocabulary(chance)
    lumos = Lumos(config)
    store = lumos.create_store()
    search._fill(lumos.database, chance, vocabulary, datasets=DATASETS)
    store.rebuild_search()
    with lumos.database.engine.connect() as connection:
        connection.exec_driver_sql("ANALYZE")
        connection.commit()
    urns = [each.urn for each in lumos.list(limit=DATASETS).datasets]
    words = [search._word(chance, vocabulary) for _ in range(REQUESTS)]
    chosen = chance.sample(urns, REQUESTS)
    lumos.database.engine.dispose()
    return [*(("search", each) for each in words), *(("show", each) for each in chosen)]


class _Running:
    """Processes that listen on ports."""

    def __init__(self, processes: "list[subprocess.Popen[bytes]]", ports: list[int]) -> None:
        self.processes = processes
        self.ports = ports

    def megabytes(self) -> float:
        """The resident memory of all of them."""
        pages = 0
        for each in self.processes:
            pages += int(Path(f"/proc/{each.pid}/statm").read_text().split()[1])
        return pages * _PAGE / 1e6


@contextmanager
def _processes(*command: str) -> Iterator[_Running]:
    """The same program twice, each with a port as its last argument."""
    ports = [_free_port() for _ in range(SERVERS)]
    started = [
        subprocess.Popen(
            [sys.executable, "-m", *command, str(port)],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for port in ports
    ]
    try:
        for process, port in zip(started, ports, strict=True):
            _wait_for(process, port)
        yield _Running(started, ports)
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait(60)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(process: "subprocess.Popen[bytes]", port: int) -> None:
    deadline = time.monotonic() + 600
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise RuntimeError(f"{process.args!r} ended with {process.returncode}.")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.2)
        else:
            return
    raise RuntimeError(f"{process.args!r} does not listen.")


def _target(kind: str, value: str) -> str:
    if kind == "search":
        return f"/api/v1/search?{urlencode({'text': value})}"
    return f"/api/v1/datasets/show?{urlencode({'urn': value})}"


def _compare(
    kind: str, requests: list[tuple[str, str]], served: list[int], bare: list[int]
) -> dict[str, Any]:
    """Both in turn, so that a change of the machine's load meets both."""
    targets = [_target(*each) for each in requests if each[0] == kind]
    rates: dict[str, list[float]] = {"served": [], "bare": []}
    times: dict[str, list[float]] = {"served": [], "bare": []}
    for round in range(ROUNDS + 1):
        for name, ports in (("bare", bare), ("served", served)):
            # The first round warms up.
            seconds = min(SECONDS, 3) if round == 0 else SECONDS
            taken = asyncio.run(_load(ports, targets, seconds))
            if round:
                rates[name].append(len(taken) / seconds)
                times[name] += taken
    rate = {name: statistics.median(each) for name, each in rates.items()}
    p99 = {name: _percentile(each, 0.99) for name, each in times.items()}
    return {
        "requests_per_second": round_(rate["served"]),
        "bare_requests_per_second": round_(rate["bare"]),
        "rate_ratio": round_(rate["served"] / rate["bare"], 2),
        "p50_ms": round_(_percentile(times["served"], 0.5) * 1000),
        "bare_p50_ms": round_(_percentile(times["bare"], 0.5) * 1000),
        "p99_ms": round_(p99["served"] * 1000),
        "bare_p99_ms": round_(p99["bare"] * 1000),
        "p99_ratio": round_(p99["served"] / p99["bare"], 2),
    }


def round_(value: float, digits: int = 1) -> float:
    return round(value, digits)


def _percentile(times: list[float], share: float) -> float:
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


async def _load(ports: list[int], targets: list[str], seconds: float) -> list[float]:
    """The times of all requests of some connections to each port."""
    deadline = time.perf_counter() + seconds
    clients = [
        _client(port, targets, deadline, seed=number)
        for number in range(CONNECTIONS)
        for port in ports
    ]
    return [taken for times in await asyncio.gather(*clients) for taken in times]


async def _client(port: int, targets: list[str], deadline: float, *, seed: int) -> list[float]:
    """One connection that sends a request after the other; plain sockets take little time."""
    chance = random.Random(seed * 1000 + port)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    taken = []
    while (begun := time.perf_counter()) < deadline:
        head = f"GET {chance.choice(targets)} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"
        writer.write(head.encode())
        async with asyncio.timeout(_REQUEST_SECONDS):
            answer = await reader.readuntil(b"\r\n\r\n")
        if not answer.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(answer.decode())
        length = next(
            int(line.partition(b":")[2])
            for line in answer.lower().split(b"\r\n")
            if line.startswith(b"content-length:")
        )
        await reader.readexactly(length)
        taken.append(time.perf_counter() - begun)
    writer.close()
    return taken


async def _memory(
    config: Path, requests: list[tuple[str, str]], served: _Running
) -> dict[str, Any]:
    """Memory under load with open streams, and how many of these receive a change."""
    streams = [await _stream(served.ports[number % SERVERS]) for number in range(STREAMS)]
    targets = [_target(*each) for each in requests]
    samples: list[tuple[float, float]] = []
    begun = time.monotonic()

    async def sample() -> None:
        while time.monotonic() - begun < MEMORY_SECONDS:
            samples.append((time.monotonic() - begun, served.megabytes()))
            await asyncio.sleep(1)

    load = _load(served.ports, targets, MEMORY_SECONDS)
    times, _ = await asyncio.gather(load, sample())
    written = time.monotonic()
    urn = next(value for kind, value in requests if kind == "show")
    await asyncio.to_thread(lambda: Lumos(config).annotations.tags.set(urn, "measured"))
    received = await asyncio.gather(*(_event_after(each, written) for each in streams))
    arrived = [each for each in received if each is not None]
    for _, writer in streams:
        writer.close()
    tenth = MEMORY_SECONDS / 10
    first = statistics.median(size for at, size in samples if tenth <= at < 2 * tenth)
    last = statistics.median(size for at, size in samples if at >= MEMORY_SECONDS - tenth)
    return {
        "memory_seconds": MEMORY_SECONDS,
        "memory_requests": len(times),
        "streams": STREAMS,
        "streams_that_received_the_change": len(arrived),
        "change_seconds_median": round_(statistics.median(arrived), 2) if arrived else None,
        "memory_mb_second_tenth": round_(first),
        "memory_mb_last_tenth": round_(last),
        "memory_growth": round_(last / first - 1, 3),
    }


_Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _stream(port: int) -> _Stream:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"GET /api/v1/changes/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"
    writer.write(head.encode())
    await asyncio.wait_for(reader.readuntil(b": connected"), 120)
    return reader, writer


async def _event_after(stream: _Stream, written: float) -> float | None:
    """Seconds until the stream had the change, which comes after comments."""
    try:
        async with asyncio.timeout(60):
            await stream[0].readuntil(b"measured")
    except (TimeoutError, asyncio.IncompleteReadError):
        return None
    return time.monotonic() - written
