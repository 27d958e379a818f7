"""A small server with the part of WebHDFS that Lumos uses, for tests.

It is not Hadoop's; a real cluster runs in the slow tests. Name node and data node are one server
here, but what goes to the data node is redirected as there. Answers are worded as Hadoop 3.4 words
them.
"""

import base64
import json
import unicodedata
from collections.abc import Callable
from itertools import count
from urllib.parse import quote, unquote, urlencode

from http_server import RecordingServer, Request, Response

REST = "/webhdfs/v1"
TOKEN = "hush-hush-delegation"
TICKET = b"ticket hush-hush"
_MODIFIED = 1_700_000_000_123


class HdfsServer(RecordingServer):
    """Serves files by their paths; folders are what files lie in."""

    def __init__(
        self,
        files: dict[str, bytes] | None = None,
        *,
        answer: Callable[[Request], Response | None] = lambda _request: None,
        page: int = 1000,
        standby: bool = False,
        secure: bool = False,
        is_gateway: bool = False,
    ) -> None:
        super().__init__(answer=answer)
        self.files = files if files is not None else {}
        self.page = page
        self.standby = standby
        self.secure = secure
        self.is_gateway = is_gateway
        self.data_node = ""
        self.tokens: list[str] = []
        self._ids: dict[str, int] = {}
        self._numbers = count(16_386)
        self.times: dict[str, int] = {}
        self._times = count(_MODIFIED + 1)

    def put(self, path: str, data: bytes) -> None:
        """A file, in place of the one that was there."""
        folders = self._new_folders(path)
        self.files[path] = data
        self._ids[path] = next(self._numbers)
        self._touch(path, *folders)

    def remove(self, path: str) -> None:
        """Remove a file, and the folders that have no other."""
        del self.files[path]
        self._touch(path, *self._new_folders(path))

    def _new_folders(self, path: str) -> list[str]:
        """The folders above a path that no file lies in."""
        folders = []
        folder = path.rpartition("/")[0]
        while folder and not any(each.startswith(f"{folder}/") for each in self.files):
            folders.append(folder)
            folder = folder.rpartition("/")[0]
        return folders

    def _touch(self, *paths: str) -> None:
        """Set the times of the folders around what was created or removed."""
        now = next(self._times)
        for path in paths:
            self.times[path.rpartition("/")[0] or "/"] = now

    def respond(self, request: Request) -> Response:
        op = request.query.get("op", "")
        if self.secure and (refused := self._refused(request, op)) is not None:
            return refused
        if self.standby:
            return error(403, "StandbyException", "Operation category READ is not supported in "
                         "state standby. Visit https://s.apache.org/sbnn-error")  # fmt: skip
        if request.path.startswith("/data"):
            return self._at_data_node(request, op)
        path = unquote(request.path.removeprefix(REST)).rstrip("/") or "/"
        return self._at_name_node(request, op, path)

    def _at_name_node(self, request: Request, op: str, path: str) -> Response:
        match request.method, op:
            case "GET", "GETFILESTATUS":
                found = self._status(path)
                return _missing(path) if found is None else _json({"FileStatus": found})
            case "GET", "LISTSTATUS" | "LISTSTATUS_BATCH":
                return self._list(path, request.query.get("startAfter", ""), op)
            case "GET", "OPEN":
                if path not in self.files:
                    return _missing(path)
                return (
                    self._open(path, request) if self.is_gateway else self._elsewhere(request, path)
                )
            case "PUT", "CREATE":
                return self._elsewhere(request, path)
            case "PUT", "RENAME":
                return self._rename(path, request.query)
            case "DELETE", "DELETE":
                return _json({"boolean": self.files.pop(path, None) is not None})
            case "GET", "GETDELEGATIONTOKEN":
                self.tokens.append(f"{TOKEN}-{len(self.tokens)}")
                return _json({"Token": {"urlString": self.tokens[-1]}})
            case "PUT", "CANCELDELEGATIONTOKEN":
                self.tokens.remove(request.query["token"])
                return Response(200)
        return error(400, "IllegalArgumentException", f'Invalid value for webhdfs parameter "{op}"')

    def _list(self, path: str, after: str, op: str) -> Response:
        if op == "LISTSTATUS_BATCH" and self.is_gateway:
            text = 'Invalid value for webhdfs parameter "op": No enum constant LISTSTATUS_BATCH'
            return error(400, "IllegalArgumentException", text)
        if path in self.files:
            return _json({"FileStatuses": {"FileStatus": [self._status(path)]}})
        inside = "/" if path == "/" else f"{path}/"
        names = sorted({
            each[len(inside) :].partition("/")[0] for each in self.files if each.startswith(inside)
        })  # fmt: skip
        if not names and path != "/":
            return _missing(path)
        if op == "LISTSTATUS":
            found = [self._child(inside, name) for name in names]
            return _json({"FileStatuses": {"FileStatus": found}})
        later = [name for name in names if name > after]
        shown = later[: self.page]
        found = [self._child(inside, name) for name in shown]
        listing = {
            "partialListing": {"FileStatuses": {"FileStatus": found}},
            "remainingEntries": len(later) - len(shown),
        }
        return _json({"DirectoryListing": listing})

    def _status(self, path: str) -> dict[str, object] | None:
        modified = self.times.get(path, _MODIFIED)
        facts = {"pathSuffix": "", "modificationTime": modified, "owner": "hdfs"}
        if path in self.files:
            number = self._ids.setdefault(path, next(self._numbers))
            return {**facts, "type": "FILE", "length": len(self.files[path]), "fileId": number}
        inside = "/" if path == "/" else f"{path}/"
        if path == "/" or any(each.startswith(inside) for each in self.files):
            return {**facts, "type": "DIRECTORY", "length": 0, "fileId": 1}
        return None

    def _child(self, folder: str, name: str) -> dict[str, object]:
        facts = self._status(f"{folder}{name}") or {}
        return {**facts, "pathSuffix": name}

    def _elsewhere(self, request: Request, path: str) -> Response:
        """To the data node, with all that was asked and whatever lets one in."""
        if self.is_gateway and request.query.get("data") == "true":
            return self._create(path, request)
        query = {**request.query, **({"data": "true"} if self.is_gateway else {})}
        base = self.data_node or (
            f"{self.url}{REST}" if self.is_gateway else f"{self.url}/data{REST}"
        )
        # As Java writes addresses.
        composed = unicodedata.normalize("NFC", path)
        return Response(307, headers={"Location": f"{base}{quote(composed)}?{urlencode(query)}"})

    def _at_data_node(self, request: Request, op: str) -> Response:
        path = unquote(request.path.removeprefix(f"/data{REST}"))
        return self._create(path, request) if op == "CREATE" else self._open(path, request)

    def _create(self, path: str, request: Request) -> Response:
        assert request.headers["content-type"] == "application/octet-stream"
        self.put(path, request.body)
        return Response(201)

    def _open(self, path: str, request: Request) -> Response:
        data = self.files.get(path)
        if data is None:
            return _missing(path)
        start = int(request.query.get("offset", "0"))
        if start and start >= len(data):
            text = f"Offset={start} out of the range [0, {len(data)}); OPEN, path={path}"
            return error(403, "IOException", text)
        length = int(request.query.get("length", len(data)))
        return Response(200, data[start : start + length])

    def _rename(self, path: str, query: dict[str, str]) -> Response:
        to = query["destination"]
        is_option_known = not self.is_gateway
        if to in self.files and not (is_option_known and query.get("renameoptions") == "OVERWRITE"):
            return _json({"boolean": False})
        self.put(to, self.files.pop(path))
        return Response(200) if is_option_known else _json({"boolean": True})

    def _refused(self, request: Request, op: str) -> Response | None:
        told = request.headers.get("authorization", "")
        if told == f"Negotiate {base64.b64encode(TICKET).decode()}":
            return None
        token = request.query.get("delegation")
        if token is None:
            return Response(401, b"<html>Authentication required</html>",
                            {"WWW-Authenticate": "Negotiate"})  # fmt: skip
        if token not in (TOKEN, *self.tokens) or op == "GETDELEGATIONTOKEN":
            return error(403, "InvalidToken", f"token (token={token}) can't be found in cache")
        return None


def error(status: int, name: str, message: str) -> Response:
    """An answer that says what is wrong as Hadoop says it."""
    facts = {"exception": name, "javaClassName": f"org.apache.{name}", "message": message}
    return Response(status, json.dumps({"RemoteException": facts}).encode())


def _missing(path: str) -> Response:
    return error(404, "FileNotFoundException", f"File {path} does not exist.")


def _json(facts: object) -> Response:
    return Response(200, json.dumps(facts).encode(), {"Content-Type": "application/json"})
