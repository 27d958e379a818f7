"""A stub of a schema registry with Confluent's API, as far as Lumos reads it.

It answers from dictionaries in this process. The real registry of the tests is in servers/kafka.py.
`python -m registry_stub SUBJECTS VERSIONS` serves that many subjects of records, says where, and
ends when its standard input does.
"""

import json
import sys
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Literal, Self
from urllib.parse import parse_qs, unquote, urlsplit


class RegistryStub:
    """Subjects with their versions; `denied` subjects answer 403, and `broken` ones 500."""

    def __init__(self) -> None:
        self.subjects: dict[str, dict[int, dict[str, Any]]] = {}
        self.compatibility: dict[str, str] = {"": "BACKWARD"}
        self.denied: set[str] = set()
        self.broken: set[str] = set()
        self.login: str | None = None
        self.delay = 0.0
        # How it lists the schemas of all subjects that begin with a text.
        self.lists_schemas: Literal["by_prefix", "all", "never", "broken"] = "by_prefix"
        # Answers lists several times over.
        self.repeats = 1
        self.requests: Counter[str] = Counter()
        self.authorizations: set[str | None] = set()
        self._last_id = 0

    def register(
        self, subject: str, schema: object, *, type: str = "AVRO", at: int | None = None,
        references: tuple[tuple[str, str, int], ...] = (),
    ) -> int:  # fmt: skip
        text = schema if isinstance(schema, str) else json.dumps(schema)
        versions = self.subjects.setdefault(subject, {})
        self._last_id += 1
        number = max(versions, default=0) + 1
        found: dict[str, Any] = {
            "subject": subject, "version": number, "id": self._last_id, "schema": text,
        }  # fmt: skip
        if type != "AVRO":
            found["schemaType"] = type
        if references:
            found["references"] = [
                {"name": name, "subject": other, "version": version}
                for name, other, version in references
            ]
        if at is not None:
            found["ts"] = at
        versions[number] = found
        return self._last_id

    def answer(self, path: str) -> tuple[int, object]:
        self.requests[path.partition("?")[0]] += 1
        time.sleep(self.delay)
        parts = [unquote(part) for part in urlsplit(path).path.strip("/").split("/")]
        match parts:
            case ["subjects"]:
                return 200, list(self.subjects) * self.repeats
            case ["schemas"] if self.lists_schemas == "broken":
                return 500, {"error_code": 50001, "message": "Error in the backend data store"}
            case ["schemas"] if self.lists_schemas != "never":
                (prefix,) = parse_qs(urlsplit(path).query)["subjectPrefix"]
                prefix = "" if self.lists_schemas == "all" else prefix
                return 200, [
                    each
                    for subject, versions in self.subjects.items()
                    if subject.startswith(prefix) and subject not in self.denied | self.broken
                    for each in versions.values()
                ] * self.repeats
            case ["subjects", subject, *_] if subject in self.denied:
                return 403, {"error_code": 40301, "message": "User is denied operation Read"}
            case ["subjects", subject, *_] if subject in self.broken:
                return 422, {"error_code": 42201, "message": "Invalid schema"}
            case ["subjects", subject, "versions"] if subject in self.subjects:
                return 200, list(self.subjects[subject]) * self.repeats
            case ["subjects", subject, "versions", version] if subject in self.subjects:
                found = self.subjects[subject].get(int(version))
                return (200, found) if found else (404, {"error_code": 40402})
            case ["config"]:
                return 200, {"compatibilityLevel": self.compatibility[""]}
            case ["config", subject] if subject in self.compatibility:
                return 200, {"compatibilityLevel": self.compatibility[subject]}
            case ["schemas", "ids", number, "versions"]:
                return 200, [
                    {"subject": subject, "version": version}
                    for subject, versions in self.subjects.items()
                    for version, each in versions.items()
                    if each["id"] == int(number)
                ]
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}

    def __enter__(self) -> Self:
        stub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            # Without it, small answers wait for an acknowledgement.
            disable_nagle_algorithm = True

            def do_GET(self) -> None:
                given = self.headers.get("Authorization")
                stub.authorizations.add(given)
                if stub.login is not None and given != stub.login:
                    status, body = 401, {"error_code": 401, "message": f"Unauthorized: {given}"}
                else:
                    status, body = stub.answer(self.path)
                data = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._server.shutdown()
        self._server.server_close()


def _fill(stub: RegistryStub, subjects: int, versions: int) -> None:
    types = ("long", "string", "double", ["null", "string"], {"type": "array", "items": "long"})
    for number in range(subjects):
        for version in range(versions):
            fields = [
                {"name": f"column_{at}", "type": types[(number + at) % len(types)]}
                for at in range(11 + version)
            ]
            schema = {"type": "record", "name": f"Record{number}", "fields": fields}
            stub.register(f"topic-{number}-value", schema)
        stub.compatibility[f"topic-{number}-value"] = "FULL"


if __name__ == "__main__":
    with RegistryStub() as served:
        _fill(served, int(sys.argv[1]), int(sys.argv[2]))
        sys.stdout.write(f"{served.url}\n")
        sys.stdout.flush()
        sys.stdin.read()
