"""OpenAI's models on Azure: by its v1, which OpenAI's own client speaks, or a dated version."""

import os
from typing import Any

from .clouds import azure_version
from .openai_chat import OpenAIModel
from .sdk import Upstream


class AzureModel(OpenAIModel):
    """Adapter to one deployment."""

    def _connect(self, options: dict[str, Any]) -> Any:
        if not (version := azure_version(os.environ)):
            return super()._connect(options)
        variable, _ = self._spec.provider.key_in(os.environ) or ("", "")
        key = "azure_ad_token" if variable.endswith("TOKEN") else "api_key"
        return self._sdk.AsyncAzureOpenAI(api_version=version, **{key: self._key}, **options)

    @property
    def upstream(self) -> Upstream:
        """Agents know no dated versions: theirs is always v1."""
        url = str(self._spec.base_url).removesuffix("/v1")
        headers = {"Authorization": f"Bearer {self._key}"}
        return Upstream(self._spec, f"{url}/v1", headers, self._secrets)
