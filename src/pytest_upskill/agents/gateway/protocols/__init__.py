"""The protocols that agents speak with their models: one file each."""

from collections.abc import Mapping
from typing import Final

from ....models.port import ProtocolName
from .chat import Chat
from .messages import Messages
from .protocol import Asked, Item, Protocol, Reading, Said
from .responses import Responses

MESSAGES = Messages()
CHAT = Chat()
RESPONSES = Responses()
PROTOCOLS: Final[Mapping[ProtocolName, Protocol]] = {
    "messages": MESSAGES,
    "chat": CHAT,
    "responses": RESPONSES,
}

__all__ = ["MESSAGES", "PROTOCOLS", "Asked", "Item", "Protocol", "Reading", "Said"]
