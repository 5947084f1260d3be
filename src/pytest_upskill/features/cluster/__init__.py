"""Trials of agents on a Dask cluster.

The controller submits trials that have no stored answer, within the budget. Workers
ask the models themselves, with keys of their own. Dask decides where a trial runs,
and starts it again elsewhere if its worker is lost.
"""

from typing import Final

from ...registry import Feature

FEATURE: Final = Feature(trials="cluster:Cluster")
