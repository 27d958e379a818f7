"""Airflow servers, whose DAGs are read as jobs."""

from typing import Annotated

from msgspec import Meta

from lumos.config.secret import Secret
from lumos.config.section import Address, Location, Seconds, Section, alternative_names
from lumos.config.sources import Names, User
from lumos.errors import MisuseError


class AirflowSettings(Section, frozen=True, kw_only=True):
    """An Airflow 3 server; without patterns in `dags`, all DAGs visible to the user are read.

    `instance` distinguishes several servers in URNs. Without a token, Lumos requests one with
    `user` and `password`.
    """

    url: Annotated[Address, alternative_names(also=("server", "address"))]
    instance: str = ""
    token: Secret | None = None
    user: User = None
    password: Secret | None = None
    dags: Names = ()
    exclude: Names = ()
    # The number of latest runs of each DAG to read.
    runs: Annotated[int, Meta(ge=0, le=200, description="a number of runs from 0 to 200")] = 25
    ca_file: Location | None = None
    timeout: Seconds = 30

    def __post_init__(self) -> None:
        if (self.user is None) != (self.password is None):
            raise MisuseError("An Airflow server needs both 'user' and 'password', or a 'token'.")

    @property
    def base_url(self) -> str:
        """The URL without a slash at its end."""
        return self.url.rstrip("/")
