"""Settings of Lumos: lumos.yaml, environment variables and options, checked and frozen."""

from lumos.config.load import find_file, load
from lumos.config.secret import ConnectionString, Secret
from lumos.config.settings import Settings
from lumos.config.starter import STARTER, write_starter
from lumos.config.tree import ConfigurationError, Problem
from lumos.config.variables import unused_variables

__all__ = [
    "STARTER",
    "ConfigurationError",
    "ConnectionString",
    "Problem",
    "Secret",
    "Settings",
    "find_file",
    "load",
    "unused_variables",
    "write_starter",
]
