"""How a Hadoop file system is reached."""

import os
from collections.abc import Mapping
from typing import Final, Self
from urllib.parse import urlsplit

import msgspec

from lumos.config.secret import MASK
from lumos.config.sources import HdfsSource
from lumos.storage.hdfs.site import Site
from lumos.storage.interface import Access

_PORT: Final = 9870
_REST: Final = "/webhdfs/v1"


class HdfsAccess(Access, frozen=True, kw_only=True):
    """The addresses of WebHDFS, any of which may be the active one, and who asks.

    Without addresses, that of a path is taken: the name node's usual port for WebHDFS. Whoever
    uses Kerberos does so once and goes on with a token, which executors are given too.
    """

    urls: tuple[str, ...] = ()
    nameservice: str = ""
    user: str = ""
    token: str = ""
    kerberos: bool = False

    @classmethod
    def of(cls, source: HdfsSource) -> Self:
        """The access that a section of the configuration describes."""
        return cls(
            urls=source.urls,
            nameservice=source.nameservice or "",
            user=source.user or "",
            token=source.token.reveal() if source.token else "",
            kerberos=source.kerberos,
        )

    def __repr__(self) -> str:
        facts = (
            f"{name}={MASK if name == 'token' else getattr(self, name)!r}"
            for name in self.__struct_fields__
            if getattr(self, name)
        )
        return f"{type(self).__name__}({', '.join(facts)})"

    def settled(self, environment: Mapping[str, str] = os.environ) -> "HdfsAccess":
        """The same, with what the environment and Hadoop's own configuration say filled in."""
        is_known = self.user or self.token or self.kerberos
        user = self.user if is_known else environment.get("HADOOP_USER_NAME", "")
        if self.urls:
            return msgspec.structs.replace(self, user=user)
        site = Site.of(environment)
        name = self.nameservice or site.authority
        return msgspec.structs.replace(self, user=user, nameservice=name, urls=site.urls(name))

    @property
    def authority(self) -> str:
        """What stands between scheme and path in addresses of this file system."""
        return self.nameservice or (urlsplit(self.urls[0]).hostname or "" if self.urls else "")

    def bases(self, authority: str) -> tuple[str, ...]:
        """The addresses below which paths of an authority lie."""
        if self.urls and authority in ("", self.authority):
            return tuple(_base(url) for url in self.urls)
        host = authority.partition(":")[0]
        return (f"http://{host}:{_PORT}{_REST}",)


def _base(url: str) -> str:
    url = url.rstrip("/")
    # Gateways have a path of their own before it.
    return url if url.endswith(_REST) else f"{url}{_REST}"
