"""Static sites: the web page and the data of a store, as files for any web server."""

from lumos.site.writer import SiteReport, write_site

__all__ = ["SiteReport", "write_site"]
