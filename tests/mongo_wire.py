"""Answers as MongoDB's manual shows them, over its wire protocol, from a dict of collections.

It tells what mongo-java-server cannot: validators, views, identities, refusals, shards.
"""

import random
import socket
import socketserver
import struct
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import bson

_QUERY, _REPLY, _MESSAGE = 2004, 1, 2013


class Served:
    """A collection or view: its documents, and what the server says of it."""

    def __init__(
        self,
        documents: Sequence[Mapping[str, Any]] = (),
        *,
        type: str = "collection",
        options: Mapping[str, Any] | None = None,
        identity: UUID | None = None,
        indexes: Sequence[Mapping[str, Any]] = (),
        sharded: bool = False,
        counted: int | None = None,
    ) -> None:
        self.documents = list(documents)
        self.type = type
        self.options = dict(options or {})
        self.identity = identity
        self.indexes = [{"v": 2, "key": {"_id": 1}, "name": "_id_"}, *indexes]
        self.sharded = sharded
        # What the server believes, which may be old.
        self.counted = counted

    def listed(self, name: str) -> dict[str, Any]:
        info: dict[str, Any] = {"readOnly": self.type == "view"}
        if self.identity is not None:
            info["uuid"] = bson.Binary.from_uuid(self.identity)
        return {"name": name, "type": self.type, "options": self.options, "info": info}


class MongoWire:
    """A server; `asked` is every command that came."""

    def __init__(self, databases: Mapping[str, dict[str, Served]]) -> None:
        self.databases = dict(databases)
        self.asked: list[dict[str, Any]] = []
        # What is answered to a command instead, by its name or by its name and namespace.
        self.refused: dict[str, dict[str, Any]] = {}
        self.shard_keys: dict[str, dict[str, Any]] = {}
        self.wire_version = 21
        self.chance = random.Random(1)

    def refuse(self, command: str, code: int, text: str) -> None:
        self.refused[command] = {"ok": 0.0, "errmsg": text, "code": code}

    def answer(self, command: dict[str, Any]) -> dict[str, Any]:
        name = next(iter(command))
        if name.lower() in ("ismaster", "hello"):
            return {
                "ismaster": True,
                "maxBsonObjectSize": 16 << 20,
                "maxMessageSizeBytes": 48_000_000,
                "maxWriteBatchSize": 100_000,
                "minWireVersion": 0,
                "maxWireVersion": self.wire_version,
                "readOnly": False,
                "ok": 1.0,
            }
        self.asked.append(command)
        database, target = str(command.get("$db")), command[name]
        for key in (f"{name} {database}.{target}", f"{name} {database}", name):
            if key in self.refused:
                return self.refused[key]
        result: dict[str, Any] = getattr(self, f"_{name}")(command, database)
        return {**result, "ok": 1.0}

    def _buildInfo(self, _command: dict[str, Any], _database: str) -> dict[str, Any]:
        return {"version": "7.0.14", "versionArray": [7, 0, 14, 0]}

    _buildinfo = _buildInfo

    def _listDatabases(self, _command: dict[str, Any], _database: str) -> dict[str, Any]:
        names = sorted({*self.databases, "admin", "local", "config"})
        return {"databases": [{"name": name} for name in names]}

    def _listCollections(self, _command: dict[str, Any], database: str) -> dict[str, Any]:
        there = self.databases.get(database, {})
        return _cursor(
            f"{database}.$cmd.listCollections",
            [served.listed(name) for name, served in there.items()],
        )

    def _collStats(self, command: dict[str, Any], database: str) -> dict[str, Any]:
        served = self.databases[database][command["collStats"]]
        size = sum(len(bson.encode(each)) for each in served.documents)
        count = len(served.documents) if served.counted is None else served.counted
        return {"count": count, "size": size, "sharded": served.sharded}

    def _count(self, command: dict[str, Any], database: str) -> dict[str, Any]:
        return {"n": len(self.databases[database][command["count"]].documents)}

    def _find(self, command: dict[str, Any], database: str) -> dict[str, Any]:
        name = command["find"]
        if (database, name) == ("config", "collections"):
            wanted = command["filter"]["_id"]
            key = self.shard_keys.get(wanted)
            return _cursor(f"{database}.{name}", [{"_id": wanted, "key": key}] if key else [])
        documents = self.databases[database][name].documents
        return _cursor(f"{database}.{name}", documents[: command.get("limit") or None])

    def _aggregate(self, command: dict[str, Any], database: str) -> dict[str, Any]:
        documents = self.databases[database][command["aggregate"]].documents
        (stage,) = command["pipeline"]
        size = min(stage["$sample"]["size"], len(documents))
        return _cursor(f"{database}.{command['aggregate']}", self.chance.sample(documents, size))

    def _listIndexes(self, command: dict[str, Any], database: str) -> dict[str, Any]:
        served = self.databases[database][command["listIndexes"]]
        return _cursor(f"{database}.$cmd.listIndexes", served.indexes)

    def _endSessions(self, _command: dict[str, Any], _database: str) -> dict[str, Any]:
        return {}


def _cursor(namespace: str, documents: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return {"cursor": {"id": bson.Int64(0), "ns": namespace, "firstBatch": list(documents)}}


@contextmanager
def serving(wire: MongoWire) -> Iterator[str]:
    """The address where a wire answers."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            while (message := _received(self.request)) is not None:
                request, operation, body = message
                if operation == _QUERY:
                    end = body.index(b"\0", 4) + 1
                    command = bson.decode(body[end + 8 :][: _length(body[end + 8 :])])
                    answer = struct.pack("<iqii", 8, 0, 0, 1) + bson.encode(wire.answer(command))
                    kind = _REPLY
                else:
                    command = bson.decode(body[5 : 5 + _length(body[5:])])
                    answer = b"\0" * 5 + bson.encode(wire.answer(command))
                    kind = _MESSAGE
                header = struct.pack("<iiii", 16 + len(answer), 0, request, kind)
                self.request.sendall(header + answer)

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = True
        daemon_threads = True

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"mongodb://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def _length(data: bytes) -> int:
    return int.from_bytes(data[:4], "little")


def _received(connection: socket.socket) -> tuple[int, int, bytes] | None:
    header = _exactly(connection, 16)
    if header is None:
        return None
    length, request, _, operation = struct.unpack("<iiii", header)
    body = _exactly(connection, length - 16)
    return None if body is None else (request, operation, body)


def _exactly(connection: socket.socket, length: int) -> bytes | None:
    data = b""
    while len(data) < length:
        try:
            part = connection.recv(length - len(data))
        except OSError:
            return None
        if not part:
            return None
        data += part
    return data
