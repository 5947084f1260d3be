"""Names of files that something loads without being asked to."""

import pytest

from pytest_upskill._util.loaded_names import is_loaded_by_name

LOADED = """
conftest.py Conftest.PY conftest.pyc conftest.py. test_a.py testing.py tests.py
a_test.py a_tests.py test_a.txt tests.rst pytest.ini tox.ini anything.ini setup.cfg
pyvenv.cfg PyProject.toml pytest.toml tox.toml setup.py setup.sh sitecustomize.py
usercustomize.py noxfile.py toxfile.py __init__.py __main__.py a.pth a.pyc a.pyd a.so
a.egg-link a.dist-info a.egg-info entry_points.txt SKILL.md
skill.md skill_meta.json skill_results.json upskill.config.yaml
"""
ORDINARY = """
check.py run.sh notes.md latest.py contest.py attest.txt data.toml settings.json
protest.md test.md test_data.json template.py requirements.txt
"""


@pytest.mark.parametrize("name", LOADED.split())
def test_a_name_that_is_loaded(name: str) -> None:
    assert is_loaded_by_name(name)


@pytest.mark.parametrize("name", ORDINARY.split())
def test_an_ordinary_name(name: str) -> None:
    assert not is_loaded_by_name(name)
