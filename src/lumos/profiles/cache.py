"""What was measured before, kept in state: counts and sketches of files that may be unchanged."""

import hashlib
import logging
from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt

from lumos.profiles.job import Measured
from lumos.storage import Access, storage_of

_log = logging.getLogger(__name__)

HASH: Final = 8
_ENDING: Final = ".msgpack"


def identities_in(hashes: bytes | bytearray) -> npt.NDArray[np.uint64]:
    """Hashes one after the other as numbers, which sort as the hashes do."""
    return np.frombuffer(hashes, ">u8").astype(np.uint64)


class Unit(msgspec.Struct, array_like=True, frozen=True):
    """Files that were measured together: by what they are known, their bytes, what came of it.

    `spec` says which columns were measured, and how.
    """

    spec: str
    files: bytes
    size: int
    measured: Measured

    @property
    def identities(self) -> npt.NDArray[np.uint64]:
        """What each of the files is known by."""
        return identities_in(self.files)

    @property
    def name(self) -> str:
        """What the unit is called in state."""
        digest = hashlib.blake2b(self.spec.encode() + self.files, digest_size=16)
        return f"{digest.hexdigest()}{_ENDING}"


class KeptUnits:
    """The units of one dataset in a folder of any storage."""

    def __init__(self, folder: str, access: Access) -> None:
        self._folder = folder
        self._storage = storage_of(folder, access)

    def read(self, spec: str) -> Iterator[Unit]:
        """The units that measured just this."""
        for name in self._storage.files(self._folder):
            if not name.endswith(_ENDING):
                continue
            try:
                unit = _decode(self._storage.read(f"{self._folder}/{name}"))
            except (msgspec.MsgspecError, FileNotFoundError):
                _log.warning("what a profile kept in %s is lost; files are read again", name)
                continue
            if unit.spec == spec:
                yield unit

    def replace(self, kept: Iterable[Unit], fresh: Iterable[Unit]) -> None:
        """Keeps units that it gave, and fresh ones, but no others.

        A fresh one replaces what has its name: the same files, measured otherwise or damaged.
        """
        names = {unit.name for unit in kept}
        for unit in fresh:
            names.add(unit.name)
            self._storage.write(f"{self._folder}/{unit.name}", msgspec.msgpack.encode(unit))
        gone = {*self._storage.files(self._folder)} - names
        self._storage.discard([f"{self._folder}/{name}" for name in gone])


_decode: Final = msgspec.msgpack.Decoder(Unit).decode
