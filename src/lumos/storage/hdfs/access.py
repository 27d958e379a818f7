"""How a Hadoop file system is reached."""

import os
from collections.abc import Mapping
from typing import Final, Self
from urllib.parse import urlsplit

import msgspec

from lumos.config.secret import MASK
from lumos.config.sources import HdfsSourceSettings
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
    def of(cls, source: HdfsSourceSettings) -> Self:
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
        return self.nameservice or (_host(self.urls[0]) if self.urls else "")

    def is_of(self, authority: str) -> bool:
        """Whether paths of an authority lie in the file system that the access is for."""
        return authority in ("", self.authority)

    def bases(self, authority: str) -> tuple[str, ...]:
        """The addresses below which paths of an authority lie."""
        if self.urls and self.is_of(authority):
            return tuple(_base(url) for url in self.urls)
        return (f"http://{_host(f'//{authority}')}:{_PORT}{_REST}",)


def _host(url: str) -> str:
    """The host of an address, in brackets where it is a number of IPv6."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return ""
    return f"[{host}]" if ":" in host else host


def _base(url: str) -> str:
    url = url.rstrip("/")
    # Gateways have a path of their own before it.
    return url if url.endswith(_REST) else f"{url}{_REST}"
