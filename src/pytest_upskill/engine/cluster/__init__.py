"""Trials of agents on a Dask cluster.

The controller hands out trials that have no stored answer, within the budget.
Workers ask the models themselves, with keys of their own; Dask's semaphore limits
the calls of all of them. Dask decides where a trial runs, and starts it again
elsewhere if its worker is lost.
"""

from .brief import brief_of
from .cluster import Cluster, ClusterTrials

__all__ = ["Cluster", "ClusterTrials", "brief_of"]
