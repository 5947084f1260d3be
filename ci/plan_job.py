"""First step of the action: what this job may do, and where its files are.

Reads the inputs (INPUT_...) and the event, and writes outputs:

no-secrets    why the pull request has none, so that answers are replayed; else empty
replayed      whether it is so, "true" or "false"
number        of the pull request; else empty
folder        for page, JSON and comment
stores        folders that pytest may keep answers in, one per line
key           of the cache; restore-keys are older ones, the most alike first
"""

import hashlib
import json
import os
import re
import shlex
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Only who may write to the repository chooses their code.
PUSHED = {"push", "create", "release", "schedule", "merge_group", "deployment"}
PUSHED |= {"workflow_dispatch", "repository_dispatch"}
# GitHub gives them no secrets if the code is a fork's.
PULLS = {"pull_request", "pull_request_review", "pull_request_review_comment"}
DEPENDABOT = "dependabot[bot]"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._ -]{0,59}")


def main() -> None:
    env = os.environ
    event = json.loads(Path(env["GITHUB_EVENT_PATH"]).read_text(encoding="utf-8"))
    if not is_trusted(env["GITHUB_EVENT_NAME"], event, env):
        what = f"{env['GITHUB_EVENT_NAME']} would run code of forks with your secrets."
        fail(f"{what} Use pull_request, push, schedule or workflow_dispatch.")
    name, top = env["INPUT_NAME"], Path(env["GITHUB_WORKSPACE"]).resolve()
    if not NAME.fullmatch(name):
        fail(
            f"name: {name!r} has characters other than letters, digits, spaces and"
            " . _ -"
        )
    where = (top / env["INPUT_FOLDER"]).resolve()
    if not where.is_dir() or not where.is_relative_to(top):
        fail(f"working-directory: no folder {env['INPUT_FOLDER']!r} in the workspace")
    try:
        shlex.split(env["INPUT_ARGS"])
    except ValueError as error:
        fail(f"args: {error} in {env['INPUT_ARGS']!r}")
    pull = event.get("pull_request") or {}
    why = no_secrets(pull, env) if pull else ""
    # pytest's rootdir, which has the answers, may be any folder above.
    inside = [one for one in (where, *where.parents) if one.is_relative_to(top)]
    write_outputs(
        {
            "no-secrets": why,
            "replayed": "true" if why else "false",
            "number": str(pull.get("number", "")),
            "folder": str(Path(env["RUNNER_TEMP"]) / "pytest-upskill" / name),
            "stores": "\n".join(str(one / ".upskill") for one in inside),
            **cache_keys(env),
        }
    )


def is_trusted(name: str, event: Mapping[str, Any], env: Mapping[str, str]) -> bool:
    """Whether nobody else's code runs with secrets.

    Others, such as pull_request_target and issue_comment, have them,
    and check out what they like.
    """
    if name != "workflow_run":
        return name in PUSHED or (name in PULLS and bool(event.get("pull_request")))
    run = event.get("workflow_run") or {}  # the code is that of the run before
    head, actor = run.get("head_repository") or {}, run.get("actor") or {}
    known = run.get("event") in PUSHED | PULLS and actor.get("login") != DEPENDABOT
    return known and head.get("full_name") == env["GITHUB_REPOSITORY"]


def no_secrets(pull: Mapping[str, Any], env: Mapping[str, str]) -> str:
    """Why GitHub gives this pull request no secrets; empty if it does."""
    head = (pull.get("head") or {}).get("repo") or {}  # none if the fork was deleted
    if head.get("full_name") != env["GITHUB_REPOSITORY"]:
        return "This pull request comes from a fork"
    return (
        "This pull request is Dependabot's" if env["GITHUB_ACTOR"] == DEPENDABOT else ""
    )


def cache_keys(env: Mapping[str, str]) -> dict[str, str]:
    """A new key for each run: a cache can't be overwritten."""
    inputs = [env[f"INPUT_{name}"] for name in ("SKILLS", "MODELS", "ARGS", "FOLDER")]
    digest = hashlib.sha256("\0".join(inputs).encode()).hexdigest()[:12]
    prefix = f"pytest-upskill-{env['RUNNER_OS']}-"
    older = [
        f"{prefix}{env['INPUT_NAME']}-{digest}-",
        f"{prefix}{env['INPUT_NAME']}-",
        prefix,
    ]
    run = f"{env['GITHUB_JOB']}-{env['GITHUB_RUN_ID']}-{env['GITHUB_RUN_ATTEMPT']}"
    return {"key": older[0] + run, "restore-keys": "\n".join(older)}


def write_outputs(outputs: Mapping[str, str]) -> None:
    with Path(os.environ["GITHUB_OUTPUT"]).open("a", encoding="utf-8") as file:
        for name, value in outputs.items():
            end = uuid.uuid4().hex  # nothing that an input could hold
            file.write(f"{name}<<{end}\n{value}\n{end}\n")


def fail(problem: str) -> None:
    line = " ".join(problem.split()).replace("%", "%25")
    print(f"::error title=pytest-upskill::{line}")
    sys.exit(1)


if __name__ == "__main__":
    main()
