"""The child process of a worker: runs the jobs that it reads from stdin, one after the other."""

import logging
import os
import signal
import sys
import threading
from queue import SimpleQueue
from time import monotonic
from types import FrameType
from typing import Any, Final, NoReturn

from lumos.config.secret import redact
from lumos.errors import LumosError
from lumos.jobs.kinds import is_permanent, plan_job, run_steps
from lumos.jobs.runner import (
    AnyJobEvent,
    FailureEvent,
    LogEvent,
    ProgressEvent,
    RunnerRequest,
    StepsEvent,
    SuccessEvent,
    child_events,
)
from lumos.model.job import JobProgress
from lumos.model.json_codec import from_json
from lumos.tracing import span, start_tracing

_log = logging.getLogger(__name__)
# Progress events are limited, since the worker only records progress every few seconds.
_PROGRESS_SECONDS: Final = 0.5
_CANCEL_SECONDS: Final = 5.0


class _JobLog(logging.Handler):
    """Sends log records of Lumos to the log of the job."""

    def __init__(self, send: Any) -> None:
        super().__init__(logging.INFO)
        self._send = send

    def emit(self, record: logging.LogRecord) -> None:
        self._send(LogEvent(redact(f"{record.levelname.lower()}: {record.getMessage()}")))


class _Reporter:
    """Sends the progress of the job, at most every `_PROGRESS_SECONDS` for the same step."""

    def __init__(self, send: Any) -> None:
        self._send = send
        self._step = ""
        self._sent_at = 0.0

    def __call__(
        self, step: str, /, *, files: int = 0, share: float | None = None, unit: str = "files"
    ) -> None:
        if step != self._step:
            self._send(LogEvent(redact(step)))
        elif monotonic() - self._sent_at < _PROGRESS_SECONDS:
            return
        self._step, self._sent_at = step, monotonic()
        progress = JobProgress(step=redact(step), files=files, share=share, unit=unit)
        self._send(ProgressEvent(progress))


def main() -> None:
    """Run the jobs on stdin; when it is closed, end this process and all processes it started."""
    # The worker reads events from stdout, so all other output goes to stderr.
    channel = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    lock = threading.Lock()
    send_unlocked = child_events(channel)

    def send(event: AnyJobEvent) -> None:
        with lock:
            send_unlocked(event)

    signal.signal(signal.SIGTERM, _terminate)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logger = logging.getLogger("lumos")
    logger.setLevel(logging.INFO)
    logger.addHandler(_JobLog(send))
    flush_spans = start_tracing("job", os.environ)
    requests: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_read_requests, args=(requests,), daemon=True).start()
    while True:
        request = from_json(requests.get(), RunnerRequest)
        with span(f"run {request.kind}", parent=request.trace) as traced:
            outcome = _run(request, send)
            if isinstance(outcome, FailureEvent):
                traced.fail("failed")
        # Flush before sending the outcome, after which the worker may end this process.
        flush_spans()
        send(outcome)


def _run(request: RunnerRequest, send: Any) -> AnyJobEvent:
    from lumos.sdk import Lumos

    try:
        lumos = Lumos(request.config, overrides=request.overrides)
        result = run_steps(
            plan_job(request.kind, request.arguments),
            lumos,
            done=request.completed_steps,
            progress=_Reporter(send),
            completed=lambda results: send(StepsEvent(list(results))),
        )
    except LumosError as problem:
        return FailureEvent(redact(str(problem)), is_permanent(problem))
    except Exception as problem:  # noqa: BLE001 - the edge: the worker records every failure
        _log.exception("the job failed unexpectedly")
        return FailureEvent(redact(f"{type(problem).__name__}: {problem}"), False)
    return SuccessEvent(result)


def _read_requests(requests: "SimpleQueue[bytes]") -> NoReturn:
    for line in sys.stdin.buffer:
        requests.put(line)
    _end()


def _terminate(_number: int, _frame: FrameType | None) -> None:
    # In another thread, since the main thread may be inside a call to Spark.
    threading.Thread(target=_end, daemon=True).start()


def _end() -> NoReturn:
    """Cancel the jobs on a Spark cluster, and end the process group, including a local JVM."""
    from lumos.spark.session import cancel_jobs

    cancelling = threading.Thread(target=cancel_jobs, daemon=True)
    cancelling.start()
    cancelling.join(_CANCEL_SECONDS)
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


if __name__ == "__main__":
    main()
