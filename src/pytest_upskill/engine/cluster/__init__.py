"""Trials of agents on a Dask cluster.

The controller submits trials that have no stored answer, within the budget. Workers
ask the models themselves, with keys of their own. Dask decides where a trial runs,
and starts it again elsewhere if its worker is lost.
"""

from .cluster import Cluster
from .messages import brief_of

__all__ = ["Cluster", "brief_of"]
