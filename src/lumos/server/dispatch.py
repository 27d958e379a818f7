"""Calls the SDK method of a route for a request: in a thread, with limits, for an actor."""

import asyncio
import hashlib
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from contextvars import copy_context
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from msgspec import UNSET

from lumos.actor import acting_as
from lumos.datasets.reports import ShowReport
from lumos.datasets.service import Datasets
from lumos.errors import LumosError, MisuseError
from lumos.model.json_codec import to_json
from lumos.sdk import Lumos
from lumos.server.identity import Identity
from lumos.server.routes import Page, Route, UploadedFile, UploadedPath
from lumos.server.wire import InvalidArguments, query_of
from lumos.storage.file_names import uploads_named
from lumos.store import Database, Store
from lumos.store.conditions import WriteCondition, write_only_if

Result = TypeVar("Result")
# Fewer than the connections in the store's pool, so that no thread waits for a connection.
THREADS: Final = 8
_STREAM_BATCH: Final = 200
_CHUNK_BYTES: Final = 262_144
_EXPORT_NAME: Final = "snapshot"
# JSON Lines, so that clients can read entries as they arrive.
_DEFAULT_EXTENSION: Final = ".jsonl"
_MAX_UPLOADED_FILES: Final = 10_000
_MAX_SEGMENT_LENGTH: Final = 200
_SINGLE_FILE_EXTENSIONS: Final = (".jsonl", ".jsonl.zst", ".json", ".yaml", ".yml")


class TookTooLong(LumosError):
    """A request that took longer than the limit."""


class PreconditionFailed(MisuseError):
    """The dataset changed since the client read it."""


class Answer(NamedTuple):
    """The result of a method as JSON; `next_query` is the query of the next page.

    `written_etag` is the ETag of the dataset after a conditional write.
    """

    body: bytes
    next_query: str | None = None
    written_etag: str | None = None

    @property
    def etag(self) -> str:
        # Weak, since the same answer may be compressed.
        return f'W/"{hashlib.sha256(self.body).hexdigest()[:32]}"'


class ExportedFile(NamedTuple):
    """A file in a temporary folder, and the report about it."""

    folder: str
    file: Path
    report: bytes


class Dispatcher:
    """Calls methods of one Lumos from many requests.

    Reads run in parallel. Writes run one after the other: SQLite only allows one writer, and
    features publish to catalogs after a write.
    """

    def __init__(self, lumos: Lumos, *, seconds: float) -> None:
        self._lumos = lumos
        self._seconds = seconds
        self._executor = ThreadPoolExecutor(THREADS, thread_name_prefix="server-request")
        self._writing = threading.Lock()

    def close(self) -> None:
        """Wait for running requests."""
        self._executor.shutdown(wait=True, cancel_futures=True)

    async def in_thread(self, function: Callable[..., Result], *args: Any) -> Result:
        """Run a function in a thread of the server; raises TookTooLong."""
        loop = asyncio.get_running_loop()
        context = copy_context()
        running = loop.run_in_executor(self._executor, lambda: context.run(function, *args))
        try:
            return await asyncio.wait_for(running, self._seconds)
        except TimeoutError:
            raise TookTooLong(
                f"The request took longer than {self._seconds:g} s. Ask for less, or raise "
                "server.request_seconds in lumos.yaml."
            ) from None

    def answer(
        self, route: Route, arguments: msgspec.Struct, identity: Identity, if_match: str | None
    ) -> Answer:
        """The result of the route's method; runs in a thread."""
        self._check_catalogs(route, arguments)
        access: AbstractContextManager[Any] = self._writing
        if route.method == "GET":
            access = self._lumos.database.one_read()
        elif route.role == "read":
            access = nullcontext()
        write: _ConditionalWrite | None = None
        with acting_as(identity.actor), access, ExitStack() as conditions:
            if if_match is not None and route.conditional is not None:
                dataset = getattr(arguments, route.conditional)
                write = _ConditionalWrite(self._lumos, dataset, if_match)
                conditions.enter_context(write_only_if(write.condition))
            with _saved_uploads(route, arguments) as (ready, names):
                page = _first_page(route.page, ready)
                result = route.sdk_method.call(self._lumos, page, fixed=route.fixed)
                body = to_json(result)
                for path, name in names.items():
                    # Reports and errors show the path that the client gave.
                    body = body.replace(_json_text(path), _json_text(name))
        etag = None if write is None else write.etag
        return Answer(body, _next_query(route, page, result), etag)

    def export(self, route: Route, arguments: msgspec.Struct, identity: Identity) -> "ExportedFile":
        """The file that the route's method writes; runs in a thread."""
        assert route.output is not None
        self._check_catalogs(route, arguments)
        extension = getattr(arguments, "ending", None) or _DEFAULT_EXTENSION
        if extension not in _SINGLE_FILE_EXTENSIONS:
            raise MisuseError(
                f"A server does not export {extension} files. "
                f"Use one of these: {', '.join(_SINGLE_FILE_EXTENSIONS)}."
            )
        folder = tempfile.mkdtemp(prefix="lumos-export-")
        try:
            file = Path(folder) / f"{_EXPORT_NAME}{extension}"
            fixed = {**route.fixed, route.output: str(file)}
            with acting_as(identity.actor):
                report = route.sdk_method.call(self._lumos, arguments, fixed=fixed)
            return ExportedFile(folder, file, to_json(msgspec.structs.replace(report, file="")))
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    async def chunks(self, exported: "ExportedFile") -> Any:
        """The content of an exported file, which is deleted afterwards."""
        try:
            with exported.file.open("rb") as stream:
                while chunk := await self.in_thread(stream.read, _CHUNK_BYTES):
                    yield chunk
        finally:
            shutil.rmtree(exported.folder, ignore_errors=True)

    def write(self, identity: Identity, function: Callable[..., Result], *args: Any) -> Result:
        """Call a function that writes; runs in a thread."""
        with acting_as(identity.actor), self._writing:
            return function(*args)

    async def stream(self, route: Route, arguments: msgspec.Struct, identity: Identity) -> Any:
        """The items of a method that returns an iterator, as lines of JSON in batches."""

        def start_iteration() -> Iterator[Any]:
            with acting_as(identity.actor):
                return iter(route.sdk_method.call(self._lumos, arguments, fixed=route.fixed))

        def batch(items: Iterator[Any]) -> bytes:
            return b"".join(
                to_json(item) + b"\n" for item, _ in zip(items, range(_STREAM_BATCH), strict=False)
            )

        items = await self.in_thread(start_iteration)
        # Read the first batch before the status is sent: an error then has a status of its own.
        first = await self.in_thread(batch, items)

        async def lines() -> Any:
            data = first
            try:
                while data:
                    yield data
                    data = await self.in_thread(batch, items)
            finally:
                close = getattr(items, "close", None)
                if close is not None:
                    await self.in_thread(close)

        return lines()

    def _check_catalogs(self, route: Route, arguments: msgspec.Struct) -> None:
        """Reject addresses: a client must not make the server open arbitrary hosts or files."""
        for name in route.catalogs:
            catalog = getattr(arguments, name)
            if isinstance(catalog, str) and ":" in catalog:
                raise MisuseError(
                    f"'{catalog}' is an address. Use the name of a catalog in the configuration "
                    "of the server instead."
                )


class _ConditionalWrite:
    """A write that requires the dataset to have one of the ETags of If-Match.

    `etag` is its ETag after the write.
    """

    def __init__(self, lumos: Lumos, dataset: str, if_match: str) -> None:
        self._dataset = dataset
        self._wanted = {each.strip() for each in if_match.split(",")}
        self._hidden_aspects = lumos.settings.switches.hidden_aspects
        # Also check before the write, so that a stale request fails without waiting for it.
        current = lumos.show(dataset)
        self._check(current)
        self.etag = _etag(current)
        urn = str(current.dataset["urn"])
        self.condition = WriteCondition(
            urn,
            check=lambda view: self._check(self._report_in(urn, view)),
            on_written=lambda view: self._keep_etag(self._report_in(urn, view)),
        )

    def _report_in(self, urn: str, view: Database) -> ShowReport:
        store = Store(view)
        datasets = Datasets(
            lambda: store, existing_store=lambda: store, hidden_aspects=self._hidden_aspects
        )
        return datasets.show(urn)

    def _check(self, report: ShowReport) -> None:
        if "*" not in self._wanted and _etag(report) not in self._wanted:
            raise PreconditionFailed(
                f"{self._dataset} has changed since you read it. "
                f"Read it again with: lumos show {self._dataset}"
            )

    def _keep_etag(self, report: ShowReport) -> None:
        self.etag = _etag(report)


def _etag(report: ShowReport) -> str:
    return Answer(to_json(report)).etag


@contextmanager
def _saved_uploads(
    route: Route, arguments: msgspec.Struct
) -> Iterator[tuple[msgspec.Struct, dict[str, str]]]:
    """Save uploaded files in a temporary folder.

    Yields the arguments with paths instead of uploads, and the client's file name for each path.
    """
    if not route.files:
        yield arguments, {}
        return
    values = msgspec.structs.asdict(arguments)
    names: dict[str, str] = {}
    with tempfile.TemporaryDirectory(prefix="lumos-request-") as temporary:
        folder = Path(os.path.realpath(temporary))

        def write(upload: UploadedFile | UploadedPath) -> str:
            # Readers need the extension; the rest of the name may be changed.
            path = folder / str(len(names)) / _safe_name(upload.name)
            path.parent.mkdir()
            if isinstance(upload, UploadedFile):
                path.write_bytes(upload.content)
            else:
                _write_path(path, upload)
            names[str(path)] = upload.name
            return str(path)

        for name in route.files:
            value = values[name]
            if isinstance(value, UploadedFile):
                values[name] = write(value)
            elif isinstance(value, tuple):
                # An empty folder counts as one file.
                if sum(max(1, len(each.files)) for each in value) > _MAX_UPLOADED_FILES:
                    raise InvalidArguments(f"Send at most {_MAX_UPLOADED_FILES:,} files at once.")
                values[name] = tuple(map(write, value))
        given = {name: value for name, value in values.items() if value is not UNSET}
        try:
            with uploads_named({Path(path): name for path, name in names.items()}):
                yield route.sdk_method.arguments(**given), names
        except LumosError as problem:
            text = str(problem)
            for path_text, name in names.items():
                text = text.replace(path_text, name)
            problem.args = (text,)
            raise


def _write_path(path: Path, upload: UploadedPath) -> None:
    """Write an uploaded file or folder to a new path."""
    if not upload.is_folder:
        if len(upload.files) != 1:
            raise InvalidArguments(f"'{upload.name}' is not a folder, so send exactly one file.")
        path.write_bytes(upload.files[0].content)
        return
    path.mkdir()
    for file in upload.files:
        parts = file.name.split("/")
        if any(not _is_plain_segment(part) for part in parts):
            raise InvalidArguments(
                f"'{file.name}' is not a path in the folder '{upload.name}'. Send relative paths "
                "with slashes, without '..'."
            )
        target = path.joinpath(*parts)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(file.content)
        except OSError as problem:
            raise InvalidArguments(
                f"'{file.name}' cannot be written: {problem.strerror}. Rename it and send it again."
            ) from None


def _is_plain_segment(part: str) -> bool:
    return part not in ("", ".", "..") and "\x00" not in part and len(part) <= _MAX_SEGMENT_LENGTH


def _safe_name(name: str) -> str:
    base = os.path.basename(name.replace("\\", "/"))
    safe = "".join(each if each.isalnum() or each in "._-" else "_" for each in base)
    return safe.lstrip(".")[-100:] or "file"


def _json_text(text: str) -> bytes:
    """The JSON encoding of a text, without the quotes."""
    return to_json(text)[1:-1]


def _first_page(page: Page | None, arguments: msgspec.Struct) -> msgspec.Struct:
    """The arguments with the limit reduced to the size of a page."""
    if page is None:
        return arguments
    limit = getattr(arguments, "limit")  # noqa: B009 - every page has one
    return msgspec.structs.replace(arguments, limit=min(limit or page.size, page.size))


def _next_query(route: Route, arguments: msgspec.Struct, result: Any) -> str | None:
    """The query of the next page, if this one is full."""
    page = route.page
    if page is None:
        return None
    items = getattr(result, page.items)
    if len(items) < arguments.limit:  # type: ignore[attr-defined]
        return None
    following = {**msgspec.structs.asdict(arguments), page.cursor: getattr(items[-1], page.key)}
    return query_of(route, following)
