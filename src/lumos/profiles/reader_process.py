"""Reads Parquet and ORC rows in a child process, because pyarrow aborts on some damaged files.

An abort ends the entire process. In a Spark worker, this would end the task and lose all of its
measurements. In a child process, only the child ends, and the file is reported as damaged.

The child is a fork of the worker, and reads all files of the worker. It opens local files itself,
but requests ranges of remote files from the worker. So it needs neither credentials nor
connections, which do not survive a fork.
"""

import faulthandler
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import Any, Final, NoReturn

import pyarrow as pa

from lumos.formats.interface import UnreadableFile
from lumos.model.types import DataType
from lumos.profiles.tasks import (
    FileTask,
    FormatReader,
    RangedFile,
    RowBatch,
    SeekableFile,
    corrupt_file,
)

# The signal with which the kernel and container runtimes kill a process that uses too much memory.
_OUT_OF_MEMORY: Final = signal.SIGKILL


class ReaderCrashed(UnreadableFile):
    """The process that read the file crashed."""

    def __init__(self, ended_by: signal.Signals | None) -> None:
        if ended_by is _OUT_OF_MEMORY:
            reason = "The process that read it was killed, probably because memory ran out."
        else:
            cause = ended_by.name if ended_by else "an error"
            reason = f"The process that read it was ended by {cause}: the file is damaged."
        super().__init__("corrupt_file", reason)


class ReaderProcess:
    """A child process that reads one file at a time, batch by batch."""

    def __init__(self) -> None:
        parent_end, child_end = Pipe()
        self.parent = os.getpid()
        self._child = os.fork()
        if self._child == 0:
            parent_end.close()
            _serve(child_end)
        child_end.close()
        self._connection = parent_end

    def batches(
        self,
        read: FormatReader,
        task: FileTask,
        wanted: Mapping[str, DataType],
        file: RangedFile | None,
    ) -> Iterator[RowBatch]:
        """Yield the batches of a task's file; `file` is None for a local file."""
        self._send((read, task, dict(wanted), None if file is None else file.size))
        failure: OSError | None = None
        while True:
            match self._receive():
                case "range", start, length:
                    # The child always waits for an answer; None means that the read failed.
                    answer: bytes | None = None
                    try:
                        assert file is not None
                        answer = file.fetch(start, length)
                    except OSError as problem:
                        failure = problem
                    self._send(answer)
                case "batch", batch_info, columns:
                    try:
                        yield RowBatch(
                            batch_info[0], batch_info[1], _decode(columns), *batch_info[2:]
                        )
                    except GeneratorExit:
                        self._send("stop")
                        self._receive()
                        raise
                    self._send("next")
                case "unreadable", code, reason:
                    raise failure or UnreadableFile(code, reason)
                case "failed", arguments:
                    raise failure or OSError(*arguments)
                case "end":
                    return

    def close(self) -> None:
        """End the child, even if it is reading."""
        self._connection.close()
        with suppress(ProcessLookupError):
            os.kill(self._child, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(self._child, 0)

    def _send(self, message: object) -> None:
        try:
            self._connection.send(message)
        except (BrokenPipeError, ConnectionResetError):
            raise self._crash() from None

    def _receive(self) -> Any:
        try:
            return self._connection.recv()
        except (EOFError, ConnectionResetError):
            raise self._crash() from None

    def _crash(self) -> ReaderCrashed:
        self._connection.close()
        try:
            _, status = os.waitpid(self._child, 0)
        except ChildProcessError:
            return ReaderCrashed(None)
        ended_by = signal.Signals(os.WTERMSIG(status)) if os.WIFSIGNALED(status) else None
        return ReaderCrashed(ended_by)


_process: ReaderProcess | None = None


def read_in_child(
    read: FormatReader, task: FileTask, wanted: Mapping[str, DataType], file: RangedFile | None
) -> Iterator[RowBatch]:
    """Yield the batches of a file, read by a child process."""
    # All files that this process reads are read by the same child.
    global _process
    if _process is None or _process.parent != os.getpid():
        _process = ReaderProcess()
    try:
        yield from _process.batches(read, task, wanted, file)
    except ReaderCrashed:
        _process = None
        raise
    except (UnreadableFile, OSError, GeneratorExit):
        raise
    except BaseException:
        # The exchange of messages was interrupted, so the next answer would be for an old request.
        _process.close()
        _process = None
        raise


def _serve(connection: Connection) -> NoReturn:
    """Read files for the parent until it ends or closes the connection."""
    # A crash must not print a traceback, because the parent reports the file.
    faulthandler.disable()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        while True:
            read, task, wanted, size = connection.recv()
            connection.send(_read(connection, read, task, wanted, size))
    except (EOFError, OSError):
        os._exit(0)
    except BaseException:  # noqa: BLE001 - no code of the parent may run in the child
        os._exit(1)


def _read(
    connection: Connection,
    read: FormatReader,
    task: FileTask,
    wanted: Mapping[str, DataType],
    size: int | None,
) -> object:
    """Send the batches of a file, and return the final message."""
    try:
        with _open_file(connection, task.path, size) as file:
            for batch in read(file, task, wanted):
                batch_info = (batch.start, batch.rows, batch.bad_records, batch.share)
                connection.send(("batch", batch_info, _encode(batch.columns)))
                if connection.recv() == "stop":
                    break
    except UnreadableFile as problem:
        return "unreadable", problem.code, problem.reason
    except Exception as problem:  # noqa: BLE001 - pyarrow raises anything on a damaged file
        if isinstance(problem, OSError) and problem.errno is not None:
            return "failed", (problem.errno, problem.strerror, problem.filename)
        unreadable = corrupt_file(problem)
        return "unreadable", unreadable.code, unreadable.reason
    return "end"


def _open_file(connection: Connection, path: str, size: int | None) -> pa.NativeFile:
    if size is None:
        return pa.OSFile(path)

    def fetch(start: int, length: int) -> bytes:
        connection.send(("range", start, length))
        answer: bytes | None = connection.recv()
        if answer is None:
            raise OSError("the storage failed")
        return answer

    return pa.PythonFile(SeekableFile(fetch, size), "r")


def _encode(columns: Mapping[str, pa.Array]) -> bytes:
    batch = pa.RecordBatch.from_arrays([*columns.values()], names=[*columns])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as stream:
        stream.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _decode(data: bytes) -> dict[str, pa.Array]:
    with pa.ipc.open_stream(data) as stream:
        batch = stream.read_next_batch()
    return dict(zip(batch.schema.names, batch.columns, strict=True))
