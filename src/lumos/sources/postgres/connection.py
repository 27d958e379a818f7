"""Connections to PostgreSQL, and the messages of failed connections."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Final
from urllib.parse import quote

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from lumos.config.secret import MASK, ConnectionString
from lumos.config.sources import PostgresSourceSettings as Settings
from lumos.sources.interface import SourceNotUsable

OLDEST_VERSION: Final = 12
_CONNECT_SECONDS: Final = 10
_DEFAULT_PORT: Final = 5432
# Addresses of other tools may contain a driver.
_DRIVER: Final = re.compile(r"^(postgres(?:ql)?)\+\w+(?=://)")

_ATTEMPT: Final = re.compile(r".*(?:FATAL|ERROR|\bfailed):\s*")


class PostgresConnector:
    """Connects to the database of a section; libpq supplies the defaults."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    @cached_property
    def _parameters(self) -> dict[str, Any]:
        settings = self._settings
        overrides: dict[str, Any] = {
            "dbname": settings.database,
            "user": settings.user,
            "password": settings.password.reveal() if settings.password else None,
            "sslmode": settings.sslmode,
        }
        if settings.connection_string is None:
            overrides |= {"host": settings.host, "port": settings.port}
            parsed: dict[str, Any] = {}
        else:
            parsed = self._parse_string(settings.connection_string)
        return parsed | {name: value for name, value in overrides.items() if value is not None}

    def _parse_string(self, string: ConnectionString) -> dict[str, Any]:
        text = string.reveal()
        try:
            # With unencoded special characters, the URL is parsed wrongly: part of the
            # password would be shown as the host.
            if "://" in text and str(string) == MASK:
                raise psycopg.ProgrammingError
            return conninfo_to_dict(_DRIVER.sub(r"\1", text))
        except psycopg.Error:
            # The message of libpq would show parts of the string.
            raise SourceNotUsable(
                "Invalid connection string of a postgres source.",
                "Expected: postgresql://user:password@host:5432/database, with special characters "
                "percent-encoded (@ is %40, / is %2F, # is %23).",
            ) from None

    @property
    def host(self) -> str:
        """The first host, with its port if it is not the default."""
        host = str(self._parameters.get("host") or self._parameters.get("hostaddr") or "localhost")
        port = str(self._parameters.get("port") or _DEFAULT_PORT)
        first, first_port = host.partition(",")[0], port.partition(",")[0]
        if first.startswith("/"):
            first = quote(first, safe="")
        elif ":" in first:
            first = f"[{first}]"
        return first if first_port == str(_DEFAULT_PORT) else f"{first}:{first_port}"

    @property
    def database(self) -> str | None:
        """The name of the database, if it is configured."""
        return self._parameters.get("dbname")

    @contextmanager
    def connect(self) -> Iterator["psycopg.Connection[tuple[Any, ...]]"]:
        """A connection with consistent, read-only transactions."""
        options: dict[str, Any] = {
            "connect_timeout": _CONNECT_SECONDS,
            "fallback_application_name": "lumos",
            "client_encoding": "UTF8",
            # Firewalls drop idle connections silently, such as those that wait for notifications.
            "keepalives_idle": 60,
            "keepalives_interval": 15,
            "keepalives_count": 4,
        }
        try:
            # Connection poolers do not support prepared statements.
            connection = psycopg.connect(**options | self._parameters, prepare_threshold=None)
        except psycopg.Error as problem:
            raise self._explain_refusal(problem) from None
        except UnicodeError:
            raise self._not_usable("", *_NO_HOST) from None
        with connection:
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            version = connection.info.server_version // 10000
            if version < OLDEST_VERSION:
                raise SourceNotUsable(
                    f"PostgreSQL at {self.host} has version {version}.",
                    f"Lumos reads version {OLDEST_VERSION} and later.",
                )
            try:
                yield connection
            except psycopg.Error as problem:
                raise self._explain_failure(problem) from None

    def _explain_refusal(self, problem: psycopg.Error) -> SourceNotUsable:
        """The error for a failed connection."""
        text = self._describe(problem)
        if self.database is None and (missing := re.search(_NO_DATABASE, text)):
            return self._not_usable(missing.group(1), *_UNNAMED)
        matching = (rule[1:] for rule in _REFUSALS if re.search(rule[0], text))
        return self._not_usable(text, *next(matching, _REFUSED))

    def _explain_failure(self, problem: psycopg.Error) -> SourceNotUsable:
        """The error for a failed query."""
        text = self._describe(problem)
        match problem:
            case errors.QueryCanceled():
                return self._not_usable(text, *_TOO_SLOW)
            case errors.LockNotAvailable():
                return self._not_usable(text, *_LOCKED)
            case errors.InsufficientPrivilege():
                return self._not_usable(text, *_NOT_ALLOWED)
            case errors.CharacterNotInRepertoire() | errors.UntranslatableCharacter():
                return self._not_usable(text, *_NOT_UTF8)
            case _:
                return self._not_usable(text, *_BROKEN)

    def _not_usable(self, text: str, found: str, step: str) -> SourceNotUsable:
        values = {
            "text": text,
            "host": self.host,
            "name": self.database or "the database",
            "user": self._parameters.get("user") or "the current user",
            "seconds": self._settings.statement_timeout,
        }
        return SourceNotUsable(found.format(**values), step.format(**values))

    def _describe(self, problem: psycopg.Error) -> str:
        """The message of the server or driver, without the password."""
        message = problem.diag.message_primary or str(problem).strip() or type(problem).__name__
        lines = message.strip().splitlines()
        # Use the message of the last attempt, without hints and details.
        line = next((line for line in reversed(lines) if _ATTEMPT.match(line)), lines[0])
        text = _ATTEMPT.sub("", line).strip().rstrip(".")
        password = self._parameters.get("password")
        return text.replace(str(password), MASK) if password else text


_REFUSALS: Final = (
    (
        r"password authentication failed|no password supplied|empty password",
        "PostgreSQL at {host} rejected the login of {user}: {text}.",
        "Check 'user' and 'password'; without a password, PGPASSWORD and ~/.pgpass are used.",
    ),
    (
        r"no pg_hba\.conf entry",
        "PostgreSQL at {host} does not accept this kind of connection: {text}.",
        "Allow it in the server's pg_hba.conf, or set 'sslmode: require' if it asks for "
        "encryption.",
    ),
    (
        r'role ".*" does not exist|role .* is not permitted to log in',
        "PostgreSQL at {host} rejected the login of {user}: {text}.",
        "Check 'user'; docs/POSTGRES.md shows how to create a read-only user.",
    ),
    (
        r'database ".*" does not exist',
        "There is no database '{name}' at {host}.",
        "Check 'database'; 'psql -l' lists them.",
    ),
    (
        r"permission denied for database",
        "{user} has no permission to connect to {name} at {host}.",
        "Run GRANT CONNECT ON DATABASE for this user.",
    ),
    (
        r"translate host name|Name or service not known|nodename nor servname",
        "Unknown host '{host}': {text}.",
        "Check 'host' and the DNS of this machine.",
    ),
    (
        r"[Cc]onnection refused|[Tt]imeout|No route to host|Network is unreachable|No such file|"
        r"[Tt]imed out",
        "Cannot connect to PostgreSQL at {host}: {text}.",
        "Check 'host' and 'port', the network, and that the server is running.",
    ),
    (
        r"invalid response|expected authentication request|unexpected response",
        "The server at {host} is not PostgreSQL: {text}.",
        "Check 'host' and 'port'.",
    ),
    (
        r"SSL|certificate|sslmode|sslrootcert",
        "No encrypted connection to {host}: {text}.",
        "Check 'sslmode', and with verify-ca or verify-full the file with the server's "
        "certificate authority (sslrootcert in the connection string).",
    ),
    (
        r"too many (clients|connections)|remaining connection slots|starting up|shutting down|"
        r"in recovery mode",
        "PostgreSQL at {host} accepts no connections at the moment: {text}.",
        "Try again in a minute.",
    ),
)
_NO_DATABASE: Final = r'database "(.*)" does not exist'
_UNNAMED: Final = (
    "No database was set, and there is none named after the user: '{text}' at {host}.",
    "Set 'database', or use postgresql://{host}/DATABASE.",
)
_NO_HOST: Final = (
    "Unknown host '{host}': this is not a valid host name.",
    "Check 'host' or the connection string.",
)
_REFUSED: Final = (
    "PostgreSQL at {host} rejected the connection: {text}.",
    "Check the source's settings.",
)
_TOO_SLOW: Final = (
    "Reading the catalog of {name} at {host} took longer than {seconds} seconds.",
    "Raise 'statement_timeout', or set 'schemas' to read less.",
)
_LOCKED: Final = (
    "Tables of {name} at {host} are locked: {text}.",
    "Run again when the lock is released; nothing was recorded.",
)
_NOT_ALLOWED: Final = (
    "{user} has no permission to read the catalog of {name} at {host}: {text}.",
    "Grant SELECT on the catalog; docs/POSTGRES.md lists the tables that are read.",
)
_NOT_UTF8: Final = (
    "{name} at {host} has names that are not UTF-8, which the encoding SQL_ASCII allows: {text}.",
    "Rename them.",
)
_BROKEN: Final = (
    "Reading the catalog of {name} at {host} failed: {text}.",
    "Run again; nothing was recorded.",
)
