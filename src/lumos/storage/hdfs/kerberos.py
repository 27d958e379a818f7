"""Kerberos: the driver exchanges the ticket of this machine for a Hadoop delegation token.

Executors receive the token, like those of Hadoop jobs.
"""

import atexit
import base64
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from msgspec.structs import replace

from lumos.config.secret import MASK
from lumos.http.retries import ONCE, RetryPolicy
from lumos.storage.errors import NoCredentials, StorageFault
from lumos.storage.hdfs.access import HdfsAccess
from lumos.storage.hdfs.client import WebHdfs
from lumos.storage.http import storage_http_client

# Half of the lifetime of tokens, which is a day by default.
_VALID_SECONDS: Final = 12 * 3600.0
_RETRIES: Final = RetryPolicy(seconds=20, tries=3)

# Returns the first message of the Kerberos negotiation with the service on a host.
GetTicket = Callable[[str], bytes]


class _DelegationToken(NamedTuple):
    token: str
    issued_at: float
    base: str

    def __repr__(self) -> str:
        return f"_DelegationToken({MASK}, base={self.base!r})"


# By access and file system: a token is only sent to the file system that issued it.
_tokens: dict[tuple[HdfsAccess, str], _DelegationToken] = {}
_lock = threading.Lock()


def with_token(
    access: HdfsAccess, authority: str = "", get_ticket: GetTicket | None = None
) -> HdfsAccess:
    """The access with a delegation token instead of Kerberos; unchanged if it uses no Kerberos."""
    if not access.kerberos or access.token:
        return access
    with _lock:
        known = _tokens.get((access, authority))
        if known is None or time.time() - known.issued_at > _VALID_SECONDS:
            if not _tokens:
                atexit.register(cancel_all)
            known = _request_token(access, authority, get_ticket or _get_ticket)
            _tokens[access, authority] = known
    return replace(access, token=known.token, kerberos=False)


def cancel_all() -> None:
    """Cancel all tokens that this process requested, rather than wait until they expire."""
    with _lock:
        tokens = list(_tokens.values())
        _tokens.clear()
    for issued in tokens:
        client = WebHdfs(
            (issued.base,),
            http_client=storage_http_client(),
            retries=ONCE,
            token=issued.token,
        )
        with suppress(StorageFault):
            client.cancel_token(issued.token)


def _request_token(access: HdfsAccess, authority: str, get_ticket: GetTicket) -> _DelegationToken:
    problem: StorageFault | None = None
    for base in access.bases(authority):
        message = base64.b64encode(get_ticket(urlsplit(base).hostname or "")).decode()
        client = WebHdfs(
            (base,),
            http_client=storage_http_client(),
            retries=_RETRIES,
            headers={"Authorization": f"Negotiate {message}"},
        )
        try:
            token = client.new_token(access.user or os.environ.get("USER", "lumos"))
        except StorageFault as error:
            problem = error
            continue
        return _DelegationToken(token, time.time(), base)
    assert problem is not None, "there is no name node"
    raise problem


def _get_ticket(host: str) -> bytes:
    try:
        gssapi = import_module("gssapi")
    except ImportError:
        raise NoCredentials(
            "'kerberos: true' needs the library gssapi: pip install 'lumos[kerberos]'",
            code="NoLibrary",
        ) from None
    name = gssapi.Name(f"HTTP@{host}", gssapi.NameType.hostbased_service)
    try:
        message = gssapi.SecurityContext(name=name, usage="initiate").step()
    except gssapi.exceptions.GSSError as problem:
        text = " ".join(str(problem).split())
        raise NoCredentials(f"Kerberos returned no ticket for {host}: {text}") from None
    return bytes(message or b"")
