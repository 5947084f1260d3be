"""The protocols that agents speak with their models: one file each."""

from .chat import Chat
from .messages import Messages
from .protocol import Asked, Item, Protocol, Reading, Said
from .responses import Responses

MESSAGES = Messages()
CHAT = Chat()
RESPONSES = Responses()

__all__ = ["CHAT", "MESSAGES", "RESPONSES", "Asked", "Item", "Protocol", "Reading", "Said"]
