"""Metering: what jobs used, as Spark, dbt and tables of usage tell."""

from lumos.cost.meters.recognition import Meter, MeterReading, found_meters, read_meter
from lumos.cost.meters.unfolding import UnreadableMeter

__all__ = ["Meter", "MeterReading", "UnreadableMeter", "found_meters", "read_meter"]
