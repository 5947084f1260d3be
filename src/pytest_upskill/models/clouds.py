"""Models in clouds: Claude on Amazon Bedrock and Google's Vertex AI,
and OpenAI's on Azure.

The packages for logging in there (boto3, google-auth) are extras, imported only when
needed.
"""

import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import ClassVar, Final
from urllib.parse import urlsplit

from .._util.launcher import install_command
from .._util.texts import one_line
from ..errors import Text
from .cloud_logins import (
    AZURE_V1,
    aws_credentials,
    aws_region,
    azure_version,
    google_login,
    vertex_project,
    vertex_region,
)
from .hosted import ChatProvider, Hosted, MessagesProvider
from .model import Download, Model, ModelName, ModelSpec, first_set
from .prices import Price, listed_price

# Bedrock's ids; those of inference profiles begin with where they run.
_CLAUDE: Final = re.compile(r"([a-z-]+\.)?anthropic\.claude|arn:aws[a-z-]*:bedrock:")
_AWS_PAIR: Final = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")


@dataclass(frozen=True)
class Cloud(Hosted):
    """A provider whose server and login depend on settings of a cloud."""

    # Variables that must be set
    settings: tuple[str, ...] = field(default=(), kw_only=True)
    login: ClassVar[str]  # what a login needs, in words

    def require(
        self, spec: ModelSpec, env: Mapping[str, str], download: Download
    ) -> None:
        """Report everything that is missing in one error."""
        super().require(spec, env, download)
        if missing := [*self._missing(spec, env)]:
            problems, fixes = zip(*missing, strict=True)
            raise spec.no_key(
                ", and ".join(problems), f"{'. '.join(fixes)}, or name another model."
            )

    @abstractmethod
    def _missing(
        self, spec: ModelSpec, env: Mapping[str, str]
    ) -> Iterator[tuple[str, str]]:
        """Each missing thing, with its fix."""


class BedrockProvider(Cloud, MessagesProvider):
    """Claude on Amazon Bedrock."""

    login = "AWS credentials"

    def resolve(
        self, model: ModelName, model_id: str, env: Mapping[str, str]
    ) -> ModelSpec:
        if not _CLAUDE.match(model_id):
            raise model.error(
                "only Claude is asked on Bedrock",
                f"Its ids have anthropic.claude in them: {self.example}",
            )
        return super().resolve(model, model_id, env)

    def set_in(self, env: Mapping[str, str]) -> tuple[str, str]:
        variable, url = super().set_in(env)
        if url:
            return variable, url
        variable, region = aws_region(env)
        return variable, region and f"https://bedrock-runtime.{region}.amazonaws.com"

    def _missing(
        self,
        spec: ModelSpec,  # noqa: ARG002
        env: Mapping[str, str],
    ) -> Iterator[tuple[str, str]]:
        if not aws_region(env)[1]:
            yield (
                _unset(self.settings),
                f"Set {self.settings[0]}, for example to us-east-1",
            )
        if self.key_in(env):
            return
        if not _has_package("boto3"):
            yield _no_package("boto3"), f"{_install(self)}, or set {self.key_envs[0]}"
        elif not _all_set(_AWS_PAIR, env) and (problem := _aws_problem()):
            pair = " and ".join(_AWS_PAIR)
            yield problem, f"Set {self.key_envs[0]}, or {pair}, or AWS_PROFILE"

    def login_in(self, env: Mapping[str, str]) -> Mapping[str, str]:
        if self.key_in(env) or not _all_set(_AWS_PAIR, env):
            return super().login_in(env)
        names = (*_AWS_PAIR, "AWS_SESSION_TOKEN")
        return {name: value for name in names if (value := env.get(name, "").strip())}

    def place_in(self, env: Mapping[str, str]) -> Mapping[str, str]:
        region = aws_region(env)[1]
        return {self.settings[0]: region} if region else {}

    def price(self, spec: ModelSpec) -> Price | None:
        """An ARN of a profile may end with the id of its model."""
        return listed_price(self.price_list, spec.model_id.rpartition("/")[2])

    def refusal_hint(self, status: int, message: str) -> Text:
        if status == 400 and "on-demand throughput" in message:
            return (
                "Put where it may run before the model's id: us., eu., apac. or global."
            )
        if status == 400 and "model identifier is invalid" in message:
            return "Check the model's id, and whether AWS_REGION has it"
        if status == 403 and "model" in message.lower():
            return "Check the access to the model in this account and region"
        if status in (401, 403):
            return (
                f"Check {self.key_envs[0]}, or AWS_ACCESS_KEY_ID and the like, and"
                " AWS_REGION"
            )
        return ""

    async def open(self, spec: ModelSpec, timeout: float) -> Model:
        from .cloud_models import BedrockModel

        return await BedrockModel.open(spec, timeout)


class VertexProvider(Cloud, MessagesProvider):
    """Claude on Google's Vertex AI."""

    login = "Google credentials"

    def set_in(self, env: Mapping[str, str]) -> tuple[str, str]:
        variable, url = super().set_in(env)
        if url:
            return variable, url
        variable, region = vertex_region(env)
        return variable, region and f"https://{_vertex_host(region)}.googleapis.com/v1"

    def place_in(self, env: Mapping[str, str]) -> Mapping[str, str]:
        values = (vertex_region(env)[1], vertex_project(env))
        return {
            name: value
            for name, value in zip(self.settings, values, strict=True)
            if value
        }

    def _missing(
        self,
        spec: ModelSpec,  # noqa: ARG002
        env: Mapping[str, str],
    ) -> Iterator[tuple[str, str]]:
        region, project = self.settings
        login = google_login() if _has_package("google.auth") else None
        has_project = vertex_project(env) or (isinstance(login, tuple) and login[1])
        unset = [] if vertex_region(env)[1] else [region]
        unset += [] if has_project else [project]
        if unset:
            yield _unset(unset), f"Set {' and '.join(unset)}"
        if login is None:
            yield _no_package("google-auth"), _install(self)
        elif isinstance(login, str):
            yield (
                login,
                (
                    "Set GOOGLE_APPLICATION_CREDENTIALS to a file with credentials, or"
                    " run gcloud auth application-default login"
                ),
            )

    def refusal_hint(self, status: int, message: str) -> Text:
        if status in (401, 403):
            variables = "GOOGLE_APPLICATION_CREDENTIALS, ANTHROPIC_VERTEX_PROJECT_ID"
            return f"Check {variables}, and the access to the model in this project"
        if status == 404 or (status == 400 and "not servable in region" in message):
            return "Check the model's id, and whether CLOUD_ML_REGION has it"
        return ""

    async def open(self, spec: ModelSpec, timeout: float) -> Model:
        from .cloud_models import VertexModel

        return await VertexModel.open(spec, timeout)


class AzureProvider(Cloud, ChatProvider):
    """OpenAI's models on Azure, by the names of their deployments."""

    login = "a key or a token"

    def set_in(self, env: Mapping[str, str]) -> tuple[str, str]:
        """The variable names the root, or a copy of a longer address in Azure's
        portal.
        """
        variable, url = super().set_in(env)
        root, path = url.partition("?")[0].rstrip("/"), urlsplit(url).path
        root = (
            f"{root.partition('/openai')[0]}/openai"
            if "/openai" in path
            else f"{root}/openai"
        )
        return variable, url and (root if azure_version(env) else f"{root}/v1")

    def key_in(self, env: Mapping[str, str]) -> tuple[str, str] | None:
        """A token comes first, as for OpenAI's SDK."""
        variable, key = first_set(env, self.key_envs[::-1])
        return (variable, key) if key else None

    def _missing(
        self, spec: ModelSpec, env: Mapping[str, str]
    ) -> Iterator[tuple[str, str]]:
        unset = [] if spec.base_url else [*self.settings]
        unset += [] if self.key_in(env) else [self.key_envs[0]]
        if unset:
            example = (
                ""
                if spec.base_url
                else " (the endpoint is https://NAME.openai.azure.com)"
            )
            yield _unset(unset), f"Set {' and '.join(unset)}{example}"

    def place_in(self, env: Mapping[str, str]) -> Mapping[str, str]:
        return {"OPENAI_API_VERSION": azure_version(env) or AZURE_V1[1]}

    def price(self, spec: ModelSpec) -> Price | None:
        """A deployment that is named like a model is taken for one."""
        return listed_price(self.price_list, spec.model_id) or listed_price(
            "openai", spec.model_id
        )

    def refusal_hint(self, status: int, message: str) -> Text:  # noqa: ARG002
        if status == 404:
            return (
                "Check the name of the deployment, AZURE_OPENAI_ENDPOINT and"
                " OPENAI_API_VERSION"
            )
        if status in (401, 403):
            return f"Check {' or '.join(self.key_envs)}, and AZURE_OPENAI_ENDPOINT"
        return ""

    async def open(self, spec: ModelSpec, timeout: float) -> Model:
        from .cloud_models import AzureModel

        return AzureModel(spec, timeout)


def _all_set(variables: tuple[str, ...], env: Mapping[str, str]) -> bool:
    return all(env.get(name, "").strip() for name in variables)


def _aws_problem() -> str:
    """Why there are no AWS credentials; empty if there are some."""
    try:
        return "" if aws_credentials() else "there are no AWS credentials"
    except Exception as error:  # of any kind: it trusts the files that it reads
        return one_line(f"no AWS credentials: {error}", 200)


def _vertex_host(region: str) -> str:
    if region == "global":
        return "aiplatform"
    return (
        f"aiplatform.{region}.rep" if region in ("us", "eu") else f"{region}-aiplatform"
    )


def _unset(variables: Sequence[str]) -> str:
    return f"{' and '.join(variables)} {'is' if len(variables) == 1 else 'are'} not set"


def _has_package(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # the package above it
        return False


def _no_package(name: str) -> str:
    return f"the package {name} is not installed"


def _install(cloud: Cloud) -> str:
    return f"Run: {install_command(cloud.name)}"
