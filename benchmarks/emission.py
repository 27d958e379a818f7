"""Emission to DataHub beside DataHub's own emitter, and reading back, in little memory.

Both send the same proposals to the same stub of DataHub's service, which runs in a process of its
own, keeps what it gets and checks nothing. Lumos begins with entries: it asks what is there,
merges, renders and sends. The emitter begins with proposals that are already made.
"""

import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks.snapshot import FIELDS, _estate
from lumos.catalogs.interface import FailedEntry, ReadsEntries, WritesMany
from lumos.model.catalog import CatalogEntry

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from catalogs.servers.gms import TOKEN, Gms
from catalogs.servers.http import Server, in_its_own_process
from catalogs.servers.openmetadata import BOT

DATASETS = 20_000
# A server of OpenMetadata is asked several times for each, so that fewer tell as much.
IN_OPENMETADATA = 2_000
RUNS = 3


def measure() -> dict[str, Any]:
    """Wall seconds of both by turns, calls and bytes, and the peak of a process that reads all."""
    taken: dict[str, list[dict[str, Any]]] = {"lumos": [], "emitter": [], "emitter_typed": []}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "proposals.jsonl"
        recorded = _child("record", str(file))
        for number in range(RUNS):
            for name in taken:
                if name != "emitter_typed" or number == 0:
                    taken[name].append(_on_a_new_stub(name, str(file)))
            if number == 0:
                reading = _reading(str(file))
    seconds = {
        name: statistics.median(each["seconds"] for each in runs) for name, runs in taken.items()
    }
    return {
        "datasets": DATASETS,
        "fields_each": FIELDS,
        "proposals": recorded["proposals"],
        "megabytes_sent": round(taken["lumos"][0]["bytes_in"] / 1e6, 1),
        "calls": {name: runs[0]["calls"] for name, runs in taken.items()},
        "seconds": {name: [run["seconds"] for run in runs] for name, runs in taken.items()},
        "cpu_seconds": {name: [run["cpu"] for run in runs] for name, runs in taken.items()},
        "times_the_emitter": round(seconds["lumos"] / seconds["emitter"], 2),
        "reading_back": reading,
        "openmetadata": _openmetadata(),
    }


def _on_a_new_stub(role: str, *arguments: str) -> dict[str, Any]:
    with in_its_own_process("catalogs.servers.gms", "--fast") as address:
        done = _child(role, address, *arguments)
        return {**done, **_counts(address)}


def _reading(file: str) -> dict[str, Any]:
    with in_its_own_process("catalogs.servers.gms", "--fast") as address:
        _child("emitter", address, file)
        calls = _counts(address)["calls"]
        done = _child("read", address)
        return {**done, "calls": _counts(address)["calls"] - calls}


def _openmetadata() -> dict[str, Any]:
    told: dict[str, Any] = {"datasets": IN_OPENMETADATA}
    with in_its_own_process("catalogs.servers.openmetadata") as address:
        for role in ("write_openmetadata", "read_openmetadata"):
            before = _counts(address)["calls"]
            told[role] = _child(role, address)
            told[role]["calls"] = _counts(address)["calls"] - before
    return told


def _counts(address: str) -> dict[str, int]:
    asked = urllib.request.Request(f"{address}/stub", headers={"Authorization": f"Bearer {TOKEN}"})
    with urllib.request.urlopen(asked) as answer:
        counts: dict[str, int] = json.load(answer)
    return counts


def _child(role: str, *arguments: str) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.emission", role, *arguments],
            env={
                **os.environ,
                "HOME": home,
                "DATAHUB_GMS_TOKEN": TOKEN,
                "OPENMETADATA_JWT_TOKEN": BOT,
                "DATAHUB_TELEMETRY_ENABLED": "false",
            },
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def _timed(work: Callable[[], object]) -> dict[str, Any]:
    started, used = time.perf_counter(), time.process_time()
    work()
    return {
        "seconds": round(time.perf_counter() - started, 2),
        "cpu": round(time.process_time() - used, 2),
    }


def _lumos(address: str, *_: str) -> dict[str, Any]:
    from lumos.catalogs.datahub.platform import Datahub

    catalog = Datahub.at(address)
    estate = list(_estate(DATASETS, changed=0))
    catalog.check()
    return _timed(lambda: _write(catalog, estate))


def _write(catalog: WritesMany, estate: list[CatalogEntry]) -> None:
    for start in range(0, len(estate), catalog.batch_size):
        some = estate[start : start + catalog.batch_size]
        for written in catalog.put_many(some, current={}):
            if isinstance(written, FailedEntry):
                raise written.problem


def _record(file: str) -> dict[str, Any]:
    gms = Gms(validating=False)
    with Server(gms, recording=False) as server:
        _lumos(server.address)
    with Path(file).open("w", encoding="utf-8") as out:
        for proposal in gms.proposals:
            assert proposal.aspect is not None
            out.write(json.dumps([
                proposal.entityType, proposal.entityUrn, proposal.changeType, proposal.aspectName,
                proposal.aspect.value, proposal.aspect.contentType,
            ]) + "\n")  # fmt: skip
    return {"proposals": len(gms.proposals)}


def _emitter(address: str, file: str, *, typed: bool = False) -> dict[str, Any]:
    from datahub.emitter.rest_emitter import DataHubRestEmitter

    emitter = DataHubRestEmitter(address, token=TOKEN, openapi_ingestion=False)
    emitter.test_connection()
    proposals = list(_proposals(file, typed=typed))
    return _timed(lambda: emitter.emit_mcps(proposals))


def _proposals(file: str, *, typed: bool) -> Iterator[Any]:
    from datahub.emitter.mcp import MetadataChangeProposalWrapper
    from datahub.metadata.schema_classes import GenericAspectClass, MetadataChangeProposalClass

    with Path(file).open(encoding="utf-8") as lines:
        for line in lines:
            type, urn, change, name, value, content_type = json.loads(line)
            made = MetadataChangeProposalClass(
                entityType=type,
                entityUrn=urn,
                changeType=change,
                aspectName=name,
                aspect=GenericAspectClass(value=value.encode(), contentType=content_type),
            )
            wrapped = MetadataChangeProposalWrapper.try_from_mcpc(made) if typed else None
            yield wrapped or made


def _read_datahub(address: str) -> dict[str, Any]:
    from lumos.catalogs.datahub.platform import Datahub

    return _read(Datahub.at(address))


def _write_openmetadata(address: str) -> dict[str, Any]:
    from lumos.catalogs.openmetadata.platform import Openmetadata

    catalog = Openmetadata.at(address)
    estate = list(_estate(IN_OPENMETADATA, changed=0))
    catalog.check()
    return _timed(lambda: _write(catalog, estate))


def _read_openmetadata(address: str) -> dict[str, Any]:
    from lumos.catalogs.openmetadata.platform import Openmetadata

    return _read(Openmetadata.at(address))


def _read(catalog: ReadsEntries) -> dict[str, Any]:
    found: list[int] = []
    told = _timed(lambda: found.append(sum(1 for _ in catalog.export())))
    # What getrusage says goes back to the process that this one was forked from.
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    peak = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert peak is not None
    return {**told, "datasets": found[0], "megabytes": round(int(peak[1]) / 1024)}


ROLES: dict[str, Callable[..., dict[str, Any]]] = {
    "record": _record,
    "lumos": _lumos,
    "emitter": _emitter,
    "emitter_typed": lambda *arguments: _emitter(*arguments, typed=True),
    "read": _read_datahub,
    "write_openmetadata": _write_openmetadata,
    "read_openmetadata": _read_openmetadata,
}

if __name__ == "__main__":
    sys.stdout.write(json.dumps(ROLES[sys.argv[1]](*sys.argv[2:])))
