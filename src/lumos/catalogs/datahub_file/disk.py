"""A file that several programs share: written whole, and never over what another one wrote."""

import errno
import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from lumos.errors import LumosError

_READABLE: Final = 0o644
# What file systems answer that cannot lock a folder, such as some across a network.
_CANNOT_LOCK: Final = frozenset({errno.EBADF, errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS})

# What tells a file from any later version of it; nothing where there is no file.
Mark: TypeAlias = tuple[int, int, int] | None


class FileContent(NamedTuple):
    """What a file held, and the mark that it had then."""

    data: bytes | None
    mark: Mark


def read(path: Path) -> FileContent:
    """A file's content; there is none where there is no file."""
    # A file that changes after its mark was taken has another one when it is to be written.
    mark = _mark(path)
    try:
        return FileContent(path.read_bytes(), mark)
    except FileNotFoundError:
        return FileContent(None, None)
    except OSError as problem:
        raise LumosError(f"{path} cannot be read: {problem.strerror}.") from None


def write(path: Path, data: bytes, *, over: Mark) -> Mark:
    """Puts a file in its place once all of it is on disk, if the one there still has that mark."""
    # A link stays one: what it leads to is written.
    target = path.resolve()
    descriptor, temporary, mode = _begun(target)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.chmod(mode)
        with _alone_in(target.parent):
            if _mark(target) != over:
                raise LumosError(
                    f"{path} was changed by another program since it was read. Nothing was "
                    "written; try again."
                )
            temporary.replace(target)
            return _mark(target)
    except OSError as problem:
        temporary.unlink(missing_ok=True)
        raise LumosError(f"{path} cannot be written: {problem.strerror}.") from None
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def check_writable(path: Path) -> None:
    """Fails where a file could not be put there."""
    descriptor, temporary, _ = _begun(path.resolve())
    os.close(descriptor)
    temporary.unlink()


def _begun(path: Path) -> tuple[int, Path, int]:
    """A new file beside the path, opened, and the mode that the path's own file has."""
    try:
        mode = path.stat().st_mode & 0o777 if path.exists() else _READABLE
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    except OSError as problem:
        raise LumosError(f"{path} cannot be written: {problem.strerror}.") from None
    return descriptor, Path(name), mode


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Keeps others out who would put a file there in the same moment; they wait."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError as problem:
            # Then the mark alone has to do, which leaves a moment between looking and writing.
            if problem.errno not in _CANNOT_LOCK:
                raise
        yield
    finally:
        os.close(descriptor)


def _mark(path: Path) -> Mark:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size
