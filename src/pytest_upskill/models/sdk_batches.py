"""What the batches of an SDK's client need of their model."""

from collections.abc import Callable
from functools import partial
from types import ModuleType
from typing import Any

from ..trials.answer import Answer
from ..trials.trial import Question
from .batching import Request, request_of
from .port import ModelSpec
from .sdk import Secrets, translated_errors


class SdkBatches:
    """The batches of one model: they ask and read as its single calls do."""

    def __init__(
        self,
        client: Any,
        sdk: ModuleType,
        spec: ModelSpec,
        secrets: Secrets,
        call_of: Callable[[Question], tuple[str, dict[str, Any]]],  # path and body
        answer: Callable[[Any, Question], Answer],
        adapts: Callable[[Question, str], bool],
    ) -> None:
        self._client = client
        self._translated = partial(translated_errors, sdk, spec, secrets)
        self._address = spec.address
        self._secrets = secrets
        self._call_of = call_of
        self._adapts = adapts
        self.answer = answer

    def request(self, own_id: str, question: Question) -> Request:
        path, body = self._call_of(question)
        return request_of(own_id, body, path)
