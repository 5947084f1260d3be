"""The parts of a case that say where an agent works, and how the case is solved."""

import re
from pathlib import PurePosixPath
from typing import Annotated, Any, Final, Self

from pydantic import (
    AfterValidator,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
    model_validator,
)

from .._util.json_forms import Strict

MOST_SECONDS: Final = 86_400.0  # that a verifier may take
DEFAULT_WORKDIR: Final = "/workspace"  # of an agent
_VERSION: Final = r"(?:[<>!=~]=|===|[<>])\s*[\w.*+!-]+"
_REQUIREMENT: Final = re.compile(
    r"[A-Za-z0-9][\w.-]*\s*(?:\[[\w.,\s-]+\])?\s*"
    rf"(?:{_VERSION}(?:\s*,\s*{_VERSION})*)?\s*(?:;[^\n]*)?"
)
_LONGEST: Final = 200  # characters of a requirement
_VARIABLE: Final = re.compile(r"[A-Za-z_]\w*")
# No option, no file
_IMAGE: Final = re.compile(r"[A-Za-z0-9](?:[\w.@-]|/(?!/)|:(?!/))*")

Text = Annotated[str, StringConstraints(min_length=1, pattern=r"\S")]


def either(choices: dict[type, str], problem: str) -> Discriminator:
    """Pick a union's form by the type of the value,
    to report one problem instead of several.
    """

    def tag_of(value: Any) -> str | None:
        return next(
            (tag for kind, tag in choices.items() if isinstance(value, kind)), None
        )

    return Discriminator(
        tag_of, custom_error_type="neither", custom_error_message=problem
    )


class FileOfSkill(Strict):
    """A file in the skill's folder."""

    file: Text = Field(
        description="Its path, relative to the skill's folder: 'assets/orders.csv'."
    )


TextOrFile = Annotated[
    Annotated[str, Tag("text")] | Annotated[FileOfSkill, Tag("file")],
    either({str: "text", dict: "file"}, 'must be a string or an object with "file"'),
]


def _requirement(value: str) -> str:
    if len(value) > _LONGEST or not _REQUIREMENT.fullmatch(value):
        raise ValueError(f"{value!r} is not a package like 'pypdf' or 'pypdf==5.*'")
    return value


def _image(value: str) -> str:
    if not _IMAGE.fullmatch(value):
        raise ValueError(f"{value!r} is not an image like 'debian:12'")
    return value


def _absolute(value: str) -> str:
    if not value.startswith("/") or ".." in value.split("/") or "\0" in value:
        raise ValueError(f"{value!r} is not an absolute path")
    return value


def _folder(value: str) -> str:
    path = str(PurePosixPath("/", _absolute(value).lstrip("/")))
    if path == "/":
        raise ValueError("must be a folder below /")
    return path


def _variable(value: str) -> str:
    if not _VARIABLE.fullmatch(value):
        raise ValueError(f"{value!r} is not a name of a variable")
    return value


AbsolutePath = Annotated[str, AfterValidator(_absolute)]
Folder = Annotated[str, AfterValidator(_folder)]
Variables = dict[Annotated[str, AfterValidator(_variable)], str]


class SandboxForm(Strict):
    """What a case, or a skill's scripts, need of the sandbox of an agent."""

    python: list[Annotated[str, AfterValidator(_requirement)]] = Field(
        default_factory=list,
        description="Python packages, like 'pypdf==5.*'; a run has to allow code.",
    )
    paths: list[AbsolutePath] = Field(
        default_factory=list,
        description=(
            "Files or folders of this machine that can be read, like '/opt/tool'; for "
            "those outside of /opt and /usr, a run has to allow code."
        ),
    )
    network: bool = Field(
        default=False,
        description="Whether the network is needed; a run has to allow it.",
    )
    workdir: Folder | None = Field(
        None,
        description=(
            "Where the workspace is, such as '/app' (default: what the Dockerfile"
            f" says, else {DEFAULT_WORKDIR})."
        ),
    )
    places: list[Folder] = Field(
        default_factory=list,
        description=(
            "Other folders that an agent may write to and that are kept, like"
            " '/output'."
        ),
    )
    env: Variables = Field(
        default_factory=dict,
        description="Environment variables of the agent's commands.",
    )
    image: Annotated[Text, AfterValidator(_image)] | None = Field(
        None,
        description=(
            "The image of a container to run in, such as 'debian:12'; a run has to"
            " allow code."
        ),
    )
    dockerfile: Text | None = Field(
        None,
        description=(
            "A Dockerfile in the skill's folder, such as 'environment/Dockerfile', that"
            " the image is built from; a run has to allow code."
        ),
    )
    build_timeout: float | None = Field(
        None,
        gt=0,
        allow_inf_nan=False,
        description="Seconds that a build may take (default: 600).",
    )
    memory_mb: int | None = Field(
        None,
        gt=0,
        description="The most memory, in MB; for more than 4096, a run has to allow"
        " code.",
    )
    storage_mb: int | None = Field(
        None,
        gt=0,
        description="The most disk space, in MB; for more than 1024, a run has to allow"
        " code.",
    )
    cpus: float | None = Field(
        None,
        gt=0,
        allow_inf_nan=False,
        description="How many processors it may use, in docker or podman.",
    )


class ReferenceForm(Strict):
    """A solution of a case: a text and files, or a script that makes them."""

    text: str | None = Field(None, description="The text that the agent ends with.")
    files: dict[str, TextOrFile] | None = Field(
        None,
        min_length=1,
        description=(
            'Files in the workspace: path → text, or path → {"file": "path in the '
            "skill's folder\"}."
        ),
    )
    run: Text | None = Field(
        None,
        description=(
            "A script below a folder of the skill, such as 'solution/solve.sh'. That "
            "folder is put to /solution, and the script is run in the workspace."
        ),
    )
    env: Variables = Field(
        default_factory=dict, description="Environment variables of the script."
    )

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        given = [name for name in ("text", "files") if getattr(self, name) is not None]
        if self.run and given:
            raise ValueError(f"run can't be combined with {given[0]}; keep one of them")
        if not self.run and not given:
            raise ValueError('needs "text", "files" or "run"')
        return self


WrittenReference = Annotated[
    Annotated[Text, Tag("text")] | Annotated[ReferenceForm, Tag("form")],
    either({str: "text", dict: "form"}, "must be a string or an object"),
]
