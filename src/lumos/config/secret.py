"""Secrets, which are never printed, logged, serialized or sent in a Spark plan.

This module also masks secrets in texts.
"""

import hmac
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NoReturn, Self

MASK: Final = "***"
# Shorter values are not masked, since they may occur in texts by chance.
_MIN_MASKED_LENGTH: Final = 8

_WORD: Final = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
_SECRET_WORDS: Final = frozenset(
    (
        "pwd",
        "token",
        "credential",
        "credentials",
        "authorization",
        "apikey",
        "accesskey",
        "sslkey",
        "webhook",
    )
)
_SECRET_SUFFIXES: Final = ("password", "passwd", "passphrase", "secret")
_KEY_WORDS: Final = frozenset(
    ("api", "access", "account", "private", "shared", "secret", "master", "encryption", "sas")
)
_SECRET_ASSIGNMENT: Final = re.compile(
    r"(password|passwd|pwd|secret|token|key|sig|signature|credentials?)\s*[=:]", re.IGNORECASE
)
_SECRET_PATTERNS: Final = (
    re.compile(
        r"""((?:password|passwd|pwd|passphrase|secret|token|signature|credentials?|authorization
              |(?:api|access|account|private|shared|secret)[ _-]?key)["']?\s*[=:]\s*["']?
              (?:(?:bearer|basic)\s+)?)[^\s"',;&}]+""",
        re.IGNORECASE | re.VERBOSE,
    ),
    re.compile(r"(\bbearer\s+)[\w.~+/=-]{8,}", re.IGNORECASE),
    re.compile(r"(\b)eyJ[\w-]+\.[\w-]+\.[\w-]*"),
    re.compile(
        r"(://)(?:[^\s/:@]*:[^\s/@]*|(?<!abfs://)(?<!abfss://)(?<!wasb://)(?<!wasbs://)"
        r"[^\s/@]+)(?=@)"
    ),
)
# The part before the @ is a container, not a user.
_CONTAINER: Final = re.compile(r"(?:abfs|wasb)s?://[^\s/:@?]+@[\w.-]+(?:/[^\s?]*)?", re.IGNORECASE)
# Credentials before a host, without a scheme.
_HOST_CREDENTIALS: Final = re.compile(r"[^\s/:@]+:[^\s/@]+@\w")
# A host, or the encoded path of a socket.
_HOST: Final = r"(?:(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]*)(?::[0-9]{1,5})?|%2[Ff][A-Za-z0-9_.%-]+)"
_URL: Final = re.compile(
    rf"""(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://
         (?:(?P<user>[^\s:/?\#@]*)(?P<password>:[^\s/?\#@]*)?@)?
         (?P<hosts>{_HOST}(?:,{_HOST})*)
         (?P<path>/[A-Za-z0-9_./%~+:-]*)?
         (?:\?(?P<query>[A-Za-z0-9_.-]+=[^\s?\#@&]*(?:&[A-Za-z0-9_.-]+=[^\s?\#@&]*)*))?\Z""",
    re.VERBOSE,
)
# Only these parameters are displayed; others may contain a password.
_SAFE_PARAMETERS: Final = frozenset(
    (
        "sslmode", "application_name", "connect_timeout", "target_session_attrs", "charset",
        "driver", "warehouse", "role", "database", "schema", "replicaset", "retrywrites",
        "authsource", "tls", "ssl",
    )
)  # fmt: skip


# For command-line arguments: conversion to a path may have removed a slash, and a password may
# contain an @.
_CREDENTIALS_IN_URL: Final = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):/{1,2}(?P<user>[^\s/:@]*)(?::(?P<password>.*))?@",
    re.DOTALL,
)
# The same without a scheme: //user:password@host or user:password@host, but not a time (12:30).
_CREDENTIALS_WITHOUT_SCHEME: Final = re.compile(
    r"(?:\A|(?<=[/\s=]))(?!\d+:)[^\s/:@=]+:(?P<password>[^\s/]+)@(?=[\w\[])"
)
_PARAMETER_IN_URL: Final = re.compile(r"(?<=[?&;])(?P<name>[^\s=&;?]+)=(?P<value>[^\s&;]+)")
# In these schemes the part before the @ is a platform or a container.
_SCHEMES_WITHOUT_USERS: Final = frozenset(("lumos", "abfs", "abfss", "wasb", "wasbs"))


class Secret:
    """Text that is displayed as `***`; only `reveal()` returns it."""

    __slots__ = ("_value",)

    _value: str

    def __init__(self, value: str) -> None:
        object.__setattr__(self, "_value", value)

    def reveal(self) -> str:
        """The secret text, for the call that sends it."""
        return self._value

    def __str__(self) -> str:
        return MASK

    def __repr__(self) -> str:
        return str(self)

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Secret):
            return NotImplemented
        own, others = (
            value.encode("utf-8", "surrogatepass") for value in (self._value, other._value)
        )
        return type(self) is type(other) and hmac.compare_digest(own, others)

    def __hash__(self) -> int:
        return hash((type(self), self._value))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        # Spark pickles closures for executors, so the secret would appear in plans and logs.
        raise TypeError(
            f"A {type(self).__name__} cannot be pickled; call reveal() where it is needed."
        )

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self


class ConnectionString(Secret):
    """The address of a database, displayed without credentials."""

    __slots__ = ()

    def __str__(self) -> str:
        match = _URL.match(self._value)
        # Mask an irregular address completely: after an unescaped `/`, `?` or `@` in a password,
        # any part may contain the rest of it.
        if match is None:
            return MASK
        scheme, user, password, hosts, path, query = match.groups()
        # A user without a password may be a token.
        shown_user = user if password else MASK
        credentials = "" if user is None else f"{shown_user}{':' + MASK if password else ''}@"
        parameters = "&".join(_shown_parameter(each) for each in query.split("&")) if query else ""
        return f"{scheme}://{credentials}{hosts}{path or ''}{'?' + parameters if query else ''}"

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts without ports; empty if the address is irregular."""
        match = _URL.match(self._value)
        if match is None:
            return ()
        named = (each for each in match["hosts"].split(",") if not each.startswith("["))
        return tuple(host for each in named if (host := each.partition(":")[0]))


def _shown_parameter(text: str) -> str:
    name, _, value = text.partition("=")
    return f"{name}={value if name.casefold() in _SAFE_PARAMETERS else MASK}"


def mask_secret_text(text: str) -> str:
    """The text for an error message, masked if it seems to contain a password."""
    if _CONTAINER.fullmatch(text):
        return text
    if "://" in text and ("@" in text or "?" in text):
        return str(ConnectionString(text))
    return MASK if _SECRET_ASSIGNMENT.search(text) or _HOST_CREDENTIALS.search(text) else text


def redact(text: str) -> str:
    """Mask everything that looks like a secret in the output of another program."""
    for pattern in _SECRET_PATTERNS:
        text = pattern.sub(rf"\g<1>{MASK}", text)
    return text


def secret_values(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The values of environment variables whose names indicate secrets."""
    return tuple(
        value
        for name, value in environment.items()
        if len(value) >= _MIN_MASKED_LENGTH and is_secret_name(name)
    )


def mask_values(text: str, values: Iterable[str]) -> str:
    """Mask secret values in a text."""
    # The longest first: if one value is the start of another, the rest of the latter would remain.
    for value in sorted(values, key=len, reverse=True):
        text = text.replace(value, MASK)
    return text


def mask_arguments(arguments: Iterable[str], text: str) -> str:
    """Mask, in `text`, all secrets of the addresses that occur in `arguments`.

    Secrets are replaced one by one, since a message may contain only a part of an argument, or the
    argument as a path or quoted.
    """
    for argument in arguments:
        if ":" not in argument:
            continue
        for form in {argument, str(Path(argument)), repr(argument)[1:-1]}:
            for secret, shown in _secrets_in(form):
                text = text.replace(secret, shown)
    return text


def has_secret(text: str) -> bool:
    """Whether a text contains what looks like a password or token."""
    return mask_arguments([text], text) != text


def _secrets_in(url: str) -> Iterator[tuple[str, str]]:
    """Yield each secret of an address with the characters around it, and its replacement."""
    if credentials := _CREDENTIALS_IN_URL.search(url):
        if credentials["password"]:
            yield f":{credentials['password']}@", f":{MASK}@"
        elif credentials["user"] and credentials["scheme"].lower() not in _SCHEMES_WITHOUT_USERS:
            # A user without a password may be a token.
            yield f"/{credentials['user']}@", f"/{MASK}@"
    elif credentials := _CREDENTIALS_WITHOUT_SCHEME.search(url):
        yield f":{credentials['password']}@", f":{MASK}@"
    if ":/" not in url:
        return
    for parameter in _PARAMETER_IN_URL.finditer(url):
        if parameter["name"].casefold() not in _SAFE_PARAMETERS:
            yield parameter[0], f"{parameter['name']}={MASK}"


def is_secret_name(key: str) -> bool:
    """Whether an option has the name of a secret, such as `api_key` or `fs.s3a.secret.key`."""
    words = [word.lower() for word in _WORD.findall(key)]
    return any(word in _SECRET_WORDS or word.endswith(_SECRET_SUFFIXES) for word in words) or any(
        first in _KEY_WORDS and second == "key" for first, second in pairwise(words)
    )


def guard_option(key: str, value: str) -> str | Secret:
    """The value of a free-form option, as a `Secret` if its name or form indicates a secret."""
    if is_secret_name(key):
        return Secret(value)
    looks_like_address = "://" in value and "@" in value
    return ConnectionString(value) if looks_like_address or "dsn" in key.lower() else value
