"""Make the pictures of the README and of docs/ (`make pictures`).
Needs Chromium for the page.
"""

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from support.terminal import run_on_terminal
from terminal_svg import terminal_svg

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]
PRICES: Final = {"small": "0.10 0.40", "medium": "1.00 5.00", "large": "5.00 25.00"}
ALL: Final = "--model small --model medium --model large"
COMMANDS: Final = {
    "run": (
        80,
        "pytest --skill skills/wick --model medium --model large --skill-runs 3",
    ),
    "summary-120": (120, f"pytest --skill skills/wick {ALL} --skill-runs 3 --tb=no"),
    "failure-120": (
        120,
        "pytest --skill skills/wick --model small --skill-runs 3 -v -k undo-command",
    ),
}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        _make_project(project)
        for name, (columns, command) in COMMANDS.items():
            written = f"$ {command}\r\n" + _run(project, command, columns)
            text = terminal_svg(written, columns, f"Output of {command}")
            (HERE / f"{name}.svg").write_text(text, encoding="utf-8")
        # With what the models reach today accepted, the run of the page passes.
        _run(project, f"{COMMANDS['summary-120'][1]} --skill-accept", 120)
        _run(project, f"{COMMANDS['summary-120'][1]} --skill-html report.html", 120)
        for name, (wide, high) in {
            "page": (1440, 900),
            "page-phone": (390, 844),
        }.items():
            _photograph(project / "report.html", HERE / f"{name}.png", wide, high)


def _make_project(project: Path) -> None:
    """Write a project with the skill wick and three models."""
    shutil.copytree(ROOT / "skills/wick", project / "skills/wick")
    shutil.copy(HERE / "demo_models.py", project / "conftest.py")
    prices = [f"{name} {price}" for name, price in PRICES.items()]
    lines = [
        "[pytest]",
        "addopts = --no-header",
        "skill_max_cost = 1",
        "skill_prices =",
        *(f"    {line}" for line in prices),
    ]
    (project / "pytest.ini").write_text("\n".join(lines), encoding="utf-8")


def _run(project: Path, command: str, columns: int) -> str:
    kept = {
        name: os.environ[name]
        for name in os.environ.keys() - {"CI", "NO_COLOR", "COLUMNS"}
    }
    path = f"{Path(sys.executable).parent}:{kept['PATH']}"
    environ = {**kept, "PATH": path, "TERM": "xterm-256color"}
    return run_on_terminal(shlex.split(command), project, environ, 24, columns)


def _photograph(page: Path, file: Path, wide: int, high: int) -> None:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if not browser:
        sys.exit("Chromium not found: the pictures of the HTML page were not made")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    flags += ["--force-device-scale-factor=1", f"--window-size={wide},{high}"]
    command = [browser, *flags, f"--screenshot={file}", page.as_uri()]
    subprocess.run(command, check=True, capture_output=True)


if __name__ == "__main__":
    main()
