"""Access to a Hadoop file system, from the configuration of Lumos or of Hadoop."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import ClassVar, Final, NamedTuple, Self
from urllib.parse import urlsplit
from xml.etree import ElementTree

from msgspec.structs import replace

from lumos.config.sources import HdfsSourceSettings
from lumos.storage.interface import StorageAccess

_FILES: Final = ("core-site.xml", "hdfs-site.xml")
_PORTS: Final = {"http": 9870, "https": 9871}


class HadoopSite(NamedTuple):
    """The properties of `core-site.xml` and `hdfs-site.xml`."""

    properties: Mapping[str, str]

    @classmethod
    def of(cls, environment: Mapping[str, str] = os.environ) -> "HadoopSite":
        """The properties in HADOOP_CONF_DIR or HADOOP_HOME; empty if neither is set."""
        folder = environment.get("HADOOP_CONF_DIR")
        home = environment.get("HADOOP_HOME")
        if not folder and home:
            folder = str(Path(home, "etc", "hadoop"))
        properties: dict[str, str] = {}
        for name in _FILES if folder else ():
            # Ignore an unreadable file; without a URL, the source reports that one is needed.
            with suppress(OSError, ElementTree.ParseError):
                root = ElementTree.parse(Path(folder or "", name)).getroot()
                properties |= {
                    item.findtext("name", "").strip(): item.findtext("value", "").strip()
                    for item in root.iter("property")
                }
        return cls(properties)

    @property
    def authority(self) -> str:
        """The authority of the default file system."""
        default = urlsplit(self.properties.get("fs.defaultFS", ""))
        return (default.hostname or "") if default.scheme == "hdfs" else ""

    def urls(self, authority: str) -> tuple[str, ...]:
        """The WebHDFS URLs of all name nodes of a nameservice, or of a single name node."""
        scheme = "https" if self._get("dfs.http.policy").upper() == "HTTPS_ONLY" else "http"
        key = f"dfs.namenode.{scheme}-address"
        nodes = self._get(f"dfs.ha.namenodes.{authority}").split(",")
        keys = [f"{key}.{authority}.{node.strip()}" for node in nodes if node.strip()]
        addresses = [self._get(name) for name in keys or [f"{key}.{authority}"]]
        if not any(addresses) and authority == self.authority:
            addresses = [self._get(key)]
        return tuple(_url(scheme, address, authority) for address in addresses if address)

    def _get(self, name: str) -> str:
        return self.properties.get(name, "")


def _url(scheme: str, address: str, authority: str) -> str:
    host, _, port = address.partition(":")
    # If the server listens on all interfaces, use the host of the paths.
    host = authority if host in ("", "0.0.0.0") else host
    return f"{scheme}://{host}:{port or _PORTS[scheme]}"


_WEBHDFS_PATH: Final = "/webhdfs/v1"


class HdfsAccess(StorageAccess, frozen=True, kw_only=True):
    """The URLs of WebHDFS, one for each name node, and the user.

    Without URLs, the host of a path is used with the default port of WebHDFS. Kerberos is only used
    to get a delegation token, which is also sent to executors.
    """

    secret_fields: ClassVar[tuple[str, ...]] = ("token",)

    urls: tuple[str, ...] = ()
    nameservice: str = ""
    user: str = ""
    token: str = ""
    kerberos: bool = False

    @classmethod
    def of(cls, source: HdfsSourceSettings) -> Self:
        """The access for a section of the configuration."""
        return cls(
            urls=source.urls,
            nameservice=source.nameservice or "",
            user=source.user or "",
            token=source.token.reveal() if source.token else "",
            kerberos=source.kerberos,
        )

    def resolve(self, environment: Mapping[str, str] = os.environ) -> "HdfsAccess":
        """The access, completed from the environment and the configuration of Hadoop."""
        has_identity = self.user or self.token or self.kerberos
        user = self.user if has_identity else environment.get("HADOOP_USER_NAME", "")
        if self.urls:
            return replace(self, user=user)
        site = HadoopSite.of(environment)
        name = self.nameservice or site.authority
        return replace(self, user=user, nameservice=name, urls=site.urls(name))

    @property
    def authority(self) -> str:
        """The part between scheme and path in URIs of this file system."""
        return self.nameservice or (_host(self.urls[0]) if self.urls else "")

    def contains(self, authority: str) -> bool:
        """Whether paths of an authority are in the file system of this access."""
        return authority in ("", self.authority)

    def bases(self, authority: str) -> tuple[str, ...]:
        """The base URLs for paths of an authority."""
        if self.urls and self.contains(authority):
            return tuple(_base(url) for url in self.urls)
        return (f"http://{_host(f'//{authority}')}:{_PORTS['http']}{_WEBHDFS_PATH}",)


def _host(url: str) -> str:
    """The host of a URL, with IPv6 addresses in brackets."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return ""
    return f"[{host}]" if ":" in host else host


def _base(url: str) -> str:
    url = url.rstrip("/")
    # The URL of a gateway may have a path before this one.
    return url if url.endswith(_WEBHDFS_PATH) else f"{url}{_WEBHDFS_PATH}"
