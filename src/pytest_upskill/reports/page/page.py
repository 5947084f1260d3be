"""A page: one HTML file with libraries, the viewer and its data, that loads nothing.

Python writes no markup but this template; `viewer/` draws everything from the data.
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
from ..._util.texts import harmless
from ...registry import page_scripts
from ...results.case_changes import Earlier
from ...results.history import KeptRow
from ...results.run import RunResults
from ..numbers import Number
from .comparing import trend_values
from .payload import RunPayload

_MOST: Final = 3_000_000  # characters of the data
_LIBRARIES: Final = ("htm-preact.js", "marked.js", "purify.js", "diff.js")
_VIEWER: Final = (
    *(
        "data.js",
        "state.js",
        "parts.js",
        "overview.js",
        "text.js",
        "transcript.js",
        "case.js",
    ),
    *(
        "cases.js",
        "since.js",
        "studies.js",
        "triggers.js",
        "trend.js",
    ),
)
_STYLES: Final = ("page.css", "tables.css", "case.css", "studies.css")
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
    view: str = "summary",
) -> str:
    """The page of a run, compared with an ``earlier`` one;
    ``view`` is the tab that it opens.
    """
    payload = RunPayload(results, notes, earlier, view)
    data = ""
    for values in payload.shorter_and_shorter():
        data = packed(values)
        if len(data) <= _MOST:
            break
    return _page(payload.title, data)


def trend_page(kept_rows: Sequence[KeptRow], metric: Number) -> str:
    """The page of many runs; ``metric`` is drawn first."""
    title = "Skills over time"
    return _page(
        title, packed({"title": title, "trend": trend_values(kept_rows, metric)})
    )


def _page(title: str, data: str) -> str:
    style = "\n".join(_resource(f"viewer/{name}") for name in _STYLES)
    libraries = [
        _SOURCE_MAP.sub("", _resource(f"vendor/{name}")) for name in _LIBRARIES
    ]
    core = [_resource(f"viewer/{name}") for name in _VIEWER]
    viewer = "\n".join([*core, *page_scripts(), _resource("viewer/app.js")])
    scripts = [f"<script>{library}</script>" for library in libraries]
    return _TEMPLATE.format(
        policy=escape("; ".join(_policy([*libraries, viewer], style))),
        title=escape(harmless(title)),
        icon=_ICON,
        style=style,
        data=data,
        scripts="\n".join([*scripts, f'<script type="module">{viewer}</script>']),
    )


def _policy(scripts: Sequence[str], style: str) -> list[str]:
    """Only these scripts run, and nothing is loaded; only DOMPurify may parse
    markup.
    """
    return [
        "default-src 'none'",
        f"script-src {' '.join(map(_hash, scripts))}",
        f"style-src {_hash(style)}",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types dompurify",
    ]


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
