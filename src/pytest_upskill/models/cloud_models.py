"""Claude on Amazon Bedrock and on Vertex AI, and OpenAI's models on Azure,
through the SDKs.

Anthropic's clients sign each request, and put parts of it into the address. So requests
that an agent writes go through them as well, and are answered whole: Bedrock's stream
differs from the protocol's.
"""

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from .._util.keys import know
from ..errors import ModelError
from ..trials.answer import Answer
from ..trials.trial import Question
from .anthropic_messages import MESSAGES_PATH, AnthropicModel
from .cloud_logins import (
    aws_credentials,
    aws_region,
    azure_version,
    google_login,
    login_error_text,
    vertex_project,
    vertex_region,
)
from .model import ModelSpec
from .openai_chat import OpenAIModel
from .sdk import OnRefusal, Upstream
from .sdk_errors import clean, error_text, not_a_reply

# Keys of an agent's request that are passed on: clouds refuse keys they don't know,
# such as betas.
_RELAYED: Final = (
    *("model", "max_tokens", "messages", "system", "tools", "tool_choice", "thinking"),
    *("temperature", "top_p", "top_k", "stop_sequences", "output_config"),
)
_BEARER: Final = "Bearer "
_GOOGLE_SECRETS: Final = ("client_secret", "refresh_token")
# Errors of Google's and AWS's packages if the server of a login is not reached.
_UNREACHABLE: Final = ("TransportError", "ConnectionError", "HTTPClientError")
_HINT: Final = "Log in again, and check that this account may use the model"
LoginErrors = tuple[type[Exception], ...]


class CloudModel(AnthropicModel):
    """Adapter to one Claude model of a cloud."""

    def __init__(
        self, spec: ModelSpec, timeout: float, login_errors: LoginErrors
    ) -> None:
        super().__init__(spec, timeout)
        self._login_errors = login_errors
        # The tokens of a login change during a run.
        self.client._client.event_hooks["request"].append(_know_tokens)

    @property
    def upstream(self) -> None:
        return None

    async def ask(self, question: Question) -> Answer:
        with translated_login_errors(self.spec, self._login_errors):
            return await super().ask(question)

    async def relay(
        self, body: dict[str, Any], on_refusal: OnRefusal
    ) -> dict[str, Any]:
        """Pass on a request that an agent wrote, and return the whole reply."""
        request = {name: body[name] for name in _RELAYED if name in body}
        with (
            translated_login_errors(self.spec, self._login_errors),
            self.translated(tools=bool(body.get("tools"))),
        ):
            try:
                reply: Any = await self.client.post(
                    MESSAGES_PATH, body=request, cast_to=object
                )
            except self.sdk.APIStatusError as error:
                on_refusal(error.status_code, error_text(error, self.secrets))
                raise
            if not isinstance(reply, dict) or not isinstance(
                reply.get("content"), list
            ):
                raise not_a_reply(self.spec, reply)
            return reply


class BedrockModel(CloudModel):
    """Adapter to one Claude model on Bedrock."""

    @classmethod
    async def open(cls, spec: ModelSpec, timeout: float) -> "BedrockModel":
        if spec.provider.key_in(os.environ):
            return cls(spec, timeout, ())
        from botocore.exceptions import BotoCoreError, ClientError

        # A role is fetched by HTTP and parsed
        with translated_login_errors(spec, (Exception,)):
            await asyncio.to_thread(_know_aws)
        return cls(spec, timeout, (BotoCoreError, ClientError, RuntimeError))

    def _connect(self, options: dict[str, Any]) -> Any:
        client = self.sdk.AsyncAnthropicBedrock(
            api_key=self._key or None, aws_region=aws_region(os.environ)[1], **options
        )
        client.api_key = self._key or None  # the SDK takes an empty variable for a key
        # The SDK doesn't strip the line break that many secrets end with.
        login = self.spec.provider.login_in(os.environ)
        client.aws_access_key = login.get("AWS_ACCESS_KEY_ID")
        client.aws_secret_key = login.get("AWS_SECRET_ACCESS_KEY")
        client.aws_session_token = login.get("AWS_SESSION_TOKEN")
        return client


class VertexModel(CloudModel):
    """Adapter to one Claude model on Vertex AI."""

    def __init__(
        self,
        spec: ModelSpec,
        timeout: float,
        login_errors: LoginErrors,
        login: tuple[Any, str],
    ) -> None:
        self._login = login
        super().__init__(spec, timeout, login_errors)

    @classmethod
    async def open(cls, spec: ModelSpec, timeout: float) -> "VertexModel":
        from google.auth.exceptions import GoogleAuthError
        from google.auth.transport.requests import Request

        with translated_login_errors(spec, (GoogleAuthError,)):
            login = await asyncio.to_thread(google_login)
            if isinstance(login, str):
                raise ModelError(login, _HINT, fatal=True)
            credentials, _ = login
            know(*(str(getattr(credentials, name, "")) for name in _GOOGLE_SECRETS))
            await asyncio.to_thread(credentials.refresh, Request())
        return cls(spec, timeout, (GoogleAuthError,), login)

    def _connect(self, options: dict[str, Any]) -> Any:
        credentials, project = self._login
        return self.sdk.AsyncAnthropicVertex(
            region=vertex_region(os.environ)[1],
            project_id=vertex_project(os.environ) or project,
            credentials=credentials,
            **options,
        )


def _know_aws() -> None:
    """Mask credentials that come from files and services, too."""
    if credentials := aws_credentials():
        know(*filter(None, credentials.get_frozen_credentials()))


@contextmanager
def translated_login_errors(spec: ModelSpec, errors: LoginErrors) -> Iterator[None]:
    """Turn the errors of a cloud's login into ModelError."""
    try:
        yield
    except errors as error:
        problem = (
            f"no login to {spec.provider.name}: {clean(login_error_text(error), ())}"
        )
        unreachable = any(kind.__name__ in _UNREACHABLE for kind in type(error).__mro__)
        transient = unreachable or bool(getattr(error, "retryable", False))
        hint = "Check the network, and try again" if unreachable else _HINT
        raise ModelError(
            problem, hint, transient=transient, fatal=not transient
        ) from None


async def _know_tokens(request: Any) -> None:
    """Mask the tokens of a request from now on; its signature can't be used again."""
    know(request.headers.get("x-amz-security-token", ""))
    authorization = request.headers.get("authorization", "")
    if authorization.startswith(_BEARER):
        know(authorization.removeprefix(_BEARER))


class AzureModel(OpenAIModel):
    """Adapter to one deployment."""

    def _connect(self, options: dict[str, Any]) -> Any:
        if not (version := azure_version(os.environ)):
            return super()._connect(options)
        variable, _ = self.spec.provider.key_in(os.environ) or ("", "")
        key = "azure_ad_token" if variable.endswith("TOKEN") else "api_key"
        return self.sdk.AsyncAzureOpenAI(
            api_version=version, **{key: self._key}, **options
        )

    @property
    def upstream(self) -> Upstream:
        """Agents always use v1."""
        url = str(self.spec.base_url).removesuffix("/v1")
        headers = {"Authorization": f"Bearer {self._key}"}
        return Upstream(self.spec, f"{url}/v1", headers, self.secrets)
