"""pytest-upskill completion: the scripts are run by the shells that they are for."""

import shutil
import subprocess
from pathlib import Path

import pytest

from pytest_upskill.cli import main
from pytest_upskill.cli.command_table import BY_NAME
from pytest_upskill.models.providers import ALIASES

ASK_BASH = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}
function=$(complete -p pytest-upskill | sed 's/.*-F \\([^ ]*\\) .*/\\1/')
"$function" pytest-upskill "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""
ASK_FISH = "source $argv[1]; complete -C (string join ' ' -- $argv[2..])"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "skills").mkdir()
    (tmp_path / "skills.json").touch()
    return tmp_path


def completed(
    shell: str, folder: Path, capsys: pytest.CaptureFixture[str], *words: str
) -> set[str]:
    """What the shell offers for the last of these words."""
    if not shutil.which(shell):
        pytest.skip(f"there is no {shell}")
    assert main(["completion", shell]) == 0
    script = folder / f".script.{shell}"
    script.write_text(capsys.readouterr().out)
    ask = ["--norc", "-c", ASK_BASH, "ask"] if shell == "bash" else ["--no-config", "-c", ASK_FISH]
    done = subprocess.run(
        [shell, *ask, str(script), "pytest-upskill", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    # fish describes each word after a tab, and ends folders with a slash.
    return {line.partition("\t")[0].rstrip("/") for line in done.stdout.splitlines() if line}


@pytest.mark.parametrize("shell", ["bash", "fish"])
@pytest.mark.parametrize(
    ("words", "offered", "not_offered"),
    [
        ([""], set(BY_NAME), {"skills"}),
        (["li"], {"list", "lint"}, {"eval"}),
        (["eval", "sk"], {"skills"}, {"skills.json"}),
        (["list", "sk"], {"skills"}, {"skills.json"}),
        (["eval", "skills", "-t", "sk"], {"skills", "skills.json"}, set()),
        (["lint", "sk"], {"skills", "skills.json"}, set()),
        (["eval", "skills", "-m", ""], {*ALIASES, "local"}, {"skills", "eval"}),
        (["eval", "skills", "-m", "haiku", "--model", "o"], {"opus"}, {"haiku"}),
        (["judge", "skills.json", "--model", "so"], {"sonnet"}, {"haiku"}),
        (["eval", "skills", "--no"], {"--no-baseline", "--no-log-runs"}, {"--provider"}),
        (["completion", ""], {"bash", "zsh", "fish"}, {"skills"}),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_tab_offers_matching_words(
    shell: str,
    words: list[str],
    offered: set[str],
    not_offered: set[str],
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = completed(shell, folder, capsys, *words)
    assert offered <= found
    assert not not_offered & found


def test_zsh_can_read_its_script(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if not shutil.which("zsh"):
        pytest.skip("there is no zsh")
    assert main(["completion", "zsh"]) == 0
    script = capsys.readouterr().out
    assert script.startswith("#compdef pytest-upskill\n")
    (folder / "_pytest-upskill").write_text(script)
    done = subprocess.run(
        ["zsh", "-f", "-n", "_pytest-upskill"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "(haiku sonnet opus local anthropic\\:" in script  # a bare colon would end the list


def test_an_unknown_shell_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["completion", "cmd.exe"])
    assert caught.value.code == 2
    assert "'cmd.exe'" in capsys.readouterr().err
