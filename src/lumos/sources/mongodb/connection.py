"""Connections to MongoDB, and the messages of failed connections."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import quote, quote_plus, unquote, unquote_plus

import msgspec
from bson.errors import BSONError
from msgspec.structs import replace
from pymongo import MongoClient
from pymongo.errors import (
    ConfigurationError,
    ConnectionFailure,
    ExecutionTimeout,
    InvalidURI,
    OperationFailure,
    PyMongoError,
    ServerSelectionTimeoutError,
)
from pymongo.uri_parser import parse_uri

from lumos.config.secret import MASK, is_secret_name, redact
from lumos.config.sources import MongodbSourceSettings as Settings
from lumos.sources.interface import SourceNotUsable
from lumos.sources.mongodb.documents import DECODING

_CONNECT_MILLISECONDS: Final = 10_000
_DEFAULT_PORT: Final = 27017
_SRV: Final = "mongodb+srv://"
_MECHANISM: Final = "authmechanismproperties"
# The driver appends a description of the cluster, or hints.
_DETAILS: Final = re.compile(
    r", full error:|, Timeout: |\(configured timeouts|\. Did you mean|\. Hint: |\n"
)
NOT_ALLOWED: Final = (13, 8000)
_LOGIN_ERRORS: Final = (18, 11, 334)


class MongoAccess(msgspec.Struct, frozen=True, kw_only=True):
    """The connection to a server; pickled for executors, and its text shows no secrets."""

    # The hosts without credentials.
    display_address: str
    uri: str
    user: str | None = None
    password: str | None = None
    seconds: int = 300

    @classmethod
    def of(cls, settings: Settings) -> "MongoAccess":
        """The access for a section; raises SourceNotUsable."""
        string = settings.connection_string
        if string is None:
            host = str(settings.host)
            authority = f"[{host}]" if ":" in host and not host.startswith("[") else host
            uri = f"mongodb://{authority}:{settings.port}/"
        else:
            uri = string.reveal()
            # With unencoded special characters, the URL is parsed wrongly: part of the
            # password would be shown as the host.
            if str(string) == MASK:
                raise _invalid_address()
        access = cls(
            display_address="",
            uri=uri,
            user=settings.user,
            password=settings.password.reveal() if settings.password else None,
            seconds=settings.statement_timeout,
        )
        hosts = access._hosts(string.hosts if string is not None else ())
        return replace(access, display_address=hosts)

    def __repr__(self) -> str:
        return f"MongoAccess({self.display_address!r})"

    @property
    def database(self) -> str | None:
        """The database in the address, if there is one."""
        path = self.uri.partition("://")[2].partition("?")[0].partition("/")[2]
        return unquote(path.partition(".")[0]) or None

    @property
    def milliseconds(self) -> int:
        """The time limit of one request."""
        return self.seconds * 1000

    def client(self) -> "MongoClient[dict[str, Any]]":
        """A client that prefers secondaries; sends no request yet."""
        login: dict[str, Any] = {}
        if self.user is not None:
            login["username"] = self.user
        if self.password is not None:
            login["password"] = self.password
        options: dict[str, Any] = {
            "appname": "lumos",
            "serverSelectionTimeoutMS": _CONNECT_MILLISECONDS,
            "connectTimeoutMS": _CONNECT_MILLISECONDS,
            "socketTimeoutMS": self.milliseconds + _CONNECT_MILLISECONDS,
            "maxPoolSize": 4,
            "datetime_conversion": DECODING.datetime_conversion,
            "unicode_decode_error_handler": "replace",
        }
        # Options in the address take precedence.
        if "readpreference" not in self.uri.casefold():
            options["readPreference"] = "secondaryPreferred"
        try:
            return MongoClient(self.uri, **options, **login)
        except (ConfigurationError, InvalidURI, ValueError) as problem:
            raise self.explain(problem) from None
        except OSError as problem:
            raise _file_error(problem) from None

    @contextmanager
    def connect(self) -> Iterator["MongoClient[dict[str, Any]]"]:
        """A client; all errors become SourceNotUsable."""
        with self.client() as client:
            try:
                yield client
            except (PyMongoError, BSONError) as problem:
                raise self.explain(problem) from None

    def explain(self, problem: Exception) -> SourceNotUsable:
        """The error for a failure, with the next step."""
        text = self.describe(problem)
        if isinstance(problem, ServerSelectionTimeoutError):
            message, next_step = _UNTRUSTED if re.search("SSL|certificate", text) else _NO_ANSWER
        elif isinstance(problem, OperationFailure) and (
            # Atlas uses the same code for all rejected logins.
            problem.code in _LOGIN_ERRORS or "bad auth" in text
        ):
            message, next_step = _REFUSED
        elif isinstance(problem, OperationFailure) and problem.code in NOT_ALLOWED:
            message, next_step = _NOT_ALLOWED
        elif isinstance(problem, ExecutionTimeout):
            message, next_step = _TOO_SLOW
        elif isinstance(problem, ConfigurationError) and "wire version" in text:
            message, next_step = _TOO_OLD
        elif isinstance(problem, ConfigurationError) and self.uri.startswith(_SRV):
            message, next_step = _NO_CLUSTER
        elif isinstance(problem, ConfigurationError | InvalidURI | ValueError):
            return _invalid_address(text)
        elif isinstance(problem, ConnectionFailure):
            message, next_step = _NO_ANSWER
        else:
            message, next_step = _BROKEN
        values = {"host": self.display_address, "text": text, "seconds": self.seconds}
        return SourceNotUsable(message.format(**values), next_step.format(**values))

    def describe(self, problem: Exception) -> str:
        """The message of the server or driver, in one line and without secrets."""
        details = getattr(problem, "details", None)
        message = details.get("errmsg") if isinstance(details, dict) else None
        text = str(message or problem) or type(problem).__name__
        text = _DETAILS.split(text)[0].strip()
        text = re.sub(r"^[^\s,]+:\d+: ", "", text)
        for secret in self._secrets():
            text = text.replace(secret, MASK)
        return redact(text).rstrip(".")

    def _hosts(self, hosts: tuple[str, ...]) -> str:
        if self.uri.startswith(_SRV):
            # The actual hosts are in DNS, which is not queried yet.
            return f"{_SRV}{','.join(hosts)}"
        try:
            nodes = parse_uri(self.uri)["nodelist"]
        except (PyMongoError, ValueError) as problem:
            raise _invalid_address(self.describe(problem)) from None
        except OSError as problem:
            raise _file_error(problem) from None
        return f"mongodb://{','.join(_node(*node) for node in nodes)}"

    def _secrets(self) -> list[str]:
        authority, _, query = self.uri.partition("://")[2].partition("?")
        credentials = authority.rpartition("@")[0]
        secrets = [self.password or "", credentials.partition(":")[2], *_secrets_in(query)]
        forms = {
            form
            for secret in secrets
            for form in (secret, unquote(secret), unquote_plus(secret), quote_plus(secret),
                         quote(secret, safe=""))
        }  # fmt: skip
        # Longest first, because one secret may be a part of another.
        return sorted(forms - {""}, key=len, reverse=True)


def _secrets_in(query: str) -> Iterator[str]:
    """The secrets among the options of a connection string."""
    for option in query.split("&"):
        name, _, value = option.partition("=")
        if name.casefold() == _MECHANISM:
            pairs = (pair.partition(":") for pair in unquote_plus(value).split(","))
            yield from (text for key, _, text in pairs if is_secret_name(key))
        elif is_secret_name(name):
            yield value


def _node(host: str, port: int | None) -> str:
    if host.startswith("/"):
        return quote(host, safe="")
    display_address = f"[{host}]" if ":" in host else host
    return display_address if port in (None, _DEFAULT_PORT) else f"{display_address}:{port}"


def _invalid_address(why: str = "") -> SourceNotUsable:
    reason = f": {why}" if why else ""
    return SourceNotUsable(
        f"Invalid connection string of a mongodb source{reason}.",
        "Expected: mongodb://user:password@host:27017/database, with special characters "
        "percent-encoded (@ is %40, / is %2F, # is %23).",
    )


def _file_error(problem: OSError) -> SourceNotUsable:
    """The error of a certificate or key file, which the driver reads before it connects."""
    file = f" '{problem.filename}'" if problem.filename else ""
    message = problem.strerror or type(problem).__name__
    return SourceNotUsable(
        f"A file{file} of the connection string of a mongodb source cannot be used: {message}.",
        "Check tlsCAFile and tlsCertificateKeyFile; executors need these files as well.",
    )


_NO_ANSWER: Final = (
    "Cannot connect to MongoDB at {host}: {text}.",
    "Check the address, the network, and that the server is running.",
)
_UNTRUSTED: Final = (
    "No encrypted connection to {host}: {text}.",
    "Check tls, and tlsCAFile in the connection string.",
)
_NO_CLUSTER: Final = (
    "Unknown cluster {host}: {text}.",
    "Check the name and the DNS of this machine.",
)
_REFUSED: Final = (
    "MongoDB at {host} rejected the login: {text}.",
    "Check user, password and authSource (the database in which the user is defined).",
)
_NOT_ALLOWED: Final = (
    "The user has no permission to read at {host}: {text}.",
    "Grant the role 'read' on the databases, or set 'databases' to those it may read.",
)
_TOO_SLOW: Final = (
    "MongoDB at {host} did not answer within {seconds} seconds.",
    "Raise 'statement_timeout', or set 'collections' to read less.",
)
_TOO_OLD: Final = (
    "MongoDB at {host} is too old: {text}.",
    "Upgrade the server: the MongoDB driver does not support this version.",
)
_BROKEN: Final = ("Reading from {host} failed: {text}.", "Run again; nothing was recorded.")
