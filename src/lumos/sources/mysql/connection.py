"""Connections to MySQL and MariaDB, and the messages of failed connections."""

import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cached_property
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import pymysql
from pymysql.constants import ER

from lumos.config.secret import MASK, ConnectionString
from lumos.config.sources import MysqlSourceSettings as Settings
from lumos.sources.interface import SourceNotUsable

OLDEST_VERSIONS: Final = {"MySQL": (8, 0), "MariaDB": (10, 5)}
_CONNECT_SECONDS: Final = 10
# In seconds, for tables that are being altered; the server's default is a day.
_LOCK_SECONDS: Final = 5
_DEFAULT_PORT: Final = 3306
# Names of MySQL's client for the modes of libpq.
_SSL_MODES: Final = {
    "disabled": "disable",
    "preferred": "prefer",
    "required": "require",
    "verify_ca": "verify-ca",
    "verify_identity": "verify-full",
}
_SSL_PARAMETERS: Final = ("sslmode", "ssl_mode", "ssl-mode")
_CA_PARAMETERS: Final = ("ssl_ca", "ssl-ca", "sslrootcert")
_VERSION: Final = re.compile(r"(\d+)\.(\d+)")


class MysqlServer(NamedTuple):
    """The product and version of a server."""

    product: str
    version: tuple[int, int]

    @property
    def is_mariadb(self) -> bool:
        """Whether it is MariaDB, whose information schema differs."""
        return self.product == "MariaDB"

    @property
    def text(self) -> str:
        """The product and version for messages."""
        return f"{self.product} {self.version[0]}.{self.version[1]}"


class MysqlConnection(NamedTuple):
    """An open connection; its queries read and never write."""

    raw: "pymysql.Connection[Any]"
    server: MysqlServer

    def rows(self, query: str, *parameters: object) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        with self.raw.cursor() as cursor:
            cursor.execute(query, parameters or None)
            return list(cursor.fetchall())

    def stream(self, query: str, *parameters: object) -> Iterator[tuple[Any, ...]]:
        """The rows of a query, without loading all of them."""
        with self.raw.cursor(pymysql.cursors.SSCursor) as cursor:
            cursor.execute(query, parameters or None)
            yield from cursor

    def has_permission(self, database: str) -> bool:
        """Whether the user has any permission on a database or its tables."""
        try:
            self.raw.select_db(database)
        except pymysql.err.OperationalError as problem:
            if problem.args[0] in (ER.DBACCESS_DENIED_ERROR, ER.BAD_DB_ERROR):
                return False
            raise
        return True


class MysqlConnector:
    """Connects to the server of a section."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    @cached_property
    def _parameters(self) -> dict[str, Any]:
        settings = self._settings
        overrides: dict[str, Any] = {
            "user": settings.user,
            "password": settings.password.reveal() if settings.password else None,
            "sslmode": settings.sslmode,
            "ssl_ca": settings.ssl_ca_file,
        }
        if settings.connection_string is None:
            overrides |= {"host": settings.host, "port": settings.port}
            parsed: dict[str, Any] = {}
        else:
            parsed = self._parse_string(settings.connection_string)
        return parsed | {name: value for name, value in overrides.items() if value is not None}

    def _parse_string(self, string: ConnectionString) -> dict[str, Any]:
        # With unencoded special characters, the URL is parsed wrongly: part of the
        # password would be shown as the host.
        if str(string) == MASK:
            raise _invalid_string(self._settings.type)
        parts = urlsplit(string.reveal())
        if parts.scheme.partition("+")[0] not in ("mysql", "mariadb") or "," in parts.netloc:
            raise _invalid_string(self._settings.type)
        parsed: dict[str, Any] = {
            "host": unquote(parts.hostname or ""),
            "port": parts.port,
            "user": unquote(parts.username or ""),
            "password": unquote(parts.password or ""),
            "database": unquote(parts.path.strip("/")),
        }
        for name, value in parse_qsl(parts.query):
            if name.lower() in _SSL_PARAMETERS:
                parsed["sslmode"] = _SSL_MODES.get(value.lower(), value.lower())
            elif name.lower() in _CA_PARAMETERS:
                parsed["ssl_ca"] = value
            elif name.lower() != "charset":
                raise SourceNotUsable(
                    f"Unknown parameter '{name}' in the connection string of a "
                    f"{self._settings.type} source.",
                    "Known: sslmode and ssl_ca; set other options in the section.",
                )
        if parsed.get("sslmode", "prefer") not in _TLS:
            raise SourceNotUsable(
                f"Unknown sslmode '{parsed['sslmode']}'.", f"Use one of {', '.join(_TLS)}."
            )
        return {name: value for name, value in parsed.items() if value}

    @property
    def host(self) -> str:
        """The host, with its port if it is not the default."""
        host = str(self._parameters.get("host") or "localhost")
        port = int(self._parameters.get("port") or _DEFAULT_PORT)
        if host.startswith("/"):
            return quote(host, safe="")
        shown = f"[{host}]" if ":" in host and not host.startswith("[") else host
        return shown if port == _DEFAULT_PORT else f"{shown}:{port}"

    @property
    def database(self) -> str | None:
        """The database in the connection string, if there is one."""
        return self._parameters.get("database")

    @property
    def user(self) -> str:
        """The user for messages."""
        return str(self._parameters.get("user") or "the current user")

    @contextmanager
    def connect(self) -> Iterator[MysqlConnection]:
        """A read-only connection."""
        try:
            connection = pymysql.connect(**self._options())
        except (pymysql.MySQLError, RuntimeError) as problem:
            raise self._explain(problem, _REFUSED) from None
        except OSError as problem:
            # The file of the certificate authority.
            raise self._not_usable(str(problem), *_NO_TLS) from None
        except UnicodeError:
            raise self._not_usable("", *_NO_HOST) from None
        with closing(connection):
            try:
                yield self._prepare(connection)
            except pymysql.MySQLError as problem:
                raise self._explain(problem, _BROKEN) from None

    def _options(self) -> dict[str, Any]:
        given = self._parameters
        host = str(given.get("host") or "localhost")
        address: dict[str, Any] = (
            {"unix_socket": host}
            if host.startswith("/")
            else {"host": host.strip("[]"), "port": int(given.get("port") or _DEFAULT_PORT)}
        )
        return {
            **address,
            "user": given.get("user"),
            "password": given.get("password") or "",
            "charset": "utf8mb4",
            "autocommit": True,
            "connect_timeout": _CONNECT_SECONDS,
            "read_timeout": self._settings.statement_timeout + _CONNECT_SECONDS,
            "program_name": "lumos",
            "local_infile": False,
            **_TLS[given.get("sslmode", "prefer")],
            **({"ssl_ca": given["ssl_ca"]} if "ssl_ca" in given else {}),
        }

    def _prepare(self, raw: "pymysql.Connection[Any]") -> MysqlConnection:
        connection = MysqlConnection(raw, MysqlServer("MySQL", (0, 0)))
        ((text,),) = connection.rows("SELECT VERSION()")
        match = _VERSION.match(text)
        product = "MariaDB" if "mariadb" in text.lower() else "MySQL"
        version = (int(match[1]), int(match[2])) if match else (0, 0)
        server = MysqlServer(product, version)
        if version < (oldest := OLDEST_VERSIONS[product]):
            raise SourceNotUsable(
                f"The server at {self.host} is {server.text}.",
                f"Lumos reads {MysqlServer(product, oldest).text} and later.",
            )
        seconds = self._settings.statement_timeout
        with raw.cursor() as cursor:
            # An empty mode, since a mode such as ANSI_QUOTES changes how the server prints views.
            cursor.execute("SET SESSION sql_mode = ''")
            cursor.execute("SET SESSION time_zone = '+00:00'")
            cursor.execute("SET SESSION TRANSACTION READ ONLY")
            cursor.execute("SET SESSION lock_wait_timeout = %s", (_LOCK_SECONDS,))
            if server.is_mariadb:
                cursor.execute("SET SESSION max_statement_time = %s", (seconds,))
            else:
                cursor.execute("SET SESSION max_execution_time = %s", (seconds * 1000,))
        return MysqlConnection(raw, server)

    def _explain(self, problem: Exception, otherwise: tuple[str, str]) -> SourceNotUsable:
        code = problem.args[0] if problem.args and isinstance(problem.args[0], int) else 0
        text = str(problem.args[-1] if problem.args else type(problem).__name__)
        password = self._parameters.get("password")
        text = text.replace(str(password), MASK) if password else text
        # The driver repeats the address and its own name of the error.
        text = re.sub(r"^Can't connect to MySQL server on '.*?' \((.*)\)$", r"\1", text)
        text = re.sub(r"^\[Errno -?\d+\] ", "", text.strip().splitlines()[0] if text else "")
        matching = (rule[2:] for rule in _FAILURES if code in rule[0] or re.search(rule[1], text))
        return self._not_usable(text.rstrip("."), *next(matching, otherwise))

    def _not_usable(self, text: str, found: str, step: str) -> SourceNotUsable:
        values = {
            "text": text,
            "host": self.host,
            "user": self.user,
            "seconds": self._settings.statement_timeout,
        }
        return SourceNotUsable(found.format(**values), step.format(**values))


def _invalid_string(type: str) -> SourceNotUsable:
    # The string is not shown, since it may contain a password.
    return SourceNotUsable(
        f"Invalid connection string of a {type} source.",
        "Expected: mysql://user:password@host:3306/database, with special characters "
        "percent-encoded (@ is %40, / is %2F, # is %23).",
    )


# Options of the driver by mode. Without options, it encrypts if the server can.
_TLS: Final[dict[str, dict[str, Any]]] = {
    "disable": {"ssl_disabled": True},
    "allow": {},
    "prefer": {},
    "require": {"ssl": {"verify_mode": "none", "check_hostname": False}},
    "verify-ca": {"ssl_verify_cert": True},
    "verify-full": {"ssl_verify_cert": True, "ssl_verify_identity": True},
}
_NO_TLS: Final = (
    "No encrypted connection to {host}: {text}.",
    "Check 'sslmode', and with verify-ca or verify-full 'ssl_ca_file', the file with the "
    "certificate authority of the server.",
)
_FAILURES: Final[tuple[tuple[tuple[int, ...], str, str, str], ...]] = (
    (
        (1045, 1698, 1862, 1820),
        r"^Access denied for user|Authentication plugin|cryptography. package",
        "The server at {host} rejected the login of {user}: {text}.",
        "Check 'user' and 'password'; docs/MYSQL.md shows how to create a read-only user.",
    ),
    (
        (1129, 1130),
        r"is not allowed to connect",
        "The server at {host} does not accept connections from this machine: {text}.",
        "Create the user for this host, such as 'lumos_reader'@'%'.",
    ),
    (
        (2026, 3159),
        r"SSL|TLS|certificate|insecure transport",
        *_NO_TLS,
    ),
    (
        (),
        r"Name or service not known|nodename nor servname|name resolution|No address associated",
        "Unknown host '{host}': {text}.",
        "Check 'host' and the DNS of this machine.",
    ),
    (
        (2002, 2003),
        r"refused|[Tt]imed out|No route to host|unreachable|No such file",
        "Cannot connect to the server at {host}: {text}.",
        "Check 'host' and 'port', the network, and that the server is running.",
    ),
    (
        (1040, 1203, 1226, 1053),
        r"Too many connections",
        "The server at {host} accepts no connections at the moment: {text}.",
        "Try again in a minute.",
    ),
    (
        (1969, 3024),
        r"max_statement_time|maximum statement execution time",
        "Reading the catalog at {host} took longer than {seconds} seconds.",
        "Raise 'statement_timeout', or set 'databases' to read less.",
    ),
    (
        (1205,),
        r"Lock wait timeout",
        "Tables at {host} are locked: {text}.",
        "Run again when the lock is released; nothing was recorded.",
    ),
    (
        (1142, 1143, 1227),
        r"command denied",
        "{user} has no permission: {text}.",
        "docs/MYSQL.md lists the grants.",
    ),
)
_NO_HOST: Final = (
    "Unknown host '{host}': this is not a valid host name.",
    "Check 'host' or the connection string.",
)
_REFUSED: Final = (
    "The server at {host} rejected the connection: {text}.",
    "Check the settings of the source.",
)
_BROKEN: Final = (
    "Reading the catalog at {host} failed: {text}.",
    "Run again; nothing was recorded.",
)
