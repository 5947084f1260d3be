"""The step of the action that runs pytest: it ends with pytest's exit status.

That is 1 if pytest calls itself passed without results,
as with --collect-only or --help.

Leaves page, JSON and comment in PLAN_FOLDER, and a summary of the job that says what
happened also where pytest could not begin. Without secrets it replays recorded
answers, or says why it can't.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

MARKER = "<!-- pytest-upskill -->"
MEANINGS = {
    2: "a broken file, or interrupted",
    3: "an internal error",
    4: "a usage error",
}
MEANINGS[5] = "no tests"
MEANINGS[0] = (
    "but no case was tested (--collect-only and the like, in args or addopts, test"
    " nothing)"
)
RUNS = 3  # unless args or the ini file say otherwise
INI = re.compile(r"^\s*skill_runs\s*=", re.MULTILINE)
INI_FILES = (
    *("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini"),
    *("pyproject.toml", "tox.ini", "setup.cfg"),
)
PAGE, RESULTS = "report.html", "results.json"
LAST_LINES = 20
LONGEST = 4000


def main() -> int:
    env = os.environ
    reports, where = (
        Path(env["PLAN_FOLDER"]),
        Path(env["GITHUB_WORKSPACE"]) / env["INPUT_FOLDER"],
    )
    reports.mkdir(parents=True, exist_ok=True)
    comment, summary = reports / "comment.md", Path(env["GITHUB_STEP_SUMMARY"])
    why = env["PLAN_NO_SECRETS"]
    if why:
        add(summary, replay_note(why, env["INPUT_REPLAY"]))
    if why and not (where / env["INPUT_REPLAY"]).is_file():
        status = 1
        comment.write_text(no_recording(why, env["INPUT_REPLAY"]), encoding="utf-8")
    else:
        status = run(command(env, reports, where), where, comment)
    if not mentions_skills(summary):
        add(summary, comment.read_text(encoding="utf-8"))
    with Path(env["GITHUB_OUTPUT"]).open("a", encoding="utf-8") as file:
        file.write(f"status={status}\n")
    return status


def command(env: Mapping[str, str], reports: Path, where: Path) -> list[str]:
    """Options of the inputs come last, so that what ``args`` has
    can't misplace the reports.
    """
    words = [sys.executable, "-P", "-m", "pytest"]
    # A recording may have fewer
    if not env["PLAN_NO_SECRETS"] and not sets_runs(where):
        words.append(f"--skill-runs={RUNS}")
    words += shlex.split(env["INPUT_ARGS"])
    words += [
        f"--skill={line.strip()}"
        for line in env["INPUT_SKILLS"].splitlines()
        if line.strip()
    ]
    words += [f"--model={name}" for name in env["INPUT_MODELS"].split()]
    if cost := env["INPUT_MAX_COST"].strip():
        words.append(f"--skill-max-cost={cost}")
    for option, name in (("html", PAGE), ("json", RESULTS)):
        words.append(f"--skill-{option}={reports / name}")
    words.append(f"--skill-markdown={reports / 'comment.md'}")
    if env["PLAN_NO_SECRETS"]:
        words.append(f"--skill-replay={env['INPUT_REPLAY']}")
    return words


def sets_runs(where: Path) -> bool:
    """Whether an ini file of this folder or one above has the number of runs."""
    files = (folder / name for folder in (where, *where.parents) for name in INI_FILES)
    return any(
        INI.search(file.read_text(encoding="utf-8", errors="replace"))
        for file in files
        if file.is_file()
    )


def run(words: list[str], where: Path, comment: Path) -> int:
    """Run pytest; it passed if its comment says so, too.
    Mend a comment that says otherwise.
    """
    print(f"[command]{shlex.join(['pytest', *words[4:]])}", flush=True)
    for name in (comment.name, PAGE, RESULTS):  # of an earlier step
        comment.with_name(name).unlink(missing_ok=True)
    done = subprocess.run(words, cwd=where, stderr=subprocess.PIPE, check=False)
    said = done.stderr.decode("utf-8", "replace")
    print(said, end="", file=sys.stderr, flush=True)
    status = done.returncode
    ended = f"pytest exited with {status}" + (
        f", {MEANINGS[status]}" if status in MEANINGS else ""
    )
    text = comment.read_text(encoding="utf-8") if comment.is_file() else ""
    title, _, rest = text.partition("\n\n")
    # A skill may help though tests fail, which the first lines below the title say.
    bad_titles = (f"{MARKER}\n## ❌", f"{MARKER}\n## ⚠️")
    says_failed = title.startswith(bad_titles) or " failed" in rest.partition("\n\n")[0]
    if not title:
        text = f"{MARKER}\n## ❌ No results: {ended}\n"
        comment.write_text(text + fenced(said), encoding="utf-8")
    elif status and not says_failed:
        text = f"{MARKER}\n## ❌ {ended}\n\n**Failed:** the log says why.\n\n{rest}"
        comment.write_text(text, encoding="utf-8")
    if status == 0 and (not title or title.startswith(f"{MARKER}\n## ❌")):
        print(f"::error title=pytest-upskill::{ended}", flush=True)
        return 1
    return status if status >= 0 else 128 - status  # ended by a signal


def replay_note(why: str, file: str) -> str:
    return (
        f"> {why}, so it has no secrets and asks no model. Recorded answers"
        f" (`{plain(file)}`) are replayed instead: what was edited and not recorded"
        " again is an error.\n"
    )


def no_recording(why: str, file: str) -> str:
    return (
        f"{MARKER}\n## ❌ Nothing was tested\n\n{why}, so it has no secrets, and there"
        f" is no file `{plain(file)}` with answers to replay.\n\nA maintainer can test"
        " it from a branch of this repository, or record answers for such pull"
        f" requests with `pytest --skill-record {plain(file)}`, and commit that file.\n"
    )


def plain(text: str) -> str:
    """A path as it can stand between backquotes."""
    return re.sub(r"[`\r\n]", "", text)


def fenced(said: str) -> str:
    """The end of what pytest said."""
    lines = re.sub(r"\x1b\[[\d;]*m", "", said).strip().splitlines()
    text = "\n".join(lines[-LAST_LINES:])[-LONGEST:]
    fence = "`" * (max((len(run) for run in re.findall("`+", text)), default=2) + 1)
    fence = max(fence, "```", key=len)
    return f"\n{fence}text\n{text}\n{fence}\n" if text else ""


def mentions_skills(summary: Path) -> bool:
    """Whether the plugin wrote its own."""
    return summary.is_file() and MARKER in summary.read_text(
        encoding="utf-8", errors="replace"
    )


def add(summary: Path, text: str) -> None:
    with summary.open("a", encoding="utf-8") as file:
        file.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main())
