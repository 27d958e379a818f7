"""Runs jobs in a child process, which can be stopped at any time.

Python cannot stop a thread, and a scan spends most of its time inside Spark. Therefore a worker has
one child process for each job that it runs at a time. The child is reused for the next job, since
its JVM is already running; it is replaced after a failure and, to limit its memory, after a number
of jobs. If the worker dies, the child's stdin is closed, and the child ends with all processes that
it started.
"""

import os
import selectors
import signal
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from time import monotonic, sleep
from typing import IO, Any, Final

import msgspec

from lumos.errors import LumosError
from lumos.model.job import JobProgress, JobRecord
from lumos.model.json_codec import to_json
from lumos.tracing import trace_headers

_MODULE: Final = "lumos.cli.job_runner"
# The time for a child to cancel its Spark jobs.
_STOP_SECONDS: Final = 10.0
# The time for the system to end killed processes; freeing the memory of a JVM takes a moment.
_KILL_SECONDS: Final = 5.0
_MAX_JOBS_PER_CHILD: Final = 50
_READ_SIZE: Final = 64 * 1024


class JobEvent(msgspec.Struct, frozen=True, tag_field="event"):
    """A message from a child about its job."""


class ProgressEvent(JobEvent, frozen=True, tag="progress"):
    """The current step of the work."""

    progress: JobProgress


class LogEvent(JobEvent, frozen=True, tag="log"):
    """A line for the log of the job."""

    text: str


class StepsEvent(JobEvent, frozen=True, tag="steps"):
    """The results of the steps of a chain so far."""

    results: list[Any]


class SuccessEvent(JobEvent, frozen=True, tag="success"):
    """The job has succeeded."""

    result: Any


class FailureEvent(JobEvent, frozen=True, tag="failure"):
    """The job failed; if the failure is `permanent`, another attempt would fail too."""

    error: str
    permanent: bool


AnyJobEvent = ProgressEvent | LogEvent | StepsEvent | SuccessEvent | FailureEvent
_decode_event: Final = msgspec.json.Decoder[AnyJobEvent](AnyJobEvent).decode


class RunnerRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The job that a child runs, and its configuration."""

    config: str | None
    overrides: dict[str, Any]
    kind: str
    arguments: dict[str, Any]
    completed_steps: tuple[Any, ...]
    # Headers with which the child continues the trace of the worker.
    trace: dict[str, str] | None = None


class RunnerDied(LumosError):
    """The process of a job ended before the job did."""

    def __init__(self, code: int) -> None:
        how = f"by signal {signal.Signals(-code).name}" if code < 0 else f"with code {code}"
        super().__init__(f"The process of the job ended {how}.")


class JobRunner(ABC):
    """Runs one job at a time."""

    @abstractmethod
    def start(self, job: JobRecord) -> None:
        """Start a job."""

    @abstractmethod
    def poll(self, seconds: float) -> Sequence[AnyJobEvent]:
        """The next events; empty after `seconds` without any.

        A success or failure event is the last event of a job.
        """

    @abstractmethod
    def stop(self) -> None:
        """Stop the running job and all processes that it started."""

    def close(self) -> None:
        """End the runner between jobs."""
        self.stop()


class ProcessRunner(JobRunner):
    """Runs jobs in a child process, with a configuration file and overrides."""

    def __init__(
        self,
        config: str | None,
        overrides: Mapping[str, Any],
        environment: Mapping[str, str],
    ) -> None:
        self._config = config
        self._overrides = dict(overrides)
        self._environment = dict(environment)
        self._child: subprocess.Popen[bytes] | None = None
        self._jobs = 0
        self._buffer = b""

    def start(self, job: JobRecord) -> None:
        request = RunnerRequest(
            config=self._config,
            overrides=self._overrides,
            kind=job.kind,
            arguments=job.arguments,
            completed_steps=job.completed_steps,
            trace=trace_headers(),
        )
        if self._jobs >= _MAX_JOBS_PER_CHILD:
            self.stop()
        try:
            self._write(to_json(request) + b"\n")
        except BrokenPipeError:
            # The child has ended between two jobs: start another one.
            self.stop()
            self._write(to_json(request) + b"\n")
        self._jobs += 1

    def poll(self, seconds: float) -> Sequence[AnyJobEvent]:
        assert self._child is not None, "poll follows start"
        output = _pipe(self._child.stdout)
        deadline = monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(output, selectors.EVENT_READ)
            while b"\n" not in self._buffer and (left := deadline - monotonic()) > 0:
                if not selector.select(left):
                    break
                received = os.read(output.fileno(), _READ_SIZE)
                if not received:
                    code = self._child.wait()
                    self.stop()
                    raise RunnerDied(code)
                self._buffer += received
        *lines, self._buffer = self._buffer.split(b"\n")
        events: list[AnyJobEvent] = [_decode_event(line) for line in lines]
        if events and isinstance(events[-1], FailureEvent):
            # Use a new child for the next job, since the JVM may have caused the failure.
            self.stop()
        return events

    def stop(self) -> None:
        child, self._child = self._child, None
        self._jobs, self._buffer = 0, b""
        if child is None:
            return
        child.terminate()
        with suppress(subprocess.TimeoutExpired):
            child.wait(_STOP_SECONDS)
        # Also kill processes that the child has started, such as a JVM that ignores SIGTERM, and
        # wait for their end, so that the next job does not share files or ports with this one.
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            deadline = monotonic() + _KILL_SECONDS
            while monotonic() < deadline:
                os.killpg(child.pid, 0)
                sleep(0.01)
        child.wait()
        with suppress(BrokenPipeError):
            _pipe(child.stdin).close()
        _pipe(child.stdout).close()

    def _write(self, line: bytes) -> None:
        if self._child is None:
            self._child = subprocess.Popen(
                [sys.executable, "-m", _MODULE],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=self._environment,
                # In its own process group, so that Ctrl-C in the worker's terminal does not reach
                # the job.
                start_new_session=True,
            )
        stdin = _pipe(self._child.stdin)
        stdin.write(line)
        stdin.flush()


def _pipe(stream: IO[bytes] | None) -> IO[bytes]:
    assert stream is not None, "stdin and stdout are opened as pipes"
    return stream


def child_events(output: IO[bytes]) -> Callable[[AnyJobEvent], None]:
    """Return the function with which a child sends events to its worker."""

    def send(event: AnyJobEvent) -> None:
        output.write(to_json(event) + b"\n")
        output.flush()

    return send
