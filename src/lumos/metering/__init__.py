"""Metering: what jobs used, as Spark, dbt and tables of usage tell."""

from lumos.metering.recognition import Meter, MeterReading, found_meters, read_meter
from lumos.metering.unfolding import UnreadableMeter

__all__ = ["Meter", "MeterReading", "UnreadableMeter", "found_meters", "read_meter"]
