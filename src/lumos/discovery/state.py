"""Where scans remember what they saw, checked before it is needed."""

import hashlib
import uuid

from lumos.errors import MisuseError
from lumos.sources.addresses import is_address
from lumos.storage import StorageAccess, storage_of


class StateNotUsable(MisuseError):
    """A state_uri that cannot be listed or written."""

    def __init__(self, state: str, problem: OSError) -> None:
        self.found = f"Nothing can be kept at state_uri {state}: {problem}."
        self.next_step = "Grant listing, reading, writing and deleting, or name another place."
        super().__init__(f"{self.found} {self.next_step}")


def state_folder(state: str, source_id: str) -> str:
    """Where the manifests of one source lie."""
    return f"{state}/{hashlib.blake2b(source_id.encode(), digest_size=8).hexdigest()}"


def check_state(state: str, access: StorageAccess) -> None:
    """Writes and removes a small file where state lies in an object store."""
    if not is_address(state):
        return
    trial = f"{state}/{uuid.uuid4().hex}.trial"
    try:
        storage = storage_of(state, access)
        storage.files(state)
        storage.write(trial, b"")
        storage.discard([trial])
    except OSError as problem:
        raise StateNotUsable(state, problem) from None
