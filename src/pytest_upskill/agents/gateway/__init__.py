"""The gateway between agents in sandboxes and their models.

Every trial has a door of its own (``server.py``, ``door.py``). What goes through it
(``exchange.py``) is understood by its protocol (``protocols/``) and kept (``record.py``).
"""

from .door import Door
from .server import Gateway

__all__ = ["Door", "Gateway"]
