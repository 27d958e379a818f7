"""Kerberos: this machine's ticket is shown once, and a token of Hadoop stands for it from then on.

Only the driver does so. Executors are given the token, as jobs of Hadoop are.
"""

import atexit
import base64
import os
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from lumos.config.secret import MASK
from lumos.storage.errors import NoCredentials, StorageFault
from lumos.storage.hdfs.access import HdfsAccess
from lumos.storage.hdfs.client import WebHdfs
from lumos.storage.http import Patience, Transport

# Half of the day that tokens are good for unless somebody has set it otherwise.
_GOOD_SECONDS: Final = 12 * 3600.0
_PATIENCE: Final = Patience(seconds=20, tries=3)

# The first message of a negotiation with the service on a host.
Ticket = Callable[[str], bytes]


class _Given(NamedTuple):
    token: str
    since: float
    base: str

    def __repr__(self) -> str:
        return f"_Given({MASK}, base={self.base!r})"


# By access and file system: what one has given is no other's to see.
_given: dict[tuple[HdfsAccess, str], _Given] = {}
_lock = threading.Lock()


def with_token(access: HdfsAccess, authority: str = "", ticket: Ticket | None = None) -> HdfsAccess:
    """The access with a token in the place of Kerberos; any other stays as it is."""
    if not access.kerberos or access.token:
        return access
    with _lock:
        known = _given.get((access, authority))
        if known is None or time.time() - known.since > _GOOD_SECONDS:
            if not _given:
                atexit.register(cancel_all)
            known = _asked(access, authority, ticket or _ticket)
            _given[access, authority] = known
    return msgspec.structs.replace(access, token=known.token, kerberos=False)


def cancel_all() -> None:
    """Ends all tokens that were asked for; one that is not ended so ends by itself."""
    with _lock:
        given = list(_given.values())
        _given.clear()
    for each in given:
        client = WebHdfs(
            (each.base,), transport=Transport(), patience=Patience(tries=1), token=each.token
        )
        with suppress(StorageFault):
            client.cancel_token(each.token)


def _asked(access: HdfsAccess, authority: str, ticket: Ticket) -> _Given:
    problem: StorageFault | None = None
    for base in access.bases(authority):
        client = WebHdfs(
            (base,),
            transport=Transport(),
            patience=_PATIENCE,
            headers=_negotiation(ticket(urlsplit(base).hostname or "")),
        )
        try:
            token = client.new_token(access.user or os.environ.get("USER", "lumos"))
        except StorageFault as failed:
            problem = failed
            continue
        return _Given(token, time.time(), base)
    assert problem is not None, "there is some name node"
    raise problem


def _negotiation(message: bytes) -> Mapping[str, str]:
    return {"Authorization": f"Negotiate {base64.b64encode(message).decode()}"}


def _ticket(host: str) -> bytes:
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
        told = " ".join(str(problem).split())
        raise NoCredentials(f"Kerberos gives no ticket for {host}: {told}") from None
    return bytes(message or b"")
