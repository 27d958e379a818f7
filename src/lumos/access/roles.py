"""The roles of a server, each of which includes those before it."""

from typing import Final

from lumos.store.tokens import Role

ROLES: Final[tuple[Role, ...]] = ("read", "write", "admin")


def includes(role: Role, needed: Role) -> bool:
    """Whether a role has all rights of the role `needed`."""
    return ROLES.index(role) >= ROLES.index(needed)
