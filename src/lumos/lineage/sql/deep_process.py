"""Runs a function in a child process with a deep stack, for deeply nested SQL.

Python has one recursion limit for all threads of a process. If it were raised here, endless
recursion in a thread of the host would crash the process instead of raising RecursionError. So only
the child raises it. The child calls functions of its parent, such as the one that provides columns
of tables; the two exchange pickled values.
"""

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import IO, Any, Final

_STACK_BYTES: Final = 512 * 1024**2
_RECURSION_LIMIT: Final = 60_000
_MAX_MEMORY_BYTES: Final = 4 * 1024**3
_TIMEOUT_SECONDS: Final = 300
_PROGRAM: Final = "from lumos.lineage.sql.deep_process import serve; serve()"


class DeepProcessFailed(Exception):
    """The child could not be started, or ended without a result."""


def call_in_deep_process(
    function: Callable[..., Any], *, callbacks: Mapping[str, Callable[..., Any]], **arguments: Any
) -> Any:
    """Call a function of a module in a child process; raises DeepProcessFailed.

    `callbacks` are arguments that are functions. They run in this process, and their errors are
    raised here.
    """
    if not sys.executable:
        raise DeepProcessFailed
    try:
        child = subprocess.Popen(
            # -P: the current folder must not be on the import path.
            [sys.executable, "-P", "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
    except OSError:
        raise DeepProcessFailed from None
    assert child.stdin is not None
    assert child.stdout is not None
    timer = threading.Timer(_TIMEOUT_SECONDS, child.kill)
    timer.daemon = True
    timer.start()
    try:
        _send(child.stdin, (function, arguments, tuple(callbacks)))
        while True:
            kind, *content = _receive(child.stdout)
            if kind == "done":
                return content[0]
            if kind == "failed":
                raise DeepProcessFailed
            name, callback_arguments = content
            _send(child.stdin, callbacks[name](*callback_arguments))
    finally:
        timer.cancel()
        child.kill()
        for pipe in (child.stdin, child.stdout):
            # Unread data cannot be flushed.
            with suppress(OSError):
                pipe.close()
        child.wait()


def serve() -> None:
    """Serve one call of the parent in a thread with a deep stack."""
    # Windows does not have this module: the child fails, and the text counts as nested too deeply.
    import resource

    from_parent, to_parent = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # Other output must not mix with the results.
    os.dup2(2, 1)
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY_BYTES, _MAX_MEMORY_BYTES))
    sys.setrecursionlimit(_RECURSION_LIMIT)
    threading.stack_size(_STACK_BYTES)
    thread = threading.Thread(target=_serve, args=(from_parent, to_parent))
    thread.start()
    thread.join()


def _serve(from_parent: IO[bytes], to_parent: IO[bytes]) -> None:
    function, arguments, callbacks = pickle.load(from_parent)

    def callback(name: str) -> Callable[..., Any]:
        def call_parent(*callback_arguments: Any) -> Any:
            _send(to_parent, ("call", name, callback_arguments))
            return pickle.load(from_parent)

        return call_parent

    try:
        result = function(**arguments, **{name: callback(name) for name in callbacks})
    except (RecursionError, MemoryError):
        _send(to_parent, ("failed",))
    else:
        _send(to_parent, ("done", result))


def _send(pipe: IO[bytes], message: object) -> None:
    try:
        pickle.dump(message, pipe)
        pipe.flush()
    except BrokenPipeError:
        raise DeepProcessFailed from None


def _receive(pipe: IO[bytes]) -> Any:
    try:
        return pickle.load(pipe)
    except (EOFError, pickle.UnpicklingError):
        raise DeepProcessFailed from None
