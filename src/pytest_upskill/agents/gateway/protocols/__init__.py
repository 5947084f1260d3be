"""The protocols that agents speak with their models: one file each."""

from collections.abc import Mapping
from typing import Final

from ....models.port import ProtocolName
from .chat import Chat
from .gemini import Gemini
from .messages import Messages
from .protocol import Asked, Item, Protocol, Reading, Said, Target
from .responses import Responses

MESSAGES = Messages()
CHAT = Chat()
RESPONSES = Responses()
GEMINI = Gemini()
PROTOCOLS: Final[Mapping[ProtocolName, Protocol]] = {
    "messages": MESSAGES,
    "chat": CHAT,
    "responses": RESPONSES,
    "gemini": GEMINI,
}

__all__ = ["PROTOCOLS", "Asked", "Item", "Protocol", "Reading", "Said", "Target"]
