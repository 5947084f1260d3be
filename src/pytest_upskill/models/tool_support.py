"""Servers and models that take no tools say so in many words; what to do about it."""

import re
from typing import Final

_TOOLS: Final = (
    r"(?:\btools?\b(?![.\[]\d)|\btool[ _-]?(?:use|usage|call\w*|choice)"
    r"|\bfunction[ _-]?(?:call\w*|tools?))"
)
_NOT: Final = (
    r"(?:\bnot (?:\w+ )?(?:support\w*|enabled|available|allowed|permitted|implemented)|n't support"
    r"|\bunsupported|\bunrecognized|\bno support|\black(?:s|ing)?\b|\b(?:is|are) disabled"
    r"|\bno endpoints found that support|\bextra (?:inputs|fields))"
)
# In one sentence, in either order: "X does not support tools", "tool use is not supported".
_REFUSED: Final = re.compile(
    rf"{_NOT}[^.]{{0,80}}?{_TOOLS}|{_TOOLS}[^.]{{0,80}}?{_NOT}"
    r"|\b(?:can't|cannot|not able to|unable to) (?:use|call|handle) tools"
    r"|\b(?:unexpected|invalid|unknown) (?:parameter|field|name|argument|property)"
    r":? ?['\"`]?tools\b(?![.\[]\d)",
    re.IGNORECASE,
)
_STATUSES: Final = (400, 404, 405, 422, 500, 501)
_ANOTHER: Final = "An agent needs a model that calls tools: use another one"


def hint_without_tools(status: int, said: str) -> str:
    """What to do, if an error says that tools are not taken; else empty."""
    if status not in _STATUSES:
        return ""
    if "--jinja" in said:
        return "Start llama-server with --jinja"
    if "--enable-auto-tool-choice" in said or "--tool-call-parser" in said:
        return "Start vLLM with --enable-auto-tool-choice and --tool-call-parser"
    return _ANOTHER if _REFUSED.search(said) else ""
