"""Starts Spark's Python workers with everything a scan needs already imported.

Workers are forks of the daemon: what it imports once, none of them has to.
"""

import pyspark.daemon
import pyspark.worker

import lumos.pipeline.work  # noqa: F401

if __name__ == "__main__":
    pyspark.daemon.manager()
