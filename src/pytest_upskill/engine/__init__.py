"""The engine of a run, and the link that xdist workers reach it by."""

from .engine import Engine
from .link import LinkClient, LinkServer

__all__ = ["Engine", "LinkClient", "LinkServer"]
