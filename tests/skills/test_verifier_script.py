"""What verifiers would download, found by reading their scripts."""

import pytest

from pytest_upskill.skills.verifier_script import (
    VerifierDownloads,
    WheelSet,
    downloads_of,
)

UVX = """#!/bin/bash
# uvx -w commented
apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install -y curl expect=1.0
curl -LsSf https://astral.sh/uv/0.9.5/install.sh | sh
source $HOME/.local/bin/env
if uvx \\
  -p 3.13 \\
  -w tally==1.0 \\
  --with 'chart>=2,<3' \\
  pytest -p no:cacheprovider -w /tests/test_outputs.py > /dev/null 2>&1
then echo 1 > /logs/verifier/reward.txt; fi
"""


def read(script: str, **files: str) -> VerifierDownloads:
    names = {name.replace("_", "."): text for name, text in files.items()}
    return downloads_of("test.sh", {"test.sh": script, **names})


def test_a_command_of_uvx_is_a_set_of_its_own() -> None:
    downloads = read(UVX)
    assert downloads.wheels == (
        WheelSet(("chart>=2,<3", "pytest", "tally==1.0"), "3.13"),
    )
    assert downloads.packages == ("curl", "expect")
    assert downloads.pythons == ("3.13",)
    assert downloads.others == ()


@pytest.mark.parametrize(
    ("script", "requirements"),
    [
        (
            "pip3 install --break-system-packages -q a==1 b 2>/dev/null || true",
            [("a==1", "b")],
        ),
        ("python3 -m pip install --no-cache-dir \\\n a==1 \\\n b", [("a==1", "b")]),
        ("pip install a || pip install b", [("a",), ("b",)]),
        ("VERSION=2.1\npip install a==$VERSION", [("a==2.1",)]),
        ("uv tool run --from 'a[x]' tool", [("a[x]",)]),
        ("uvx a@1.2 --flag", [("a==1.2",)]),
        ("uvx --with a python - <<'PY'\npip install wrong\nPY\n", [("a",)]),
        ("timeout 60 uv pip install -r /tests/needs.txt", [("a==1", "b")]),
        ("uv run --with a --with-requirements needs.txt pytest", [("a", "a==1", "b")]),
        ("cd /tests && bash more.sh", [("c",)]),
        ("pip list; echo pip install a; npm run build", []),
    ],
)
def test_requirements_of_each_command(
    script: str, requirements: list[tuple[str, ...]]
) -> None:
    files = {"needs_txt": "# ours\na==1\nb # why\n-e .\n", "more_sh": "pip install c"}
    assert [
        wheels.requirements for wheels in read(script, **files).wheels
    ] == requirements


def test_a_project_of_uv_is_locked_as_a_whole() -> None:
    script = "uv init --python 3.12\nuv add a==1\nuv add b\nHOME=/x uv run pytest\n"
    assert read(script).wheels == (WheelSet(("a==1", "b"), "3.12", locked=True),)


@pytest.mark.parametrize(
    ("command", "needs_network"),
    [
        ("git clone https://example.org/x y", True),
        ("curl -L -o w.pt https://example.org/w.pt", True),
        ("npm install --silent", True),
        ("python3 -m playwright install chromium", True),
        ("pip install -r missing.txt", True),
        ("until curl -s http://localhost:3000; do sleep 1; done", False),
        ("git status; npm start &", False),
    ],
)
def test_what_can_not_be_prepared(command: str, needs_network: bool) -> None:
    assert bool(read(command).others) == needs_network


def test_a_script_that_is_no_shell_or_calls_itself_downloads_nothing() -> None:
    assert read("'unbalanced\n((\n\0\n. ./test.sh\nbash $0\n") == VerifierDownloads()


def test_variables_that_double_do_not_fill_the_memory() -> None:
    assert (
        read("A=oil\n" + "A=$A$A\n" * 60 + "pip install wax $A").wheels[0].requirements
    )
