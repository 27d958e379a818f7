"""Who does what from where, beside the change itself."""

import getpass
import socket
from datetime import datetime

from lumos.store import Transaction


def who() -> str:
    """The person, or the account, that this process works for."""
    return getpass.getuser()


def audit(
    transaction: Transaction, action: str, target: str, *, at: datetime, details: str = ""
) -> None:
    """Keeps a row about an action in the transaction that it happens in."""
    transaction.audit(
        action, target, actor=who(), origin=socket.gethostname(), at=at, details=details
    )
