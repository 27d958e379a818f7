"""The one place that makes a Spark session."""

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
from lumos.spark import artifacts as shipment
from lumos.spark import class_archive, jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ALWAYS: Final = {"spark.app.name": "lumos", "spark.sql.session.timeZone": "UTC"}
_LOCALLY: Final = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.shuffle.partitions": "4",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    # Workers fork from a process that has imported all that a scan needs.
    "spark.python.daemon.module": "lumos.discovery.python_daemon",
}

# A short job is over before what Spark compiles for it has paid off.
_FOR_SHORT_JOBS: Final = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}

# The last line of what Python says of an error in a worker.
_PYTHON_ERROR: Final = re.compile(r"[A-Za-z_.]*(Error|Exception|Interrupt): \S")
_PATIENCE_SECONDS: Final = 5.0

# A process has one JVM for all its local sessions, as PySpark has it; it is kept here.
_jvms: list[jvm.Jvm] = []
# The one that starts ahead of the first session, with the settings it was started for.
_ahead: list[tuple[Mapping[str, str], jvm.Jvm]] = []


class SparkNotUsable(LumosError):
    """No Spark session can be had."""


class SparkFailed(LumosError):
    """Spark gave up in the middle of a job."""


class SparkLost(SparkFailed):
    """The JVM behind the session does not answer any more; another process gets a new one."""

    def __init__(self) -> None:
        super().__init__("Spark's JVM has ended or does not answer any more. Run this again.")


@contextmanager
def spark_session(
    *,
    master: str,
    settings: Mapping[str, str],
    short: bool = True,
    meanwhile: Callable[[], None] = lambda: None,
    libraries: Sequence[str] = (),
) -> Iterator["SparkSession"]:
    """A session on `master`, a cluster's or a Spark Connect address, or local threads.

    A session that the process already has is used and left running, and so is a local one that
    is made here: it ends with the process, and the next job finds it warm. `short` says that the
    job is expected to be over soon, so that a local JVM should rather start quickly than run long.
    `meanwhile` is done beside the start, in another thread. `libraries` are shipped to executors
    beside the package itself.
    """
    if "pyspark.sql" not in sys.modules:
        start_ahead(master=master, settings=settings, short=short)
    from pyspark.sql import SparkSession

    with _clear_errors():
        active = SparkSession.getActiveSession()
    if active is not None:
        meanwhile()
        with _clear_errors():
            yield active
        return
    _use_this_python()
    with _clear_errors():
        with ThreadPoolExecutor(1) as thread:
            other = thread.submit(meanwhile)
            if not is_connect(master):
                thread.submit(_import_what_pyspark_will)
            session = _started(master, settings, short=short, libraries=libraries)
        other.result()
        try:
            with _ended_by_interrupts():
                yield session
        finally:
            if not is_local(master):
                session.stop()


def _import_what_pyspark_will() -> None:
    """Imports what PySpark, and pandas with it, would import at its first word to the JVM."""
    import pyspark.testing.utils  # noqa: F401


@contextmanager
def _ended_by_interrupts() -> Iterator[None]:
    """Lets Ctrl-C end our JVM where cancelling its jobs is not enough to be free in time.

    PySpark cancels the jobs it knows of and then waits for the one in hand, even if that started
    only after the signal.
    """
    before = signal.getsignal(signal.SIGINT)
    is_main = threading.current_thread() is threading.main_thread()
    if not (_jvms and is_main and callable(before)):
        yield
        return
    waiting: list[threading.Timer] = []

    def interrupt(number: int, frame: FrameType | None) -> None:
        timer = threading.Timer(_PATIENCE_SECONDS, _jvms[-1].end)
        timer.daemon = True
        timer.start()
        waiting.append(timer)
        before(number, frame)

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        for timer in waiting:
            timer.cancel()


@contextmanager
def archiving_session(file: Path) -> Iterator["SparkSession"]:
    """A local session whose JVM leaves an archive of its classes when it ends."""
    from pyspark.sql import SparkSession

    _use_this_python()
    settings = {**_ALWAYS, **_LOCALLY, **_FOR_SHORT_JOBS, "spark.master": "local[2]"}
    process = jvm.start_jvm(settings, short=True, archive_to=file)
    try:
        with process.found_by_pyspark():
            session = SparkSession.builder.getOrCreate()
        yield session
        session.stop()
    finally:
        process.end(seconds=300)


def _use_this_python() -> None:
    """Lets workers run on this interpreter, unless somebody named another."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)


def _started(
    master: str,
    settings: Mapping[str, str],
    *,
    short: bool,
    libraries: Sequence[str],
) -> "SparkSession":
    if is_local(master):
        return _local(master, settings, short=short)
    session = (_connected if is_connect(master) else _on_cluster)(master, settings)
    shipment.ship_package(session, *libraries)
    return session


def is_connect(master: str) -> bool:
    """Whether a master is the address of a Spark Connect server."""
    return master.startswith("sc://")


def is_local(master: str) -> bool:
    """Whether a master is threads of this machine's JVM."""
    return master == "local" or master.startswith("local[")


def _local_settings(master: str, settings: Mapping[str, str], *, short: bool) -> dict[str, str]:
    quickly = _FOR_SHORT_JOBS if short else {}
    return {**_ALWAYS, **_LOCALLY, **quickly, "spark.master": master, **settings}


def start_ahead(*, master: str, settings: Mapping[str, str], short: bool = True) -> None:
    """Lets the JVM of a local session start while the caller goes on, for instance importing.

    The next session that asks for the same settings takes it; if none does, it ends unused.
    """
    if _jvms or _ahead or not is_local(master) or not jvm.is_plain(settings, os.environ):
        return
    _check_java()
    _use_this_python()
    wanted = _local_settings(master, settings, short=short)
    process = jvm.start_jvm(wanted, short=short)
    _ahead.append((wanted, process))
    atexit.register(_end_unused)


def _end_unused() -> None:
    while _ahead:
        _ahead.pop()[1].end(seconds=0)


def _local(master: str, settings: Mapping[str, str], *, short: bool) -> "SparkSession":
    from pyspark.sql import SparkSession

    _check_java()
    wanted = _local_settings(master, settings, short=short)
    builder = SparkSession.builder.config(map=dict(wanted))
    if not jvm.is_plain(settings, os.environ):
        return builder.getOrCreate()
    if _jvms and _jvms[-1].is_running:
        return builder.getOrCreate()
    if _ahead and _ahead[-1][0] == wanted:
        _, process = _ahead.pop()
    else:
        _end_unused()
        process = jvm.start_jvm(wanted, short=short)
    _jvms.append(process)
    try:
        with process.found_by_pyspark():
            session = builder.getOrCreate()
    except KeyboardInterrupt:
        process.end(seconds=0)
        raise
    class_archive.build_if_missing(jvm.java_command(), jvm.spark_home())
    return session


def _on_cluster(master: str, settings: Mapping[str, str]) -> "SparkSession":
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master).config(map={**_ALWAYS, **settings})
    return builder.getOrCreate()


def _connected(address: str, settings: Mapping[str, str]) -> "SparkSession":
    from pyspark.sql import SparkSession

    try:
        import grpc  # noqa: F401
    except ModuleNotFoundError:
        raise MissingDependency("Spark Connect", "grpcio", "connect") from None
    builder = SparkSession.builder.remote(address).config(map={**_ALWAYS, **settings})
    return builder.getOrCreate()


@contextmanager
def _clear_errors() -> Iterator[None]:
    """Turns what Spark and its JVM raise into one sentence."""
    from py4j.protocol import Py4JError, Py4JNetworkError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, ConnectionError) as problem:
        if _was_interrupted(problem):
            raise KeyboardInterrupt from problem
        if isinstance(problem, ConnectionError) and not _is_from_spark(problem):
            raise
        is_ours = bool(_jvms) and not _jvms[-1].is_running
        if is_ours or isinstance(problem, ConnectionError | Py4JNetworkError):
            raise SparkLost from problem
        text = str(problem)
        if "No space left on device" in text:
            raise SparkFailed(
                "No room left on a disk that Spark writes to. Free some and run the command again."
            ) from problem
        raise SparkFailed(
            f"Spark failed: {_reason(problem)} (--debug shows everything)"
        ) from problem


def _is_from_spark(problem: ConnectionError) -> bool:
    """Whether a connection to Spark's JVM failed, rather than one to a storage or database.

    Py4J and PySpark pass on what sockets raise, so only the traceback tells who was connected.
    """
    frames = traceback.walk_tb(problem.__traceback__)
    packages = [str(frame.f_globals.get("__name__")).partition(".")[0] for frame, _ in frames]
    callers = [each for each in packages if each in ("lumos", "py4j", "pyspark")]
    return callers[-1:] in (["py4j"], ["pyspark"])


def _was_interrupted(problem: BaseException | None) -> bool:
    """Whether Spark only reports that Ctrl-C cancelled its job."""
    while problem is not None and not isinstance(problem, KeyboardInterrupt):
        problem = problem.__context__
    return problem is not None


def _reason(problem: Exception) -> str:
    """The cause that all the other lines come from."""
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
            f"JAVA_HOME points to {home}, which holds no Java. "
            "Point it to a Java 17 installation, or unset it to use the java on the PATH."
        )
    if java is None and shutil.which("java") is None:
        raise SparkNotUsable(
            "Spark needs Java 17 and none was found. Install it "
            "(Debian and Ubuntu: apt-get install openjdk-17-jre-headless; macOS: brew install "
            "openjdk@17) or point JAVA_HOME to it."
        )
