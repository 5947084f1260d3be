"""The engine of a run, and the link that xdist workers reach it by."""

from .agent_jobs import AgentPlaces
from .engine import Engine
from .link import LinkClient, LinkServer
from .model_calls import ModelFacts

__all__ = ["AgentPlaces", "Engine", "LinkClient", "LinkServer", "ModelFacts"]
