"""Creates Spark sessions: local, on a cluster, or through Spark Connect."""

import atexit
import os
import re
import shutil
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final

from lumos.errors import LumosError, MissingDependency
from lumos.spark import jvm
from lumos.spark.executors import ship_package

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DEFAULT_SETTINGS: Final = {"spark.app.name": "lumos", "spark.sql.session.timeZone": "UTC"}
_LOCAL_SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    # Forks workers from a process that has already imported the modules of a scan.
    "spark.python.daemon.module": "lumos.discovery.lake.python_daemon",
}

# For short jobs, code generation takes longer than it saves.
_SHORT_JOB_SETTINGS: Final = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}

# The last line of a Python traceback from a worker.
_PYTHON_ERROR: Final = re.compile(r"[A-Za-z_.]*(Error|Exception|Interrupt): \S")
_CANCEL_SECONDS: Final = 5.0

# The JVM of this process, which PySpark uses for all local sessions.
_jvms: list[jvm.Jvm] = []
# The last session of this process; other threads cannot find it as the active session.
_started: list["SparkSession"] = []
# The JVM that was started before the first session, with its settings.
_early_jvms: list[tuple[Mapping[str, str], jvm.Jvm]] = []


class SparkNotUsable(LumosError):
    """No Spark session can be created."""


class SparkFailed(LumosError):
    """A Spark job failed."""


class SparkLost(SparkFailed):
    """The JVM of the session ended; only a new process can start another JVM."""

    def __init__(self) -> None:
        super().__init__("Spark's JVM has ended or does not respond. Run the command again.")


@contextmanager
def spark_session(
    *,
    master: str,
    settings: Mapping[str, str],
    short: bool = True,
    run_meanwhile: Callable[[], None] = lambda: None,
    libraries: Sequence[str] = (),
) -> Iterator["SparkSession"]:
    """A session on `master`: local threads, a cluster, or the address of Spark Connect.

    An active session of the process is used and left running. A new local session is left running
    too, so that the next job starts faster. `short` tunes a local JVM for short jobs.
    `run_meanwhile` runs in another thread while the session starts. `libraries` are shipped to
    executors together with Lumos.
    """
    if "pyspark.sql" not in sys.modules:
        start_jvm_early(master=master, settings=settings, short=short)
    from pyspark.sql import SparkSession

    with _translate_errors():
        active = SparkSession.getActiveSession()
    if active is not None:
        run_meanwhile()
        with _translate_errors():
            yield active
        return
    _use_this_python()
    with _translate_errors():
        with ThreadPoolExecutor(1) as thread:
            other = thread.submit(run_meanwhile)
            if not is_connect(master):
                thread.submit(_import_lazy_modules)
            session = _start_session(master, settings, short=short, libraries=libraries)
        other.result()
        _started[:] = [session]
        try:
            with _end_jvm_on_interrupt():
                yield session
        finally:
            if not is_local(master):
                session.stop()


def cancel_jobs() -> None:
    """Cancel the running jobs of the session that this process started, also on a cluster."""
    if _started:
        with _translate_errors():
            _started[-1].interruptAll()


def _import_lazy_modules() -> None:
    """Import the modules that PySpark imports at its first call to the JVM, including pandas."""
    import pyspark.testing.utils  # noqa: F401


@contextmanager
def _end_jvm_on_interrupt() -> Iterator[None]:
    """On Ctrl-C, end the JVM if cancelling its jobs takes too long.

    PySpark cancels the jobs that it knows, but then waits for the running job, which it cannot
    cancel if it started after the signal.
    """
    before = signal.getsignal(signal.SIGINT)
    is_main = threading.current_thread() is threading.main_thread()
    if not (_jvms and is_main and callable(before)):
        yield
        return
    timers: list[threading.Timer] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        timer = threading.Timer(_CANCEL_SECONDS, _jvms[-1].end)
        timer.daemon = True
        timer.start()
        timers.append(timer)
        before(number, frame)

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        for timer in timers:
            timer.cancel()


@contextmanager
def archiving_session(file: Path) -> Iterator["SparkSession"]:
    """A local session whose JVM writes an archive of its classes when it ends."""
    from pyspark.sql import SparkSession

    _use_this_python()
    settings = {
        **_DEFAULT_SETTINGS,
        **_LOCAL_SETTINGS,
        **_SHORT_JOB_SETTINGS,
        "spark.master": "local[2]",
    }
    process = jvm.start_jvm(settings, short=True, archive_to=file)
    try:
        with process.used_by_pyspark():
            session = SparkSession.builder.getOrCreate()
        yield session
        session.stop()
    finally:
        process.end(seconds=300)


def _use_this_python() -> None:
    """Let workers run on this interpreter, unless another interpreter is configured."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)


def _start_session(
    master: str,
    settings: Mapping[str, str],
    *,
    short: bool,
    libraries: Sequence[str],
) -> "SparkSession":
    if is_local(master):
        return _start_local_session(master, settings, short=short)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.config(map={**_DEFAULT_SETTINGS, **settings})
    if is_connect(master):
        try:
            import grpc  # noqa: F401
        except ModuleNotFoundError:
            raise MissingDependency("Spark Connect", "grpcio", "connect") from None
        builder = builder.remote(master)
    else:
        builder = builder.master(master)
    session = builder.getOrCreate()
    ship_package(session, *libraries)
    return session


def is_connect(master: str) -> bool:
    """Whether a master is the address of a Spark Connect server."""
    return master.startswith("sc://")


def is_local(master: str) -> bool:
    """Whether a master is local threads."""
    return master == "local" or master.startswith("local[")


def _local_settings(master: str, settings: Mapping[str, str], *, short: bool) -> dict[str, str]:
    tuning = _SHORT_JOB_SETTINGS if short else {}
    return {**_DEFAULT_SETTINGS, **_LOCAL_SETTINGS, **tuning, "spark.master": master, **settings}


def start_jvm_early(*, master: str, settings: Mapping[str, str], short: bool = True) -> None:
    """Start the JVM of a local session while the caller continues, for instance with imports.

    The next session with the same settings uses it; otherwise it is ended.
    """
    if (
        _jvms
        or _early_jvms
        or not is_local(master)
        or not jvm.is_default_setup(settings, os.environ)
    ):
        return
    _check_java()
    _use_this_python()
    local_settings = _local_settings(master, settings, short=short)
    process = jvm.start_jvm(local_settings, short=short)
    _early_jvms.append((local_settings, process))
    atexit.register(_end_unused_jvm)


def _end_unused_jvm() -> None:
    while _early_jvms:
        _early_jvms.pop()[1].end(seconds=0)


def _start_local_session(
    master: str, settings: Mapping[str, str], *, short: bool
) -> "SparkSession":
    from pyspark.sql import SparkSession

    _check_java()
    local_settings = _local_settings(master, settings, short=short)
    builder = SparkSession.builder.config(map=dict(local_settings))
    if not jvm.is_default_setup(settings, os.environ):
        return builder.getOrCreate()
    if _jvms and _jvms[-1].is_running:
        return builder.getOrCreate()
    if _early_jvms and _early_jvms[-1][0] == local_settings:
        _, process = _early_jvms.pop()
    else:
        _end_unused_jvm()
        process = jvm.start_jvm(local_settings, short=short)
    _jvms.append(process)
    try:
        with process.used_by_pyspark():
            session = builder.getOrCreate()
    except KeyboardInterrupt:
        process.end(seconds=0)
        raise
    jvm.build_archive_if_missing(jvm.java_command(), jvm.spark_home())
    return session


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Translate the errors of Spark and its JVM into one sentence."""
    from py4j.protocol import Py4JError, Py4JNetworkError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, ConnectionError) as problem:
        if _was_interrupted(problem):
            raise KeyboardInterrupt from problem
        if isinstance(problem, ConnectionError) and not _is_from_spark(problem):
            raise
        has_jvm_ended = bool(_jvms) and not _jvms[-1].is_running
        if has_jvm_ended or isinstance(problem, ConnectionError | Py4JNetworkError):
            raise SparkLost from problem
        text = str(problem)
        if "No space left on device" in text:
            raise SparkFailed(
                "No space left on a disk that Spark writes to. Free some space and run the command "
                "again."
            ) from problem
        raise SparkFailed(
            f"Spark failed: {_root_cause(problem)} (--debug shows everything)"
        ) from problem


def _is_from_spark(problem: ConnectionError) -> bool:
    """Whether the connection to Spark's JVM failed, rather than to a storage or database.

    Py4J and PySpark do not wrap errors of sockets, so only the traceback shows the origin.
    """
    frames = traceback.walk_tb(problem.__traceback__)
    packages = [str(frame.f_globals.get("__name__")).partition(".")[0] for frame, _ in frames]
    callers = [each for each in packages if each in ("lumos", "py4j", "pyspark")]
    return callers[-1:] in (["py4j"], ["pyspark"])


def _was_interrupted(problem: BaseException | None) -> bool:
    """Whether an error of Spark was caused by Ctrl-C."""
    while problem is not None and not isinstance(problem, KeyboardInterrupt):
        problem = problem.__context__
    return problem is not None


def _root_cause(problem: Exception) -> str:
    """The line of an error message with the root cause."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    in_python = [line for line in lines if _PYTHON_ERROR.match(line)]
    if in_python:
        return in_python[-1]
    causes = [line.partition(": ")[2] for line in lines if line.startswith("Caused by:")]
    return (causes or lines or [type(problem).__name__])[-1 if causes else 0]


def _check_java() -> None:
    home = os.environ.get("JAVA_HOME")
    java = Path(home) / "bin" / "java" if home else None
    if java is not None and not java.exists():
        raise SparkNotUsable(
            f"JAVA_HOME points to {home}, which contains no Java. "
            "Point it to a Java 17 installation, or unset it to use the java on the PATH."
        )
    if java is None and shutil.which("java") is None:
        raise SparkNotUsable(
            "Spark needs Java 17 and none was found. Install it "
            "(Debian and Ubuntu: apt-get install openjdk-17-jre-headless; macOS: brew install "
            "openjdk@17) or point JAVA_HOME to it."
        )
