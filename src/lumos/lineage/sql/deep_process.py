"""Runs a function in a child process with a deep stack, for deeply nested SQL.

Python has one recursion limit for all threads of a process. If it were raised here, endless
recursion in a thread of the host would crash the process instead of raising RecursionError. So only
the child raises it. The child asks its parent for the schemas of tables; the two exchange pickled
values.
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
    function: Callable[..., Any], *, asks: Mapping[str, Callable[..., Any]], **values: Any
) -> Any:
    """Call a function of a module in a child process; raises DeepProcessFailed.

    `asks` are arguments that the child calls back in this process. Their errors are raised here.
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
    overdue = threading.Timer(_TIMEOUT_SECONDS, child.kill)
    overdue.daemon = True
    overdue.start()
    try:
        _send(child.stdin, (function, values, tuple(asks)))
        while True:
            kind, *content = _receive(child.stdout)
            if kind == "done":
                return content[0]
            if kind == "failed":
                raise DeepProcessFailed
            name, arguments = content
            _send(child.stdin, asks[name](*arguments))
    finally:
        overdue.cancel()
        child.kill()
        for pipe in (child.stdin, child.stdout):
            # Unread data cannot be flushed.
            with suppress(OSError):
                pipe.close()
        child.wait()


def serve() -> None:
    """Serve one call of the parent in a thread with a deep stack."""
    # Windows has no such limit; there the child fails, and the text counts as nested too deeply.
    import resource

    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # Other output must not mix with the results.
    os.dup2(2, 1)
    resource.setrlimit(resource.RLIMIT_AS, (_MAX_MEMORY_BYTES, _MAX_MEMORY_BYTES))
    sys.setrecursionlimit(_RECURSION_LIMIT)
    threading.stack_size(_STACK_BYTES)
    thread = threading.Thread(target=_serve, args=(requests, answers))
    thread.start()
    thread.join()


def _serve(requests: IO[bytes], answers: IO[bytes]) -> None:
    function, values, asks = pickle.load(requests)

    def asked(name: str) -> Callable[..., Any]:
        def ask(*arguments: Any) -> Any:
            _send(answers, ("ask", name, arguments))
            return pickle.load(requests)

        return ask

    try:
        result = function(**values, **{name: asked(name) for name in asks})
    except (RecursionError, MemoryError):
        _send(answers, ("failed",))
    else:
        _send(answers, ("done", result))


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
