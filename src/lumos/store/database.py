"""Opens the database behind a store and watches over its revision."""

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event, inspect, make_url, text
from sqlalchemy.exc import ArgumentError

from lumos.errors import MissingDependency, MisuseError
from lumos.store.any_text import allow_any_text
from lumos.store.errors import StoreNotUsable, StoreTooNew, StoreTooOld, clear_errors
from lumos.store.locks import AdvisoryLocks, FileLocks, Locks

# Oldest first; the last one is what this Lumos reads and writes.
REVISIONS: Final = (
    "0001", "0002", "0003", "0004", "0005", "0006", "0007", "0008", "0009", "0010", "0011",
    "0012", "0013", "0014", "0015", "0016",
)  # fmt: skip
HEAD: Final = REVISIONS[-1]
# The first revision whose search index holds all that search looks at now.
_SEARCH_REVISION: Final = "0016"
BUSY_SECONDS: Final = 30.0
_LONGEST_NAME: Final = 2600


class Database:
    """A connection pool, the name of the place for error messages, and locks by name."""

    def __init__(self, engine: Engine, place: str, locks: Locks) -> None:
        self.engine = engine
        self.place = place
        # What readers made from the store, each with the revision of what it was made from.
        self.kept: dict[str, Any] = {}
        self.locks = locks

    @classmethod
    def sqlite(cls, file: Path, *, busy_seconds: float = BUSY_SECONDS) -> "Database":
        """The SQLite database in a file, which need not exist yet."""
        address = f"sqlite:///{file}"
        if file.exists() and not (os.access(file, os.W_OK) and os.access(file.parent, os.W_OK)):
            # Without a log of changes to be merged, a file that cannot be written may be read.
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
            engine = create_engine(address, pool_pre_ping=True, connect_args=_POSTGRES)
        except ModuleNotFoundError:
            raise MissingDependency("A PostgreSQL store", "psycopg", "postgres") from None
        except ArgumentError:
            raise MisuseError(
                "storage.connection_string is no PostgreSQL URL. "
                "One looks like postgresql://user:password@host:5432/database"
            ) from None
        event.listen(engine, "connect", _prepare_postgres)
        return cls(engine, address.render_as_string(hide_password=True), AdvisoryLocks(engine))

    @property
    def is_shared(self) -> bool:
        """Whether several transactions may write at the same time."""
        return self.engine.dialect.name == "postgresql"

    @property
    def longest_name(self) -> int | None:
        """How many bytes a name may have to be found by, if there is a limit."""
        # An entry of PostgreSQL's indexes takes a third of a page.
        return _LONGEST_NAME if self.is_shared else None

    @contextmanager
    def alone(self, name: str) -> Iterator[None]:
        """The only holder of a name on any machine; it is given up even by a killed process."""
        with clear_errors(self.place), self.locks.held(name):
            yield

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that sees one state of the store and changes nothing."""
        with clear_errors(self.place), self.engine.connect() as connection, connection.begin():
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that holds the right to write from its first statement on."""
        with clear_errors(self.place), self.engine.connect() as plain:
            connection = plain.execution_options(lumos_writes=True)
            with connection.begin():
                yield connection

    def check_writable(self) -> None:
        """Fails now rather than after an hour's work where nothing can be written."""
        with self.writing():
            pass

    def merge_log(self) -> None:
        """Merges SQLite's log of changes, in which what was taken away can still be read.

        Where somebody reads or writes just now, nobody waits, and the log stays for a later time.
        """
        file = self.engine.url.database
        if self.engine.dialect.name == "sqlite" and file and not file.startswith("file:"):
            with clear_errors(self.place), closing(sqlite3.connect(file, timeout=0)) as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def is_empty(self) -> bool:
        """Whether there is no database yet, or one without a single table."""
        file = self.engine.url.database
        is_new = file and not file.startswith("file:") and not Path(file).exists()
        if self.engine.dialect.name == "sqlite" and is_new:
            return True
        return self.revision() is None

    def revision(self) -> str | None:
        """The store's revision, or nothing for an empty database."""
        with self.reading() as connection:
            return self._revision(connection)

    def check_revision(self) -> None:
        """Refuses a store of another revision and does nothing else."""
        found = self.revision()
        if found == HEAD:
            return
        if found in REVISIONS or found is None:
            raise StoreTooOld(self.place, found or "none", HEAD)
        raise StoreTooNew(self.place, found, HEAD)

    def upgrade(self) -> tuple[str | None, str]:
        """Migrates to the newest revision in one transaction; gives the old and the new one."""
        if self.engine.dialect.name == "sqlite" and self.engine.url.database:
            self._prepare_file(Path(self.engine.url.database))
        with self.writing() as connection:
            found = self._revision(connection)
            if found is not None and found not in REVISIONS:
                raise StoreTooNew(self.place, found, HEAD)
            if found != HEAD:
                _migrate(connection)
            if found is not None and found < _SEARCH_REVISION:
                _rebuild_search(connection)
        return found, HEAD

    def _prepare_file(self, file: Path) -> None:
        _make_folder(file.parent)
        _make_private(file)
        # The mode stays with the file; somebody else's database is left as it is.
        if not file.exists() or self.revision() is None:
            with clear_errors(self.place), closing(sqlite3.connect(file)) as connection:
                connection.execute("PRAGMA journal_mode = WAL")

    def _revision(self, connection: Connection) -> str | None:
        tables = inspect(connection).get_table_names()
        if not tables:
            return None
        if "alembic_version" not in tables:
            raise StoreNotUsable(
                f"{self.place} is a database, but not a Lumos store. "
                "Choose another place with storage.path in lumos.yaml."
            )
        found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
        return None if found is None else str(found)


_POSTGRES: Final = {
    "connect_timeout": 10,
    "application_name": "lumos",
    "options": "-c lock_timeout=30000 -c timezone=UTC",
}


def _prepare_postgres(connection: Any, _record: object) -> None:
    allow_any_text(connection)


def _prepare_sqlite(connection: Any, _record: object) -> None:
    # The driver must not open transactions by itself: SQLAlchemy's begin decides which kind.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute("PRAGMA synchronous = NORMAL")
    # Large stores are read through the system's own cache, without a copy.
    cursor.execute("PRAGMA mmap_size = 4294967296")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    # A writer that only asks for the lock at its first write can lose against another one that
    # read the same state; asking at the start makes it wait instead.
    writes = connection.get_execution_options().get("lumos_writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise StoreNotUsable(
            f"The store's folder {folder} cannot be made: {problem.strerror}. "
            "Choose another place with storage.path in lumos.yaml."
        ) from problem


def _make_private(file: Path) -> None:
    """Makes a new file that nobody else may read, or the group alone where it may write as well.

    A store holds SQL and the names of people. A umask that lets the group write was set by somebody
    who shares files with it. SQLite gives the files beside it the same permissions.
    """
    try:
        made = os.open(file, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o660)
    except OSError:
        # It is there, or cannot be made, which SQLite tells better.
        return
    is_shared = os.fstat(made).st_mode & stat.S_IWGRP
    os.close(made)
    # Some file systems know no permissions.
    with suppress(PermissionError, NotImplementedError):
        file.chmod(0o660 if is_shared else 0o600)


def _migrate(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "lumos.store:migrations")
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _rebuild_search(connection: Connection) -> None:
    """Makes the search index anew; after all migrations, since it is made by today's code."""
    from lumos.store.collecting import without_collecting
    from lumos.store.search import refill
    from lumos.store.transaction import searched

    with without_collecting():
        refill(connection, searched(connection, None))
