"""Last step of the action: post the comment, or replace the one of an earlier run.

Never fails the job: if GitHub refuses, the log and the summary say so.
"""

import json
import os
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

MARKER = "<!-- pytest-upskill -->"
LIMIT = 65_536  # characters of a comment
TIMEOUT = 30.0
PAGES = 30  # of 100 comments
CUT = (
    "\n\nThe rest does not fit into a comment: see the page and the summary of the"
    " job.\n"
)
QUERY = """
query($owner: String!, $name: String!, $number: Int!, $after: String) {
  repository(owner: $owner, name: $name) {
    pullRequest(number: $number) {
      comments(first: 100, after: $after) {
        pageInfo { hasNextPage endCursor }
        nodes { databaseId body viewerDidAuthor }
      }
    }
  }
}
"""


class Refused(Exception):
    """GitHub did not do it."""


def main() -> None:
    env = os.environ
    if env["PLAN_NO_SECRETS"]:
        tell(f"No comment: {env['PLAN_NO_SECRETS'].lower()}, and may not write one.")
        return
    try:
        body = comment(Path(env["PLAN_FOLDER"]) / "comment.md")
        first = body.partition("\n")[0]
        number = int(env["PLAN_NUMBER"])
        issues = f"{env['GITHUB_API_URL']}/repos/{env['GITHUB_REPOSITORY']}/issues"
        own = find_own(first, number)
        if own is None:
            ask("POST", f"{issues}/{number}/comments", {"body": body})
        else:
            ask("PATCH", f"{issues}/comments/{own}", {"body": body})
    except (Refused, OSError, ValueError) as error:
        hint = ""
        if "403" in str(error) or "404" in str(error) or "FORBIDDEN" in str(error):
            hint = (
                " Give the job the permission pull-requests: write, or set comment:"
                " false."
            )
        tell(f"No comment on the pull request: {error}.{hint}", warn=True)


def comment(file: Path) -> str:
    """The comment of the run with its own first line,
    and links to page and log at its end.
    """
    env = os.environ
    _, _, text = file.read_text(encoding="utf-8").partition("\n")
    name = env["INPUT_NAME"]
    first = MARKER if name == "skills" else f"<!-- pytest-upskill: {name} -->"
    server, repository = env["GITHUB_SERVER_URL"], env["GITHUB_REPOSITORY"]
    links = [f"[Log]({server}/{repository}/actions/runs/{env['GITHUB_RUN_ID']})"]
    if env["ARTIFACT_URL"]:
        links.insert(0, f"[Page and JSON]({env['ARTIFACT_URL']})")
    end = f"\n{' · '.join(links)}\n"
    return (
        f"{first}\n{fitting(text.rstrip(), LIMIT - len(first) - len(end) - 2)}\n{end}"
    )


def fitting(text: str, limit: int) -> str:
    """The text, cut before a heading or a folded case if it is too long."""
    if len(text) <= limit:
        return text
    room = text[: limit - len(CUT)]
    end = max(room.rfind(mark) for mark in ("\n<details>", "\n### "))
    return (room[:end] if end > 0 else room).rstrip() + CUT


def find_own(first: str, number: int) -> int | None:
    """The id of the comment that this token wrote, with this first line.

    That of somebody else with the same line is not replaced:
    its author could edit it afterwards.
    """
    owner, _, name = os.environ["GITHUB_REPOSITORY"].partition("/")
    after: str | None = None
    for _ in range(PAGES):
        variables = {"owner": owner, "name": name, "number": number, "after": after}
        asked = {"query": QUERY, "variables": variables}
        answer = ask("POST", os.environ["GITHUB_GRAPHQL_URL"], asked)
        if errors := answer.get("errors"):
            raise Refused(
                "; ".join(f"{one.get('type', '')} {one['message']}" for one in errors)
            )
        comments = answer["data"]["repository"]["pullRequest"]["comments"]
        for one in comments["nodes"]:
            if (
                one["viewerDidAuthor"]
                and one["body"].partition("\n")[0].strip() == first
            ):
                return int(one["databaseId"])
        if not comments["pageInfo"]["hasNextPage"]:
            return None
        after = comments["pageInfo"]["endCursor"]
    return None


def ask(method: str, url: str, body: dict[str, Any]) -> dict[str, Any]:
    headers = {
        "Accept": "application/vnd.github+json",
        "Authorization": f"Bearer {os.environ['GITHUB_TOKEN']}",
        "Content-Type": "application/json",
        "User-Agent": "pytest-upskill",
    }
    request = urllib.request.Request(
        url, json.dumps(body).encode(), headers, method=method
    )
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
            answer: dict[str, Any] = json.load(response)
            return answer
    except urllib.error.HTTPError as error:
        raise Refused(f"{error.code} {message_of(error.read(2000))}") from None


def message_of(body: bytes) -> str:
    try:
        return str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        return "without a message"


def tell(text: str, *, warn: bool = False) -> None:
    """In the log and in the summary of the job."""
    line = " ".join(text.split())
    print(
        f"::{'warning' if warn else 'notice'}"
        f" title=pytest-upskill::{line.replace('%', '%25')}"
    )
    with Path(os.environ["GITHUB_STEP_SUMMARY"]).open("a", encoding="utf-8") as file:
        file.write(f"\n> {line.replace('<', '&lt;')}\n")


if __name__ == "__main__":
    main()
