"""`lumos serve`: checks the settings of access, then runs the server until it is stopped."""

import gc
import logging
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from lumos.errors import LumosError, MissingDependency, MisuseError
from lumos.sdk import Lumos
from lumos.server.identity import is_loopback
from lumos.store.configured import create_when_reachable

if TYPE_CHECKING:
    from lumos.jobs.reports import JobSummary

# The time for running jobs to finish after the server was stopped.
_FINISH_SECONDS: Final = 10.0
_RESTART_SECONDS: Final = 10.0
_log = logging.getLogger(__name__)


def serve(
    lumos: Lumos,
    *,
    host: str | None = None,
    port: int | None = None,
    require_token: bool = False,
    certificate: Path | None = None,
    key: Path | None = None,
    workers: int = 1,
    started: Callable[[str], None] = lambda _url: None,
) -> None:
    """Answer requests until the process is stopped.

    Unless the host is a loopback address, every request needs a token, so at least one must exist.
    The server also runs up to `workers` jobs at a time; with 0, run them with `lumos worker`.
    `started` is called with the URL when the server accepts connections.
    """
    try:
        import uvicorn

        from lumos.server.app import ApiServer, ServerOptions
    except ModuleNotFoundError as problem:
        raise MissingDependency("The server", problem.name or "litestar", "server") from None
    settings = lumos.settings.server
    address = host or settings.host
    number = settings.port if port is None else port
    create_when_reachable(lumos.create_store)
    open_loopback = is_loopback(address) and not require_token
    if not open_loopback and settings.oidc is None and not lumos.tokens.has_active():
        raise MisuseError(
            f"Every request to {address} needs a token, and there is none. "
            "Create one first with: lumos token create NAME --role admin"
        )
    if (certificate is None) != (key is None):
        raise MisuseError("TLS needs --tls-certificate and --tls-key. Give both.")
    if certificate is not None and key is not None:
        _check_tls(certificate, key)
    app = ApiServer(
        lumos,
        ServerOptions(
            open_loopback=open_loopback,
            max_request_bytes=settings.max_request_bytes,
            request_seconds=settings.request_seconds,
            requests_per_minute=settings.requests_per_minute,
            event_streams=settings.event_streams,
        ),
    ).app()
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=True,
        # Do not trust client addresses in headers: clients may claim any.
        proxy_headers=False,
        timeout_graceful_shutdown=10,
        h11_max_incomplete_event_size=64 * 1024,
        ssl_certfile=None if certificate is None else str(certificate),
        ssl_keyfile=None if key is None else str(key),
    )
    with _listening(address, number) as listener:
        scheme = "http" if certificate is None else "https"
        shown = f"[{address}]" if ":" in address else address
        started(f"{scheme}://{shown}:{listener.getsockname()[1]}")
        # Exclude the loaded modules from garbage collection, whose pauses would delay requests.
        gc.freeze()
        with _running_jobs(lumos, workers):
            uvicorn.Server(config).run(sockets=[listener])


@contextmanager
def _running_jobs(lumos: Lumos, workers: int) -> Iterator[None]:
    """Run jobs, each in a separate process, from a background thread."""
    if not workers:
        yield
        return
    stop, abort = threading.Event(), threading.Event()

    def work() -> None:
        while not stop.is_set():
            try:
                lumos.jobs.work(
                    concurrency=workers, stop=stop, abort=abort, on_outcome=_log_outcome
                )
            except LumosError as problem:
                _log.error("The worker failed and is started again: %s", problem)
                stop.wait(_RESTART_SECONDS)

    thread = threading.Thread(target=work, name="lumos-worker", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(_FINISH_SECONDS)
        # Stop jobs that are still running, and return them to the queue.
        abort.set()
        thread.join(_FINISH_SECONDS)


def _log_outcome(job: "JobSummary", outcome: str) -> None:
    _log.info("job", extra={"facts": {"job": job.id, "kind": job.kind, "outcome": outcome}})


def _check_tls(certificate: Path, key: Path) -> None:
    """Load the certificate and its key, so that nothing is announced if they cannot be used."""
    for file, option in ((certificate, "--tls-certificate"), (key, "--tls-key")):
        try:
            file.read_bytes()
        except OSError as problem:
            raise MisuseError(f"{option} {file} cannot be read: {problem.strerror}.") from None
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(
            # Without a password, OpenSSL would ask for it on the terminal.
            certificate,
            key,
            password=lambda: _no_password(key),
        )
    except ssl.SSLError as problem:
        reason = (
            f"{key} is not the key of the certificate {certificate}"
            if problem.reason in ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH")
            else f"{certificate} and {key} are not a certificate and its key in PEM format"
        )
        raise MisuseError(f"{reason} ({problem.reason or problem}).") from None


def _no_password(key: Path) -> str:
    raise MisuseError(f"{key} is protected by a password. Give a key without one.")


def _listening(host: str, port: int) -> socket.socket:
    """A listening socket, opened before the server starts, so that the port is known."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio disables Nagle's algorithm only if the protocol is named. With it, an answer waits
    # for the client's delayed acknowledgement: 40 ms for most requests.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(2048)
    except OSError as problem:
        listener.close()
        raise MisuseError(
            f"Cannot listen on {host}:{port}: {problem.strerror}. "
            "Choose another port with: lumos serve --port N"
        ) from None
    return listener
