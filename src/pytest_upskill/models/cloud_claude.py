"""Claude on Amazon Bedrock and on Vertex AI, through the clients of Anthropic's SDK.

They sign each request, and write it into the address and the body as its cloud wants it. So a
request that an agent writes goes through them as well, and comes back whole: a stream of Bedrock
is not one of the protocol.
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
from .anthropic_messages import AnthropicModel
from .clouds import VertexProvider, aws_credentials, aws_region, google_login, said_by
from .port import ModelSpec
from .sdk import Refused, clean, error_text, not_a_reply, translated_errors

# Of a request that an agent writes: the clouds refuse what they don't know, such as betas.
_RELAYED: Final = (
    *("model", "max_tokens", "messages", "system", "tools", "tool_choice", "thinking"),
    *("temperature", "top_p", "top_k", "stop_sequences", "output_config"),
)
_BEARER: Final = "Bearer "
LoginErrors = tuple[type[Exception], ...]


class CloudModel(AnthropicModel):
    """Adapter to one Claude model of a cloud."""

    def __init__(self, spec: ModelSpec, timeout: float, login_errors: LoginErrors) -> None:
        super().__init__(spec, timeout)
        self._login_errors = login_errors
        # Tokens of a login change in the course of a run.
        self._client._client.event_hooks["request"].append(_know_tokens)

    @property
    def upstream(self) -> None:
        return None

    async def ask(self, question: Question) -> Answer:
        with told_of_login(self._spec, self._login_errors):
            return await super().ask(question)

    async def relay(self, body: dict[str, Any], refused: Refused) -> dict[str, Any]:
        """Pass on a request that an agent wrote, and return the whole reply."""
        kept = {name: body[name] for name in _RELAYED if name in body}
        tools = bool(body.get("tools"))
        with (
            told_of_login(self._spec, self._login_errors),
            translated_errors(self._sdk, self._spec, self._secrets, tools=tools),
        ):
            try:
                reply: Any = await self._client.post("/v1/messages", body=kept, cast_to=object)
            except self._sdk.APIStatusError as error:
                refused(error.status_code, error_text(error, self._secrets))
                raise
            if not isinstance(reply, dict) or not isinstance(reply.get("content"), list):
                raise not_a_reply(self._spec, reply)
            return reply


class BedrockModel(CloudModel):
    """Adapter to one Claude model on Bedrock."""

    @classmethod
    async def open(cls, spec: ModelSpec, timeout: float) -> "BedrockModel":
        if spec.provider.key_in(os.environ):
            return cls(spec, timeout, ())
        from botocore.exceptions import BotoCoreError, ClientError

        with told_of_login(spec, (Exception,)):  # of parsers, too: a role is asked for by HTTP
            await asyncio.to_thread(_know_aws)
        return cls(spec, timeout, (BotoCoreError, ClientError, RuntimeError))

    def _connect(self, options: dict[str, Any]) -> Any:
        client = self._sdk.AsyncAnthropicBedrock(
            api_key=self._key or None, aws_region=aws_region(os.environ)[1], **options
        )
        client.api_key = self._key or None  # it takes an empty variable for a key
        # As they are, it would take the line break that ends many a secret.
        login = self._spec.provider.login_in(os.environ)
        client.aws_access_key = login.get("AWS_ACCESS_KEY_ID")
        client.aws_secret_key = login.get("AWS_SECRET_ACCESS_KEY")
        client.aws_session_token = login.get("AWS_SESSION_TOKEN")
        return client


class VertexModel(CloudModel):
    """Adapter to one Claude model on Vertex AI."""

    def __init__(
        self, spec: ModelSpec, timeout: float, login_errors: LoginErrors, login: tuple[Any, str]
    ) -> None:
        self._login = login
        super().__init__(spec, timeout, login_errors)

    @classmethod
    async def open(cls, spec: ModelSpec, timeout: float) -> "VertexModel":
        from google.auth.exceptions import GoogleAuthError
        from google.auth.transport.requests import Request

        with told_of_login(spec, (GoogleAuthError,)):
            login = await asyncio.to_thread(google_login)
            if isinstance(login, str):
                raise ModelError(login, _HINT, fatal=True)
            credentials, _ = login
            know(*(str(getattr(credentials, name, "")) for name in _SECRETS))
            await asyncio.to_thread(credentials.refresh, Request())
        return cls(spec, timeout, (GoogleAuthError,), login)

    def _connect(self, options: dict[str, Any]) -> Any:
        provider = self._spec.provider
        assert isinstance(provider, VertexProvider)
        credentials, project = self._login
        return self._sdk.AsyncAnthropicVertex(
            region=provider.region(os.environ)[1],
            project_id=provider.project(os.environ) or project,
            credentials=credentials,
            **options,
        )


_SECRETS: Final = ("client_secret", "refresh_token")
# Errors of Google's and AWS's packages, if the server of a login is not reached.
_LOST: Final = ("TransportError", "ConnectionError", "HTTPClientError")
_HINT: Final = "Log in again, and check that this account may use the model"


def _know_aws() -> None:
    """Mask credentials that come from files and services, too."""
    found = aws_credentials()
    frozen = found.get_frozen_credentials() if found else ()
    know(*filter(None, frozen))


@contextmanager
def told_of_login(spec: ModelSpec, errors: LoginErrors) -> Iterator[None]:
    """Turn the errors of a cloud's login into ModelError."""
    try:
        yield
    except errors as error:
        problem = f"no login to {spec.provider.name}: {clean(said_by(error), ())}"
        lost = any(kind.__name__ in _LOST for kind in type(error).__mro__)
        later = lost or bool(getattr(error, "retryable", False))
        hint = "Check the network, and try again" if lost else _HINT
        raise ModelError(problem, hint, transient=later, fatal=not later) from None


async def _know_tokens(request: Any) -> None:
    """Mask what a request carries from now on; a signature is of no further use."""
    know(request.headers.get("x-amz-security-token", ""))
    sent = request.headers.get("authorization", "")
    if sent.startswith(_BEARER):
        know(sent.removeprefix(_BEARER))
