"""The actor of a change: the account that runs a command, or the client of a server."""

import getpass
import os
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Literal

import msgspec

ActorKind = Literal["user", "token", "ci", "watcher"]
_NOT_CI: Final = frozenset({"", "0", "false"})


class Actor(msgspec.Struct, frozen=True, kw_only=True):
    """The name and origin of who makes a change; `request_id` is set in requests to a server."""

    kind: ActorKind
    name: str
    origin: str
    request_id: str = ""


_ACTOR: ContextVar[Actor | None] = ContextVar("lumos_actor", default=None)


def current_actor() -> Actor:
    """The actor of this thread or task; by default the account that runs the process."""
    return _ACTOR.get() or process_actor(os.environ)


def process_actor(environment: Mapping[str, str]) -> Actor:
    """The account that runs this process; its kind is `ci` if the variable CI is set."""
    is_ci = environment.get("CI", "").lower() not in _NOT_CI
    return Actor(kind="ci" if is_ci else "user", name=_account(), origin=socket.gethostname())


def _account() -> str:
    """The name of the account, or its number if it has no name, as in many containers."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


@contextmanager
def acting_as(actor: Actor) -> Iterator[None]:
    """Record the changes made in the block as changes by another actor."""
    token = _ACTOR.set(actor)
    try:
        yield
    finally:
        _ACTOR.reset(token)
