"""What Hadoop's own configuration says of its file systems."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import urlsplit
from xml.etree import ElementTree

_FILES: Final = ("core-site.xml", "hdfs-site.xml")
_PORTS: Final = {"http": 9870, "https": 9871}


class Site(NamedTuple):
    """The properties of `core-site.xml` and `hdfs-site.xml`."""

    properties: Mapping[str, str]

    @classmethod
    def of(cls, environment: Mapping[str, str] = os.environ) -> "Site":
        """The site in HADOOP_CONF_DIR, or below HADOOP_HOME; an empty one where there is none."""
        folder = environment.get("HADOOP_CONF_DIR")
        home = environment.get("HADOOP_HOME")
        if not folder and home:
            folder = str(Path(home, "etc", "hadoop"))
        properties: dict[str, str] = {}
        for name in _FILES if folder else ():
            # What cannot be read says nothing; the source then asks for an address.
            with suppress(OSError, ElementTree.ParseError):
                root = ElementTree.parse(Path(folder or "", name)).getroot()
                properties |= {
                    each.findtext("name", "").strip(): each.findtext("value", "").strip()
                    for each in root.iter("property")
                }
        return cls(properties)

    @property
    def authority(self) -> str:
        """The file system that is meant where none is named."""
        default = urlsplit(self.properties.get("fs.defaultFS", ""))
        return (default.hostname or "") if default.scheme == "hdfs" else ""

    def urls(self, authority: str) -> tuple[str, ...]:
        """Where WebHDFS of a nameservice or of the only name node is."""
        scheme = "https" if self._get("dfs.http.policy").upper() == "HTTPS_ONLY" else "http"
        key = f"dfs.namenode.{scheme}-address"
        nodes = self._get(f"dfs.ha.namenodes.{authority}").split(",")
        keys = [f"{key}.{authority}.{node.strip()}" for node in nodes if node.strip()]
        found = [self._get(each) for each in (*keys, *([] if keys else [f"{key}.{authority}"]))]
        if not any(found) and authority == self.authority:
            found = [self._get(key)]
        return tuple(_url(scheme, each, authority) for each in found if each)

    def _get(self, name: str) -> str:
        return self.properties.get(name, "")


def _url(scheme: str, address: str, authority: str) -> str:
    host, _, port = address.partition(":")
    # Servers that listen everywhere are asked by the name that paths have.
    host = authority if host in ("", "0.0.0.0") else host
    return f"{scheme}://{host}:{port or _PORTS[scheme]}"
