"""Trials of agents on a Dask cluster.

The controller hands out trials: those without a stored answer, as long as there is money. Workers
ask the models themselves, with keys of their own; Dask's semaphore limits the calls of all of them.
Dask decides where a trial runs, and starts it again elsewhere if its worker is lost.
"""

from .cluster import Cluster
from .exchange import brief_of
from .trials import ClusterTrials

__all__ = ["Cluster", "ClusterTrials", "brief_of"]
