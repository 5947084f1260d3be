"""Each feature can be removed: its folder, and its name in the registry. One with a
plugin of pytest can be switched off.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pytest_upskill
from pytest_upskill.cli.command_table import BY_NAME
from pytest_upskill.registry import FEATURES, features
from support.kit import write_script, write_skill

PACKAGE = Path(pytest_upskill.__file__).parent
RUN = """
import sys
import pytest
status = pytest.main(sys.argv[1:])
from pytest_upskill.cli.command_table import BY_NAME
print("\\n", int(status), *BY_NAME)
"""


def package_without(feature: str, folder: Path) -> None:
    package = folder / PACKAGE.name
    shutil.copytree(PACKAGE, package)
    shutil.rmtree(package / "features" / feature)
    assert len([*(package / "features").glob("*/__init__.py")]) == len(FEATURES) - 1
    registry = package / "registry.py"
    text = registry.read_text(encoding="utf-8")
    registry.write_text(
        re.sub(rf'"{feature}",? ?', "", text, count=1), encoding="utf-8"
    )


@pytest.mark.parametrize("feature", FEATURES)
def test_a_skill_is_tested_without_any_one_feature(
    feature: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package_without(feature, tmp_path / "installed")
    write_skill(tmp_path / "skills/gate")
    words = ["--skill", "skills", "--model", write_script(tmp_path / "model.json")]
    reports = ["--skill-json", "out.json", "--skill-html", "out.html"]
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "installed"))
    run = subprocess.run(
        [sys.executable, "-c", RUN, *words, *reports, "--skill-markdown", os.devnull],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    status, *commands = run.stdout.splitlines()[-1].split()
    assert status == "0", run.stdout
    removed = {command.name for command in features()[feature].commands}
    assert commands == [name for name in BY_NAME if name not in removed]
    assert "0 → 100 %" in run.stdout
    if feature != "reports":
        results = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
        assert [row["lift"] for row in results["summary"]] == [1.0]


# What shows that a feature was there.
FILES = {
    "reports": "out.json",
    "recording": "answers.jsonl",
    "history": ".upskill/runs/*.json.gz",
}


@pytest.mark.parametrize(
    "name", [name for name, feature in features().items() if feature.plugin]
)
def test_a_skill_is_tested_with_a_feature_switched_off(
    name: str, pytester: pytest.Pytester
) -> None:
    write_skill(pytester.path / "skills/gate")
    words = ["--skill", "skills", "--model", write_script(pytester.path / "model.json")]
    reports = ["--skill-json", "out.json", "--junitxml", "junit.xml"]
    record = ["--skill-record", "answers.jsonl"]
    off = ["-p", f"no:upskill-{name}"]
    run = pytester.runpytest_inprocess(*words, *reports, *record, *off)
    run.assert_outcomes(passed=1)
    assert run.ret == 0
    written = {key for key, file in FILES.items() if [*pytester.path.glob(file)]}
    assert written == FILES.keys() - {name}
    has_properties = "upskill_lift" in Path("junit.xml").read_text(encoding="utf-8")
    assert has_properties == (name != "junit")
