"""Pieces of SVG whose places are shares of the width, so that text keeps its size on a phone."""

from collections.abc import Sequence

from .shell import text


def circle(x: float, y: float, kind: str, radius: float = 6) -> str:
    return f'<circle class="{kind}" cx="{x:.2f}%" cy="{y:.1f}" r="{radius:g}"/>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    ends = f'x1="{x1:.2f}%" y1="{y1:.1f}" x2="{x2:.2f}%" y2="{y2:.1f}"'
    return f'<line class="{kind}" {ends}/>'


def diamond(x: float, y: float, kind: str) -> str:
    """A path knows no shares, but what it is inside of does."""
    path = f'<path class="{kind}" d="M0-6 6 0 0 6-6 0z"/>'
    return f'<svg x="{x:.2f}%" y="{y:.1f}" overflow="visible">{path}</svg>'


def words(
    x: float, y: float, shown: str, kind: str, anchor: str = "start", shift: float = 0
) -> str:
    """Text at a share of the width, moved by some pixels."""
    place = f'x="{x:.2f}%" y="{y:.1f}" dx="{shift:g}" text-anchor="{anchor}"'
    return f'<text class="{kind}" {place}>{text(shown)}</text>'


def drawing(kind: str, height: float, title: str, told: str, parts: Sequence[str]) -> str:
    """A picture with a name and, for who can't see it, a description."""
    return (
        f'<svg class="plot {kind}" role="img" width="100%" height="{height:g}" overflow="visible">'
        f"<title>{text(title)}</title><desc>{text(told)}</desc>{''.join(parts)}</svg>"
    )
