"""The programs that stand in for those by which verifiers download."""

import os
import subprocess
from pathlib import Path

import pytest

from pytest_upskill.agents import verifier_folder

PATH = "/usr/bin:/bin"
UV = b"""#!/bin/sh
echo "${0##*/}|$(IFS="|"; echo "$*")"
case $* in *fails*) exit 2; esac
"""


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with them, beside a uv that says how it is called."""
    script = Path(verifier_folder.__file__).with_name("stand_ins.sh").read_bytes()
    for folder, names in (("bin", verifier_folder.STAND_INS), ("uv", ("uv", "uvx"))):
        (tmp_path / folder).mkdir()
        for name in names:
            file = tmp_path / folder / name
            file.write_bytes(script if folder == "bin" else UV)
            file.chmod(0o755)
    return tmp_path / "bin"


def call(programs: Path, *words: str, **env: str) -> tuple[int, str, list[str]]:
    """The exit status, the output and what was noted as missing."""
    notes = programs.parent / "notes"
    home = {"HOME": str(programs.parent / "home"), "UPSKILL_BIN": str(programs)}
    variables = {
        "PATH": f"{programs}:{PATH}",
        "UPSKILL_UNMET": str(notes),
        **home,
        **env,
    }
    ran = subprocess.run(
        [str(programs / words[0]), *words[1:]],
        capture_output=True,
        text=True,
        env=variables,
        cwd=programs.parent,
        check=False,
    )
    noted = notes.read_text().splitlines() if notes.exists() else []
    return ran.returncode, ran.stdout.strip(), noted


@pytest.mark.parametrize(
    ("words", "called"),
    [
        ("uvx -p 3.13 -w a pytest -p x", "uvx|-w|a|pytest|-p|x"),
        ("uvx --python 3.13.1 -w a b", "uvx|-w|a|b"),
        ("uv init --python=3.13", "uv|init"),
        ("uvx -p 3.12 -w a b", "uvx|-p|3.12|-w|a|b"),
        ("uv python install 3.13", ""),
    ],
)
def test_a_python_that_is_not_there(programs: Path, words: str, called: str) -> None:
    status, output, _ = call(programs, *words.split(), UPSKILL_WITHOUT="3.10 3.13")
    assert (status, output) == (0, called)


def test_words_stay_as_they_are(programs: Path) -> None:
    words = ("uvx", "--with", "a>=1, <2", "pytest", "-k", "it's $HOME", "")
    assert call(programs, *words)[1] == "uvx|--with|a>=1, <2|pytest|-k|it's $HOME|"


def test_pip_installs_for_the_user(programs: Path) -> None:
    home = programs.parent / "home"
    python = subprocess.check_output(
        ["sh", "-c", "command -v python3"],
        text=True,
        env={"PATH": f"{programs}:{PATH}"},
    ).strip()
    words = ("install", "--break-system-packages", "--user", "-q", "a==1")
    for name in ("pip", "pip3"):
        status, output, noted = call(programs, name, *words)
        called = f"uv|pip|install|--python|{python}|--prefix|{home}/.local|-q|a==1"
        assert (status, output, noted) == (0, called, [])
    assert (
        call(programs, "pip", "install", "a", VIRTUAL_ENV="/v")[1] == "uv|pip|install|a"
    )
    status, _, noted = call(programs, "pip", "install", "fails")
    assert (status, noted) == (2, ["pip install fails"])


@pytest.mark.parametrize(
    ("words", "status", "noted"),
    [
        ("apt-get update -qq", 0, []),
        ("apt-get install -y --no-install-recommends curl ca-certificates sh", 0, []),
        ("apt install -y given=1.0", 0, []),
        ("apt-get install -y given no-such", 100, ["the system's package no-such"]),
    ],
)
def test_system_packages(
    programs: Path, words: str, status: int, noted: list[str]
) -> None:
    result = call(programs, *words.split(), UPSKILL_PACKAGES="given other")
    assert (result[0], result[2]) == (status, noted)


@pytest.mark.parametrize(
    "words",
    [
        "curl -LsSf https://astral.sh/uv/0.9.5/install.sh",
        "curl -LsSf -o install.sh https://astral.sh/uv/install.sh",
        "curl -LsSfo install.sh https://astral.sh/uv/install.sh",
        "wget -qO- https://astral.sh/uv/install.sh",
        "wget https://astral.sh/uv/install.sh",
    ],
)
def test_the_installer_of_uv(programs: Path, words: str) -> None:
    _, script, noted = call(programs, *words.split())
    file = programs.parent / "install.sh"
    script = script or file.read_text()
    home, bins = programs.parent / "home", f"{programs}:{PATH}"
    env = {"PATH": bins, "HOME": str(home), "UPSKILL_BIN": str(programs)}
    subprocess.run(
        ["sh"], input=script, text=True, check=True, env=env, capture_output=True
    )
    shell = '. "$HOME/.local/bin/env"; echo "$PATH"; "$HOME/.local/bin/uv" add x'
    output = subprocess.check_output(["sh", "-c", shell], text=True, env=env)
    assert output.split() == [f"{bins}:{home}/.local/bin", "uv|add|x"]
    assert noted == []


def test_other_downloads_are_noted_unless_the_real_program_is_there(
    programs: Path,
) -> None:
    url = "https://example.org/model.bin"
    status, _, noted = call(
        programs, "curl", "-L", "-o", "m", url, PATH=f"{programs}:/nowhere"
    )
    assert (status, noted) == (6, [f"curl {url}"])
    real = programs.parent / "real"
    real.mkdir()
    (real / "curl").write_text('#!/bin/sh\necho "real $*"\n')
    (real / "curl").chmod(0o755)
    path = f"{programs}:{real}:{os.defpath}"
    assert (
        call(programs, "curl", "-s", "http://localhost:1", PATH=path)[1]
        == "real -s http://localhost:1"
    )
