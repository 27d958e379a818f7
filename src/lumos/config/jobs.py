"""Settings of jobs: transport to workers, retries and concurrency limits."""

from fnmatch import fnmatchcase
from typing import Annotated, Literal

from msgspec import Meta, field

from lumos.config.secret import ConnectionString
from lumos.config.section import Days, Seconds, Section
from lumos.config.subscribers import REDIS_SCHEMES
from lumos.errors import MisuseError

Attempts = Annotated[int, Meta(ge=1, le=100, description="a number of attempts from 1 to 100")]


class JobSettings(Section, frozen=True, kw_only=True):
    """Settings of jobs; `transport` notifies workers of new jobs.

    `limits` are the numbers of jobs that may run at once, by pattern of the concurrency key.
    """

    transport: Literal["store", "redis"] = "store"
    redis_url: ConnectionString | None = None
    stream: Annotated[str, Meta(min_length=1, max_length=200)] = "lumos:jobs"
    # If a worker does not report for this long, its jobs go to other workers.
    lease_seconds: Annotated[int, Meta(ge=5, le=3600, description="seconds from 5 to 3600")] = 60
    poll_seconds: Seconds = 2
    max_attempts: Attempts = 3
    retry_seconds: Seconds = 10
    max_retry_seconds: Seconds = 3600
    time_limit: Seconds | None = None
    retention_days: Days = 30
    limits: dict[str, Annotated[int, Meta(ge=1, description="a number of jobs, at least 1")]] = (
        field(default_factory=dict)
    )

    def __post_init__(self) -> None:
        if self.transport == "redis" and self.redis_url is None:
            raise MisuseError("The transport redis requires 'redis_url'.")
        if self.redis_url and not self.redis_url.reveal().startswith(REDIS_SCHEMES):
            raise MisuseError("'redis_url' is not a Redis URL. Expected: redis://host:6379/0")

    def limit_of(self, key: str) -> int:
        """The number of jobs with a concurrency key that may run at once: 1 without a pattern."""
        matching = (limit for pattern, limit in self.limits.items() if fnmatchcase(key, pattern))
        return next(matching, 1)
