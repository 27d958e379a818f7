"""The database behind a store: connections, locks, transactions, revision and migrations."""

import fcntl
import hashlib
import math
import os
import re
import sqlite3
import stat
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Final, NoReturn
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event, inspect, make_url, text
from sqlalchemy.exc import ArgumentError

from lumos.errors import MissingDependency, MisuseError
from lumos.store import search
from lumos.store.errors import (
    NoStore,
    StoreError,
    StoreNotUsable,
    StoreTooNew,
    StoreTooOld,
    translate_errors,
)
from lumos.store.garbage_collection import paused_gc
from lumos.tracing import span

# Oldest first; this version of Lumos reads and writes the last one.
REVISIONS: Final = (
    "0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008", "0009", "0010", "0011",
    "0012", "0013", "0014", "0015", "0016", "0017", "0018", "0019", "0020", "0021", "0022", "0023",
    "0024",
)  # fmt: skip
HEAD: Final = REVISIONS[-1]
# Stores older than this revision need their search index rebuilt.
_SEARCH_REVISION: Final = "0016"
BUSY_SECONDS: Final = 30.0
_MAX_NAME_BYTES: Final = 2600
# The read transaction that `one_read` shares.
_SHARED: ContextVar[Connection | None] = ContextVar("lumos_shared_read", default=None)


class LockHeld(StoreError):
    """Another process holds the lock."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(
            f"Another scan of {name} is running. Wait until it has ended, then run this one again."
        )


class Locks(ABC):
    """Locks by name."""

    @abstractmethod
    def hold(self, name: str) -> AbstractContextManager[None]:
        """Hold the lock while the block runs; raise LockHeld if another process holds it."""


class FileLocks(Locks):
    """Locks of the operating system on small files in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @contextmanager
    def hold(self, name: str) -> Iterator[None]:
        self._folder.mkdir(parents=True, exist_ok=True)
        file = self._folder / hashlib.blake2b(name.encode(), digest_size=8).hexdigest()
        with file.open("w") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise LockHeld(name) from None
            yield


class AdvisoryLocks(Locks):
    """PostgreSQL's advisory locks, which are released when their connection closes."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @contextmanager
    def hold(self, name: str) -> Iterator[None]:
        key = {"key": hash_name(name)}
        with self._engine.connect() as connection:
            # Autocommit, so that a long scan does not keep a transaction open.
            autocommit = connection.execution_options(isolation_level="AUTOCOMMIT")
            if not autocommit.execute(text("SELECT pg_try_advisory_lock(:key)"), key).scalar():
                raise LockHeld(name)
            try:
                yield
            finally:
                autocommit.execute(text("SELECT pg_advisory_unlock(:key)"), key)


def lock_in_transaction(connection: Connection, *names: str) -> None:
    """Hold locks until the transaction ends; not needed on SQLite, which has one writer."""
    if connection.dialect.name == "postgresql":
        keys = {"keys": list(map(hash_name, names))}
        connection.execute(_LOCK_IN_TRANSACTION, keys)


_LOCK_IN_TRANSACTION: Final = text(
    "SELECT pg_advisory_xact_lock(key) FROM unnest(CAST(:keys AS bigint[])) AS key"
)


def hash_name(name: str) -> int:
    """A signed 64-bit hash of a name of any length, for advisory locks and indexes."""
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


class Database:
    """A connection pool, the location for error messages, and locks by name."""

    def __init__(self, engine: Engine, location: str, locks: Locks) -> None:
        self.engine = engine
        self.location = location
        # Values that readers computed from the store, each with the revision of the data that it
        # was computed from.
        self.cache: dict[str, Any] = {}
        self.locks = locks
        self._has_revision = False
        self._checked_at = -math.inf

    @classmethod
    def sqlite(cls, file: Path, *, busy_seconds: float = BUSY_SECONDS) -> "Database":
        """The SQLite database in a file, which need not exist yet."""
        address = f"sqlite:///{file}"
        if file.exists() and not (os.access(file, os.W_OK) and os.access(file.parent, os.W_OK)):
            # A read-only file can be read as immutable unless it has a write-ahead log to merge.
            has_log = file.with_name(f"{file.name}-wal").exists()
            mode = "mode=ro" if has_log else "mode=ro&immutable=1"
            address = f"sqlite:///file:{quote(str(file))}?{mode}&uri=true"
        engine = create_engine(address, connect_args={"timeout": busy_seconds})
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
        return cls(engine, str(file), FileLocks(file.with_suffix(".locks")))

    @classmethod
    def postgres(cls, url: str) -> "Database":
        """The PostgreSQL database at a URL."""
        try:
            address = make_url(url).set(drivername="postgresql+psycopg")
            engine = create_engine(address, pool_pre_ping=True, connect_args=_POSTGRES_CONNECT_ARGS)
        except ModuleNotFoundError:
            raise MissingDependency("A PostgreSQL store", "psycopg", "postgres") from None
        except ArgumentError:
            raise MisuseError(
                "storage.connection_string is not a PostgreSQL URL. "
                "Expected: postgresql://user:password@host:5432/database"
            ) from None
        event.listen(engine, "connect", _prepare_postgres)
        return cls(engine, address.render_as_string(hide_password=True), AdvisoryLocks(engine))

    @property
    def allows_concurrent_writes(self) -> bool:
        """Whether several transactions may write at the same time."""
        return self.engine.dialect.name == "postgresql"

    @property
    def max_name_bytes(self) -> int | None:
        """The maximum length of a name, or None without a limit."""
        # An entry in a PostgreSQL index may take at most a third of a page.
        return _MAX_NAME_BYTES if self.allows_concurrent_writes else None

    @contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Hold a lock that applies to all machines; it is released if the process is killed."""
        with translate_errors(self.location), self.locks.hold(name):
            yield

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A read transaction, or the one that `one_read` shares."""
        shared = _SHARED.get()
        if shared is not None and shared.engine is self.engine:
            with translate_errors(self.location):
                yield shared
            return
        with (
            self._span("read"),
            translate_errors(self.location),
            self.engine.connect() as connection,
            connection.begin(),
        ):
            yield connection

    @contextmanager
    def one_read(self) -> Iterator[None]:
        """Let all reads of the block share one transaction, since starting one takes longer than
        a short read. The reads may not see what the block writes.
        """
        with self.reading() as connection:
            token = _SHARED.set(connection)
            try:
                yield
            finally:
                _SHARED.reset(token)

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A write transaction, which holds the write lock from its first statement on."""
        with (
            self._span("write"),
            translate_errors(self.location),
            self.engine.connect() as plain,
        ):
            connection = plain.execution_options(lumos_writes=True)
            with connection.begin():
                yield connection

    def _span(self, access: str) -> AbstractContextManager[object]:
        facts = {"db.system.name": self.engine.dialect.name, "db.operation.name": access}
        return span(f"store {access}", facts, kind="client", requires_parent=True)

    def check_writable(self) -> None:
        """Raise an error if the store is read-only, before a long operation needs to write."""
        with self.writing():
            pass

    def checkpoint(self) -> None:
        """Merge SQLite's write-ahead log, in which deleted data can still be read.

        Does not wait: if the store is in use, a later call merges the log.
        """
        file = self.engine.url.database
        if self.engine.dialect.name == "sqlite" and file and not file.startswith("file:"):
            with (
                translate_errors(self.location),
                closing(sqlite3.connect(file, timeout=0)) as connection,
            ):
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def is_empty(self) -> bool:
        """Whether the database does not exist yet or has no tables."""
        return self.revision() is None

    def revision(self) -> str | None:
        """The revision of the store, or None for a database that is empty or does not exist yet."""
        file = self.engine.url.database
        is_new = file and not file.startswith("file:") and not Path(file).exists()
        if self.engine.dialect.name == "sqlite" and is_new:
            self._has_revision = False
            return None
        with self.reading() as connection:
            return self._revision(connection)

    def check_revision(self, *, max_age: float = 0) -> None:
        """Raise an error unless the store has the revision that this version of Lumos needs.

        A successful check is repeated only after `max_age` seconds.
        """
        if time.monotonic() - self._checked_at < max_age:
            return
        revision = self.revision()
        if revision == HEAD:
            self._checked_at = time.monotonic()
            return
        if revision is None:
            raise NoStore(self.location)
        if revision in REVISIONS:
            raise StoreTooOld(self.location, revision, HEAD)
        raise StoreTooNew(self.location, revision, HEAD)

    def upgrade(self) -> tuple[str | None, str]:
        """Migrate to the newest revision in one transaction; return old and new revision."""
        if self.engine.dialect.name == "sqlite" and self.engine.url.database:
            self._prepare_file(Path(self.engine.url.database))
        with self.writing() as connection:
            revision = self._revision(connection)
            if revision is not None and revision not in REVISIONS:
                raise StoreTooNew(self.location, revision, HEAD)
            if revision != HEAD:
                _migrate(connection)
            if revision is not None and revision < _SEARCH_REVISION:
                # After all migrations, since the current code writes the index.
                with paused_gc():
                    search.rebuild(connection, search.search_documents(connection))
        return revision, HEAD

    def _prepare_file(self, file: Path) -> None:
        _make_folder(file.parent)
        _make_private(file)
        # The journal mode is stored in the file; only change it for a new store.
        if not file.exists() or self.revision() is None:
            with translate_errors(self.location), closing(sqlite3.connect(file)) as connection:
                connection.execute("PRAGMA journal_mode = WAL")

    def _revision(self, connection: Connection) -> str | None:
        if not self._has_revision:
            tables = inspect(connection).get_table_names()
            if not tables:
                return None
            if "alembic_version" not in tables:
                raise StoreNotUsable(
                    f"{self.location} is a database, but not a Lumos store. "
                    "Choose another file with storage.path in lumos.yaml."
                )
            self._has_revision = True
        revision = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
        return None if revision is None else str(revision)


class TransactionView(Database):
    """A read-only view of the database with the uncommitted writes of a transaction.

    Reads use the connection of the transaction: another connection would not see its writes,
    and might wait for the transaction to end.
    """

    def __init__(self, database: Database, connection: Connection, cache: dict[str, Any]) -> None:
        super().__init__(database.engine, database.location, database.locks)
        self.cache = cache
        self._connection = connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        yield self._connection

    def writing(self) -> NoReturn:
        raise RuntimeError("the view of a transaction is read-only")


_POSTGRES_CONNECT_ARGS: Final = {
    "connect_timeout": 10,
    "application_name": "lumos",
    "options": "-c lock_timeout=30000 -c timezone=UTC",
}


# A Unicode noncharacter, so that no real text contains it.
_ESCAPE: Final = "\U0010ffff"
_ESCAPES: Final = {"\x00": f"{_ESCAPE}0", _ESCAPE: f"{_ESCAPE}1"}
_UNESCAPES: Final = {escaped: text for text, escaped in _ESCAPES.items()}
_TO_ESCAPE: Final = re.compile(f"[\x00{_ESCAPE}]")
_ESCAPED: Final = re.compile(f"{_ESCAPE}[01]")


def escape_text(text: str) -> str:
    """Replace NUL, which PostgreSQL rejects in text, by an escape sequence."""
    if "\x00" not in text and _ESCAPE not in text:
        return text
    return _TO_ESCAPE.sub(lambda match: _ESCAPES[match.group()], text)


def unescape_text(text: str) -> str:
    """Undo `escape_text`."""
    return text if _ESCAPE not in text else _ESCAPED.sub(lambda m: _UNESCAPES[m.group()], text)


def _prepare_postgres(connection: Any, _record: object) -> None:
    """Make a psycopg connection accept and return text with NUL characters."""
    from psycopg.types.string import StrDumperUnknown, TextLoader

    class Dumper(StrDumperUnknown):
        def dump(self, obj: str) -> Any:
            return super().dump(escape_text(obj))

    class Loader(TextLoader):
        def load(self, data: Any) -> Any:
            text = super().load(data)
            return unescape_text(text) if isinstance(text, str) else text

    connection.adapters.register_dumper(str, Dumper)
    for name in ("text", "varchar"):
        connection.adapters.register_loader(name, Loader)


def _prepare_sqlite(connection: Any, _record: object) -> None:
    # SQLAlchemy begins transactions (see `_begin_sqlite`), so the driver must not.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute("PRAGMA synchronous = NORMAL")
    # Memory-mapped reads use the page cache without copying.
    cursor.execute("PRAGMA mmap_size = 4294967296")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    # Writers take the write lock at the start and wait for it. If they took it at their first
    # write, they would fail whenever another writer has written since they began to read.
    writes = connection.get_execution_options().get("lumos_writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise StoreNotUsable(
            f"Cannot create the folder {folder} of the store: {problem.strerror}. "
            "Choose another folder with storage.path in lumos.yaml."
        ) from problem


def _make_private(file: Path) -> None:
    """Create the file with mode 0600, or 0660 if the umask lets the group write.

    A store contains SQL and names of people. A umask that lets the group write means that files are
    shared with the group. SQLite creates its log files with the same permissions.
    """
    try:
        handle = os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o660)
    except OSError:
        # The file exists, or SQLite will report why it cannot be created.
        return
    is_shared = os.fstat(handle).st_mode & stat.S_IWGRP
    os.close(handle)
    # Some file systems have no permissions.
    with suppress(PermissionError, NotImplementedError):
        file.chmod(0o660 if is_shared else 0o600)


def _migrate(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "lumos.store:migrations")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
