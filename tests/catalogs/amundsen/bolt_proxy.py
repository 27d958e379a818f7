"""A proxy in front of Neo4j that cuts connections when transactions are committed."""

import socket
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from threading import Event, Lock, Thread
from typing import Literal

# The message COMMIT of Bolt in a chunk of its own.
_COMMIT = b"\x00\x02\xb0\x12\x00\x00"
_BYTES = 1 << 16
# What becomes of a commit: it is forwarded, it never arrives, or its answer is lost.
Outcome = Literal["forwarded", "dropped", "unanswered"]


class BoltProxy:
    """Forwards connections; `decide` says what becomes of each commit, by its number from 1."""

    def __init__(self, port: int, target: tuple[str, int]) -> None:
        self.uri = f"bolt://127.0.0.1:{port}"
        self.decide: Callable[[int], Outcome] = lambda _: "forwarded"
        self.commits = 0
        self.cut = 0
        self._target, self._lock = target, Lock()

    def forget(self) -> None:
        self.commits = self.cut = 0

    def serve(self, client: socket.socket) -> None:
        is_muted, is_answered = Event(), Event()

        def forward_answers() -> None:
            with suppress(OSError):
                while data := server.recv(_BYTES):
                    if is_muted.is_set():
                        is_answered.set()
                    else:
                        client.sendall(data)
            is_answered.set()
            _shut(client)

        with closing(client), closing(socket.create_connection(self._target)) as server:
            answers = Thread(target=forward_answers, daemon=True)
            answers.start()
            with suppress(OSError):
                while data := client.recv(_BYTES):
                    outcome = self._outcome(data)
                    if outcome == "unanswered":
                        is_muted.set()
                    if outcome != "dropped":
                        server.sendall(data)
                    if outcome == "unanswered":
                        # It is committed when the server answers.
                        is_answered.wait()
                    if outcome != "forwarded":
                        break
            _shut(server)
            answers.join()

    def _outcome(self, data: bytes) -> Outcome:
        if _COMMIT not in data:
            return "forwarded"
        with self._lock:
            self.commits += 1
            outcome = self.decide(self.commits)
            self.cut += outcome != "forwarded"
        return outcome


@contextmanager
def bolt_proxy(uri: str) -> Iterator[BoltProxy]:
    """A proxy in front of the Neo4j at `uri`."""
    host, _, port = uri.removeprefix("bolt://").partition(":")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        proxy = BoltProxy(listener.getsockname()[1], (host, int(port)))

        def accept() -> None:
            with suppress(OSError):
                while True:
                    client, _ = listener.accept()
                    Thread(target=proxy.serve, args=(client,), daemon=True).start()

        Thread(target=accept, daemon=True).start()
        yield proxy


def _shut(end: socket.socket) -> None:
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
