"""Converts raw records of files to the form of servers, so that both can be compared."""

from importlib.util import find_spec
from typing import Any

import msgspec

from lumos.catalogs.datahub.aspects import CHANGE_PREFIX, AspectWrite, Entity, InvalidAspect, aspects_after
from lumos.catalogs.datahub.codec import Codec
from lumos.catalogs.datahub.dataset import DatasetCodec
from lumos.catalogs.datahub.items import canonical_key, codec_of, entity_of_item
from lumos.catalogs.datahub.lineage import upstream_urns
from lumos.catalogs.datahub.names import Naming
from lumos.catalogs.datahub.server_model import DataHubModel
from lumos.catalogs.interface import item_key
from lumos.model.catalog import CatalogEntry


def as_server_returns(value: Any) -> Any:
    """An entry or item as a server returns it that DataHub itself loaded; None if all have it.

    Its raw record has no defaults, no audit stamps of writes, no time series and nothing that the
    fields already say.
    """
    if find_spec("datahub") is None:
        return value
    naming, model = Naming(), DataHubModel()
    in_file, on_server = (_codec(value, naming, server) for server in (None, model))
    if in_file is None or on_server is None:
        return value
    key = value.urn if isinstance(value, CatalogEntry) else canonical_key(value)
    native: Entity = in_file.entity(key)
    if not model.can_store(native):
        return None
    try:
        aspects = aspects_after(in_file.render(value).writes)
    except InvalidAspect:
        # DataHub did not write this record.
        return value
    lasting = {name: body for name, body in aspects.items() if not model.is_time_series(name)}
    normal = model.normalize(native, lasting)
    writes = [AspectWrite(aspect=name, body=body) for name, body in normal.items()]
    return msgspec.structs.replace(value, raw=on_server.read(key, writes).raw)


def _codec(value: Any, naming: Naming, server: DataHubModel | None) -> Codec[Any] | None:
    if isinstance(value, CatalogEntry):
        for urn in (value.urn, *upstream_urns(value)):
            naming.reserve(urn)
        return DatasetCodec(naming, server)
    native = entity_of_item(type(value), item_key(value))
    is_entity = native is not None and not native.urn.startswith(CHANGE_PREFIX)
    return None if not is_entity else codec_of(type(value), native, naming, server)
