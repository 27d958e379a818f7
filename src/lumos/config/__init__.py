"""Settings of Lumos: lumos.yaml, environment variables and options, validated and frozen."""

from lumos.config.load import find_file, load, unused_variables
from lumos.config.secret import ConnectionString, Secret
from lumos.config.settings import Settings
from lumos.config.starter import STARTER, write_starter
from lumos.config.yaml_tree import ConfigProblem, ConfigurationError

__all__ = [
    "STARTER",
    "ConfigProblem",
    "ConfigurationError",
    "ConnectionString",
    "Secret",
    "Settings",
    "find_file",
    "load",
    "unused_variables",
    "write_starter",
]
