"""GitHub Actions in small: runs the steps of a composite action,
and a server for its comments.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import yaml

_EXPRESSION: Final = re.compile(r"\$\{\{\s*(.*?)\s*\}\}", re.S)
_TOKEN: Final = re.compile(
    r"'(?:[^']|'')*'|[A-Za-z_][\w.-]*(?:\(\))?|&&|\|\||==|!=|[!()]|\s+"
)
_OPERATORS: Final = {"&&": " and ", "||": " or ", "!": " not "}
_BASH: Final = ("bash", "--noprofile", "--norc", "-eo", "pipefail")


@dataclass
class Step:
    """What became of a step."""

    outcome: str = "skipped"
    inputs: dict[str, str] = field(default_factory=dict)  # of the action that it uses
    outputs: dict[str, str] = field(default_factory=dict)
    log: str = ""


@dataclass
class Job:
    """A job with one step, the action. Caches and artifacts are folders."""

    action: Path
    workspace: Path
    folder: Path  # of the runner, and of all that it keeps between jobs
    env: Mapping[str, str]
    event: Mapping[str, Any]
    steps: dict[str, Step] = field(default_factory=dict)  # by name
    cancel_after: str = ""  # the name of a step
    cancelled: bool = False

    def run(self, inputs: Mapping[str, str]) -> str:
        """Run all steps as GitHub does; ``success`` or ``failure``."""
        action = yaml.safe_load(self.action.joinpath("action.yml").read_text())
        assert inputs.keys() <= action["inputs"].keys()
        defaults = {name: one["default"] for name, one in action["inputs"].items()}
        given = {**self._filled(defaults, {}), **inputs}
        self.folder.mkdir(parents=True, exist_ok=True)
        self.summary.write_text("")
        ids: dict[str, Step] = {}
        ended = "success"
        for step in action["runs"]["steps"]:
            done = self.steps[step["name"]] = Step()
            ids[step.get("id", step["name"])] = done
            known = {"inputs": given, "steps": ids, "ended": ended}
            if not self._value(self._condition(step.get("if", "success()")), known):
                continue
            if "uses" in step:
                self._use(step["uses"], self._filled(step.get("with", {}), known), done)
            else:
                # Nobody's text becomes a part of a script.
                assert "${{" not in step["run"]
                assert step["shell"] == "bash"
                self._script(
                    step["run"], self._filled(step.get("env", {}), known), done
                )
            if done.outcome == "failure":
                ended = "failure"
            self.cancelled |= step["name"] == self.cancel_after
        return ended

    @property
    def summary(self) -> Path:
        return self.folder / "summary.md"

    @property
    def log(self) -> str:
        return "".join(step.log for step in self.steps.values())

    def cache(self) -> list[Path]:
        return sorted(self.folder.glob("cache/*"))

    def artifact(self, name: str = "skills") -> Path:
        return self.folder / "artifacts" / name

    # Expressions.

    @staticmethod
    def _condition(text: str) -> str:
        """Without a function of the status, a step runs only if all went well so
        far.
        """
        own = ("success()", "failure()", "always()", "cancelled()")
        return text if any(one in text for one in own) else f"success() && ({text})"

    def _filled(
        self, values: Mapping[str, str], known: Mapping[str, Any]
    ) -> dict[str, str]:
        def found(match: re.Match[str]) -> str:
            return str(self._value(match[1], known))

        return {
            name: _EXPRESSION.sub(found, str(text)) for name, text in values.items()
        }

    def _value(self, expression: str, known: Mapping[str, Any]) -> Any:
        python, end = "", 0
        for token in _TOKEN.finditer(expression):
            assert token.start() == end, f"not understood: {expression}"
            end, text = token.end(), token[0]
            if text[0] == "'":
                python += repr(text[1:-1].replace("''", "'"))
            elif text[0].isalpha():
                python += repr(self._looked_up(text, known))
            else:
                python += _OPERATORS.get(text, " " if text.isspace() else text)
        assert end == len(expression), f"not understood: {expression}"
        return eval(python.strip(), {"__builtins__": {}})

    def _looked_up(self, name: str, known: Mapping[str, Any]) -> Any:
        match name.split("."):
            case ["always()"]:
                return True
            case ["cancelled()"]:
                return self.cancelled
            case ["success()"]:
                return known["ended"] == "success" and not self.cancelled
            case ["inputs", one]:
                return known["inputs"][one]
            case ["github", "token"]:
                return "token"
            case ["steps", step, "outcome"]:
                return known["steps"][step].outcome
            case ["steps", step, "outputs", one]:
                return known["steps"][step].outputs.get(one, "")
        raise AssertionError(f"not understood: {name}")

    # Steps.

    def _script(self, script: str, env: Mapping[str, str], done: Step) -> None:
        files = {
            name: self.folder / f"file-{name.lower()}" for name in ("OUTPUT", "ENV")
        }
        for file in files.values():
            file.write_text("")
        event, code = self.folder / "event.json", self.folder / "script.sh"
        event.write_text(json.dumps(self.event))
        code.write_text(script)
        temp = self.folder / "temp"
        temp.mkdir(exist_ok=True)
        own = {
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(self.folder),
            "CI": "true",
            "GITHUB_ACTIONS": "true",
            "GITHUB_ACTION_PATH": str(self.action),
            "GITHUB_WORKSPACE": str(self.workspace),
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "GITHUB_SERVER_URL": "https://github.com",
            "GITHUB_REPOSITORY": "wick/deploy",
            "GITHUB_ACTOR": "ann",
            "GITHUB_JOB": "skills",
            "GITHUB_RUN_ID": "7",
            "GITHUB_RUN_ATTEMPT": "1",
            "RUNNER_OS": "Linux",
            "RUNNER_TEMP": str(temp),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTEST_ADDOPTS": "-p no:hypothesispytest -p no:timeout -p no:anyio",
            **{f"GITHUB_{name}": str(file) for name, file in files.items()},
        }
        ran = subprocess.run(
            [*_BASH, str(code)],
            cwd=self.workspace,
            env={**own, **self.env, **env},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        done.outcome = "failure" if ran.returncode else "success"
        done.log = ran.stdout
        done.outputs = _outputs(files["OUTPUT"].read_text())

    def _use(self, action: str, inputs: dict[str, str], done: Step) -> None:
        done.outcome, done.inputs = "success", inputs
        kept = self.folder / "cache"
        match action.partition("@")[0]:
            case "actions/setup-python":
                pass
            case "actions/cache/save":
                paths = [Path(one) for one in inputs["path"].splitlines()]
                for number, path in enumerate(paths):
                    if path.is_dir():
                        shutil.copytree(path, kept / inputs["key"] / str(number))
            case "actions/cache/restore":
                prefixes = [inputs["key"], *inputs["restore-keys"].splitlines()]
                found = [
                    one
                    for p in prefixes
                    for one in sorted(kept.glob(f"{p}*"), reverse=True)
                ]
                for number, name in enumerate(
                    inputs["path"].splitlines() if found else ()
                ):
                    if (found[0] / str(number)).is_dir():
                        shutil.copytree(
                            found[0] / str(number), name, dirs_exist_ok=True
                        )
            case "actions/upload-artifact":
                if inputs["path"] and Path(inputs["path"]).is_dir():
                    shutil.copytree(
                        inputs["path"],
                        self.artifact(inputs["name"]),
                        dirs_exist_ok=True,
                    )
                done.outputs = {
                    "artifact-url": "https://github.com/wick/deploy/artifacts/3"
                }
            case _:
                raise AssertionError(f"no such action here: {action}")


def _outputs(text: str) -> dict[str, str]:
    """Of GITHUB_OUTPUT: ``name=value``, or several lines up to a mark."""
    found, lines = {}, iter(text.splitlines())
    for line in lines:
        name, equals, value = line.partition("=")
        if not equals or "<<" in name:
            name, _, end = line.partition("<<")
            own = []
            while (one := next(lines)) != end:
                own.append(one)
            value = "\n".join(own)
        found[name] = value
    return found


# The API.

ME: Final = "github-actions[bot]"


class Api:
    """Comments of a pull request; ``refuse`` is the status of all that would write."""

    def __init__(self) -> None:
        self.comments: list[dict[str, Any]] = []
        self.refuse = 0
        self.url = ""

    def add(self, body: str, author: str = ME) -> None:
        self.comments.append(
            {"id": 100 + len(self.comments), "body": body, "author": author}
        )

    def answer(
        self, method: str, path: str, body: dict[str, Any]
    ) -> tuple[int, dict[str, Any]]:
        if path == "/graphql":
            return 200, self._page(body["variables"])
        if self.refuse:
            return self.refuse, {"message": "Resource not accessible by integration"}
        if len(body["body"]) > 65_536:
            return 422, {"message": "Validation Failed: body is too long"}
        if method == "POST" and path == "/repos/wick/deploy/issues/12/comments":
            self.add(body["body"])
            return 201, {}
        assert method == "PATCH"
        number = int(path.removeprefix("/repos/wick/deploy/issues/comments/"))
        (own,) = [one for one in self.comments if one["id"] == number]
        own["body"] = body["body"]
        return 200, {}

    def _page(self, asked: dict[str, Any]) -> dict[str, Any]:
        assert (asked["owner"], asked["name"], asked["number"]) == (
            "wick",
            "deploy",
            12,
        )
        start = int(asked["after"] or 0)
        nodes = [
            {
                "databaseId": one["id"],
                "body": one["body"],
                "viewerDidAuthor": one["author"] == ME,
            }
            for one in self.comments[start : start + 100]
        ]
        more = len(self.comments) > start + 100
        page = {
            "pageInfo": {"hasNextPage": more, "endCursor": str(start + 100)},
            "nodes": nodes,
        }
        return {"data": {"repository": {"pullRequest": {"comments": page}}}}


@contextmanager
def github_api() -> Iterator[Api]:
    api = Api()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            assert self.headers["Authorization"] == "Bearer token"
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, told = api.answer(self.command, self.path, body)
            data = json.dumps(told).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        do_PATCH = do_POST

        def log_message(self, *_: object) -> None:
            """Nothing on the terminal."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        api.url = f"http://127.0.0.1:{server.server_port}"
        yield api
        server.shutdown()
        thread.join()
