"""A page: one HTML file with libraries, the viewer and its data, that loads nothing.

Python writes no markup but this template; `viewer/` draws everything from the results.
"""

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any, Final

from ..._util.keys import without_keys
from ..._util.texts import counted, harmless
from ...results.case_changes import Earlier
from ...results.run import RunResults
from .payload import run_values

_LIBRARIES: Final = ("htm-preact.js", "marked.js", "purify.js", "diff.js")
# One module: what a file defines, the later ones may use.
_VIEWER: Final = (
    "data.js",
    "state.js",
    "parts.js",
    "text.js",
    "overview.js",
    "transcript.js",
    "case.js",
    "cases.js",
    "changes.js",
    "app.js",
)
_STYLES: Final = ("page.css", "tables.css", "case.css")
_SOURCE_MAP: Final = re.compile(r"^//# sourceMappingURL=.*$", re.MULTILINE)
# Three bars of growing height.
_ICON: Final = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16"
    " 16'%3E%3Cpath fill='%230969da' d='M1 10h4v5H1zM6 6h4v9H6zM11"
    " 1h4v14h-4z'/%3E%3C/svg%3E"
)
_TEMPLATE: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<link rel="icon" href="{icon}">
<style>{style}</style>
</head>
<body>
<div id="app"><noscript>This page needs JavaScript, which is part of it: \
nothing is loaded.\
</noscript></div>
<script type="text/plain" id="data">{data}</script>
{scripts}
</body>
</html>
"""


def run_page(
    results: RunResults,
    notes: Sequence[str] = (),
    earlier: Earlier | None = None,
    *,
    view: str = "",
) -> str:
    """The page of a run, compared with an ``earlier`` one.

    It opens at its changes if ``view`` is ``changes``.
    """
    names = [skill.name for skill in results.skills]
    title = names[0] if len(names) == 1 else counted(len(names), "skill")
    values = run_values(results, notes, earlier)
    return write_page(f"{title} · skill report", {**values, "view": view})


def write_page(title: str, values: Mapping[str, Any]) -> str:
    style = "\n".join(_resource(f"viewer/{name}") for name in _STYLES)
    viewer = "\n".join(_resource(f"viewer/{name}") for name in _VIEWER)
    libraries = [
        _SOURCE_MAP.sub("", _resource(f"vendor/{name}")) for name in _LIBRARIES
    ]

    # Only these scripts run, nothing is loaded, and only DOMPurify parses markup.
    hashes = " ".join(_hash(script) for script in [*libraries, viewer])
    policy = (
        f"default-src 'none'; script-src {hashes}; style-src {_hash(style)};"
        " img-src data:; base-uri 'none'; form-action 'none';"
        " require-trusted-types-for 'script'; trusted-types dompurify"
    )

    scripts = [f"<script>{library}</script>" for library in libraries]
    scripts.append(f'<script type="module">{viewer}</script>')
    return _TEMPLATE.format(
        policy=escape(policy),
        title=escape(harmless(title)),
        icon=_ICON,
        style=style,
        data=packed(values),
        scripts="\n".join(scripts),
    )


def packed(values: Mapping[str, Any]) -> str:
    """Compressed JSON as base64, which can't close the element around it."""
    plain = json.dumps(values, ensure_ascii=False, separators=(",", ":"))
    # A lone surrogate becomes \udXXX, which JSON reads back unchanged.
    data = zlib.compress(without_keys(plain).encode("utf-8", "backslashreplace"))
    return base64.b64encode(data).decode("ascii")


@cache
def _resource(name: str) -> str:
    return (files(__package__) / name).read_text("utf-8")


def _hash(inlined: str) -> str:
    digest = hashlib.sha256(inlined.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
