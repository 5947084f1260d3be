"""Test a skill with the built wheel in a clean environment,
as a user would (``make wheel``).
"""

import importlib.metadata
import importlib.util
import subprocess
import sys
import tempfile
from pathlib import Path

from support.kit import write_script, write_skill

ROOT = Path(__file__).parents[1]


def main() -> None:
    tools = Path(sys.executable).parent
    package = importlib.util.find_spec("pytest_upskill")
    assert package is not None
    assert package.origin is not None
    assert "site-packages" in package.origin, package.origin
    assert Path(package.origin).with_name("py.typed").is_file()
    assert Path(package.origin).with_name("skill_meta.schema.json").is_file()
    assert Path(package.origin).with_name("skills").joinpath("noise.toml").is_file()
    assert importlib.util.find_spec("xllamacpp") is None, (
        "the plain install must stay small"
    )
    with tempfile.TemporaryDirectory() as folder:
        write_skill(Path(folder, "skills/gate"))
        model = write_script(Path(folder, "answers.json"))
        page = ("--skill-html", "page.html")
        shown = run(
            folder, tools / "pytest", "--skill", "skills", "--model", model, *page
        )
        assert "1 passed" in shown, shown
        assert "+100" in shown, shown
        assert "<style>" in Path(folder, "page.html").read_text(encoding="utf-8")
        shown = run(
            folder, tools / "pytest", "--skill", "skills", "--model", model, "-n", "2"
        )
        assert "1 passed" in shown, shown
        shown = run(folder, tools / "pytest-upskill", "eval", "gate", "-m", model)
        assert "1 passed in" in shown, shown  # without a warning
        assert "1 skill," in run(folder, tools / "pytest-upskill", "list", "skills")
    # In the project's own folder, where pytest also loads the
    # conftest files of its tests.
    demo = run(
        str(ROOT),
        tools / "pytest",
        "--skill",
        "skills",
        "--model",
        "haiku",
        "--co",
        "-q",
    )
    assert "upskill: a run would make" in demo, demo
    version = importlib.metadata.version("pytest-upskill")
    assert run(".", tools / "pytest-upskill", "--version").strip().endswith(version)
    print(f"the wheel of pytest-upskill {version} works")  # noqa: T201


def run(folder: str, *command: str | Path) -> str:
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


if __name__ == "__main__":
    main()
