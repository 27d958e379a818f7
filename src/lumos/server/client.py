"""Lumos on a server: the same properties and methods as the SDK, over HTTP."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import unquote_to_bytes, urlsplit

import msgspec

from lumos.audit.reports import AuditExportReport
from lumos.errors import LumosError, MisuseError
from lumos.http.client import HttpClient, HttpError, HttpResponse, TimeLimits
from lumos.http.pooled_transport import PooledTransport
from lumos.http.retries import RetryPolicy
from lumos.model.json_codec import to_json
from lumos.schemas.changes import ChangesReport
from lumos.schemas.output import write_output
from lumos.sdk import Lumos
from lumos.server.routes import TABLE, Route, UploadedFile, UploadedPath
from lumos.server.wire import (
    PROBLEM,
    REPORT_HEADER,
    ApiProblem,
    body_of,
    decode_result,
    error_of,
    query_of,
)
from lumos.snapshots.export import file_in, is_folder_for_snapshots
from lumos.snapshots.format.encodings import EXTENSIONS
from lumos.snapshots.reports import SnapshotExportReport
from lumos.snapshots.service import DEFAULT_EXTENSION
from lumos.storage.file_names import FileNames
from lumos.store.audit import GENESIS

SERVER: Final = "LUMOS_SERVER"
TOKEN: Final = "LUMOS_TOKEN"
_TIMEOUTS: Final = TimeLimits(connect=5.0, read=300.0)
# Short, since a user waits for the response.
_RETRIES: Final = RetryPolicy(tries=4, seconds=10, first_wait=0.2, max_wait=1.0)
_NEXT: Final = re.compile(r"<([^>]+)>; rel=\"next\"")
_OK: Final = 200
# The server has its own limit for a request, which is lower by default.
_MAX_UPLOAD_BYTES: Final = 256 * 1024 * 1024
_MAX_UPLOAD_FILES: Final = 10_000
# Methods that use the settings, files or state of the machine on which they run.
_REASONS_NOT_REMOTE: Final = {
    "init": "it writes a configuration on this machine",
    "doctor": "it checks this machine",
    "watch": "it runs until it is stopped; run it where the server runs",
    "events.status": "it reads the state folder of the watcher; run it where that runs",
    "events.setup": "it needs administrator rights for the bucket",
    "events.teardown": "it needs administrator rights for the bucket",
    "discover": "it reads this machine's paths",
    "ingest": "scans run where the server runs",
    "on_change": "functions cannot be sent; follow /api/v1/changes/events instead",
}


# Methods that save the server's response to a file of this machine.
_FILE_EXPORTS: Final = {"snapshot.export": "export_snapshot", "audit.export": "export_audit"}


class NotOnServer(MisuseError):
    """A method or an option that does not work over HTTP."""


class ServerUnreachable(LumosError):
    """A server that did not respond."""


def connect(url: str | None = None, *, token: str | None = None) -> Lumos:
    """A `Lumos` that sends its calls to a server, by default to the URL in LUMOS_SERVER.

    The result has the properties and methods of `Lumos` and returns the same reports. `token` is
    by default LUMOS_TOKEN.
    """
    address = url or os.environ.get(SERVER, "")
    if not address:
        raise MisuseError(f"No server given. Give its URL, or set {SERVER}.")
    return cast(Lumos, RemoteLumos(address, token=token or os.environ.get(TOKEN)))


class RemoteLumos:
    """The properties and methods of `Lumos`; each call is a request to a server."""

    def __init__(self, url: str, *, token: str | None = None) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise MisuseError(f"'{url}' is not the URL of a server. Use http://HOST:PORT or https.")
        if parts.username or parts.password:
            raise MisuseError(f"The URL of the server contains a password. Set {TOKEN} instead.")
        self._url = f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/')}"
        self._token = token
        self._http = HttpClient(PooledTransport(limits=_TIMEOUTS))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return _member(self, name)

    def changes(self, **filters: Any) -> ChangesReport:
        """The changes of datasets, which the server sends as a stream."""
        events = self.change_history.iterate(**filters)
        return ChangesReport.of(events)

    def export_snapshot(
        self,
        output: str | Path,
        *,
        ending: str | None = None,
        since: str | Path | None = None,
        progress: object = None,  # noqa: ARG002 - the server reports none
        **options: Any,
    ) -> SnapshotExportReport:
        """Write a snapshot of the server's store to a file of this machine."""
        if since is not None:
            raise NotOnServer("--since does not work on a server. Export everything instead.")
        file = Path(output)
        if is_folder_for_snapshots(output):
            file = file_in(file, ending or DEFAULT_EXTENSION, at=datetime.now(UTC))
        extension = next((each for each in EXTENSIONS if file.name.lower().endswith(each)), None)
        route = TABLE.by_sdk_path["snapshot.export"]
        given = {name: value for name, value in options.items() if value not in (None, ())}
        query = query_of(route, {**given, "ending": extension} if extension else given)
        response = self._send(route, f"{route.url}?{query}", b"")
        file.parent.mkdir(parents=True, exist_ok=True)
        write_output(file, response.body)
        report: SnapshotExportReport = decode_result(
            unquote_to_bytes(response.headers[REPORT_HEADER.lower()]), SnapshotExportReport
        )
        return msgspec.structs.replace(report, file=str(file))

    def export_audit(self, file: str | Path) -> AuditExportReport:
        """Write the actions of the server's audit log to a file of this machine."""
        route = TABLE.by_sdk_path["audit.entries"]
        entries = list(self.call(route, (), {}))
        write_output(Path(file), b"".join(to_json(each) + b"\n" for each in entries))
        head = entries[-1].hash if entries else GENESIS
        return AuditExportReport(file=str(file), rows=len(entries), head=head)

    def call(self, route: Route, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Send the arguments of a method and return its result."""
        given = _arguments(route, args, kwargs)
        if route.has_body:
            response = self._send(route, route.url, body_of(given))
        else:
            query = query_of(route, given)
            response = self._send(route, f"{route.url}?{query}" if query else route.url, b"")
        if route.sdk_method.is_stream:
            return _lines(response.body, route.sdk_method.result)
        result = decode_result(response.body, route.sdk_method.result)
        return self._with_next_pages(route, result, response, given.get("limit"))

    def _with_next_pages(
        self, route: Route, result: Any, response: HttpResponse, limit: int | None
    ) -> Any:
        page = route.page
        if page is None:
            return result
        items = list(getattr(result, page.items))
        while (link := _NEXT.search(response.headers.get("link", ""))) and (
            limit is None or len(items) < limit
        ):
            response = self._send(route, link[1], b"")
            items += getattr(decode_result(response.body, route.sdk_method.result), page.items)
        return msgspec.structs.replace(result, **{page.items: tuple(items[:limit])})

    def _send(self, route: Route, target: str, body: bytes) -> HttpResponse:
        headers = {"Accept": "*/*"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        if route.has_body:
            headers["Content-Type"] = "application/json"
        try:
            response = self._http.send(
                route.method,
                f"{self._url}{target}",
                headers=lambda: headers,
                body=body,
                # A write is not repeated, since the server may have completed it.
                **({"retries": _RETRIES} if route.method == "GET" else {}),
                max_bytes=None,
            )
        except HttpError as problem:
            raise ServerUnreachable(
                f"The server {self._url} did not respond: {problem.reason}. "
                "Start it with: lumos serve"
            ) from None
        if response.status == _OK:
            return response
        raise _error(self._url, response)


def _member(remote: RemoteLumos, path: str) -> Any:
    if path in _FILE_EXPORTS:
        return getattr(remote, _FILE_EXPORTS[path])
    route = TABLE.by_sdk_path.get(path)
    if route is not None:
        return lambda *args, **kwargs: remote.call(route, args, kwargs)
    if path in TABLE.owners:
        return _Owner(remote, path)
    reason = _REASONS_NOT_REMOTE.get(path, "it needs files or services of this machine")
    raise NotOnServer(
        f"'{path}' does not work on a server: {reason}. Run it without --server and {SERVER}."
    )


class _Owner:
    """A property of `Lumos`, such as `annotations.tags`."""

    def __init__(self, remote: RemoteLumos, path: str) -> None:
        self._remote = remote
        self._path = path

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return _member(self._remote, f"{self._path}.{name}")


def _arguments(route: Route, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that are not the default, with the contents of files instead of paths."""
    method = route.sdk_method
    known = {each.name: each for each in method.parameters}
    sent: dict[str, Any] = {}
    for name, value in method.bind(args, kwargs).items():
        parameter = known.get(name)
        if parameter is None:
            default = method.signature.parameters[name].default
            if not callable(value) and value != default:
                option = f"--{name.replace('_', '-')}"
                raise NotOnServer(
                    f"{option} does not work on a server. Run the command without --server, or "
                    f"without {option}."
                )
        elif name in route.files and parameter.kind == "rest":
            sent[name] = _uploads(route, value)
        elif name in route.files and value is not None:
            sent[name] = UploadedFile(name=_name(route, value), content=_content(value))
        elif value is not None and (parameter.is_required or value != parameter.default):
            sent[name] = value
    return sent


def _name(route: Route, path: str | Path) -> str:
    return FileNames(None).of(Path(path)) if route.has_stable_file_names else str(path)


def _uploads(route: Route, paths: Sequence[str | Path]) -> tuple[UploadedPath, ...]:
    """The files and folders of a request; of folders, only the files that Lumos can read."""
    size = count = 0
    uploads = []
    for path in map(Path, paths):
        is_folder = path.is_dir()
        files = []
        for file in _files_in(path) if is_folder else (path,):
            content = _content(file)
            size, count = size + len(content), count + 1
            if size > _MAX_UPLOAD_BYTES or count > _MAX_UPLOAD_FILES:
                raise MisuseError(
                    f"{path} has more than {_MAX_UPLOAD_BYTES >> 20} MB or {_MAX_UPLOAD_FILES:,} "
                    "files. Send smaller folders, or run the command on the machine of the server."
                )
            name = file.relative_to(path).as_posix() if is_folder else file.name
            files.append(UploadedFile(name=name, content=content))
        name = _name(route, path)
        uploads.append(UploadedPath(name=name, is_folder=is_folder, files=tuple(files)))
    return tuple(uploads)


def _files_in(folder: Path) -> Iterator[Path]:
    from lumos.lineage.input_files import is_ignored_folder, may_be_input

    for current, folders, files in os.walk(folder):
        folders[:] = sorted(each for each in folders if not is_ignored_folder(each))
        yield from (Path(current) / each for each in sorted(files) if may_be_input(each))


def _content(file: str | Path) -> bytes:
    path = Path(file)
    if not path.is_file():
        raise MisuseError(f"{path}: there is no such file.")
    return path.read_bytes()


def _lines(body: bytes, type: Any) -> Iterator[Any]:
    return (decode_result(line, type) for line in body.splitlines())


def _error(url: str, response: HttpResponse) -> LumosError:
    """The error that a response describes."""
    if response.headers.get("content-type", "").startswith(PROBLEM):
        try:
            return error_of(msgspec.json.decode(response.body, type=ApiProblem))
        except msgspec.MsgspecError:
            pass
    return LumosError(f"{url} answered with status {response.status}. Is it a Lumos server?")
