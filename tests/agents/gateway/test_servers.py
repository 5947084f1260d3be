"""What a server says that does not know the path of an agent's protocol."""

import pytest

from pytest_upskill.agents.gateway.forwarding import why_no_path
from pytest_upskill.models import ModelSpec
from pytest_upskill.models.providers import PROVIDERS
from support.endpoints import spec_of

GENERIC = ModelSpec("mine", PROVIDERS["generic"], "mine-7b", "http://127.0.0.1:9/v1")


@pytest.mark.parametrize("status", [404, 405, 501])
@pytest.mark.parametrize(("path", "version"), [("/messages", "0.14.0"), ("/responses", "0.13.3")])
def test_an_old_server_is_told_with_versions_that_do(status: int, path: str, version: str) -> None:
    told = why_no_path(status, path, '{"detail":"Not Found"}', GENERIC)
    assert f"(/v1{path})" in told
    assert f"Ollama {version}" in told


def test_any_other_refusal_means_what_it_says() -> None:
    theirs = ModelSpec("x", PROVIDERS["openai"], "x", "https://api.openai.com/v1")
    assert not why_no_path(404, "/messages", "model 'mine-7b' not found", GENERIC)
    assert not why_no_path(404, "/chat/completions", "Not Found", GENERIC)
    assert not why_no_path(500, "/messages", "Not Found", GENERIC)
    assert not why_no_path(404, "/responses", "Not Found", theirs)
    assert why_no_path(404, "/responses", "Not Found", spec_of("openai", "http://127.0.0.1:9"))
