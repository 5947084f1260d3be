"""Models: names people write, and one adapter per protocol behind one small port."""

from .._util.texts import digest
from ..settings import Settings
from .names import ModelSpec
from .port import Model

__all__ = ["Model", "ModelSpec", "identity_of", "model_id_of", "open_model"]


async def open_model(spec: ModelSpec, settings: Settings) -> Model:
    """Make the adapter of a model; its heavy imports happen here and not before."""
    if spec.protocol == "anthropic":
        from .anthropic_messages import AnthropicModel

        return AnthropicModel(spec, settings.timeout)
    if spec.protocol == "openai":
        from .openai_chat import OpenAIModel

        return OpenAIModel(spec, settings.timeout)
    if spec.protocol == "local":
        from .local import open_local

        return await open_local(spec, settings.timeout)
    from .scripted import ScriptedModel, load_script

    return ScriptedModel(load_script(spec), spec.name)


def identity_of(spec: ModelSpec) -> str | None:
    """All of a model that shapes its answers; None if they must not be kept."""
    if spec.protocol == "scripted":
        return None  # a script may answer anything at any time
    if spec.protocol == "local":
        from .local import file_identity

        return digest("local", file_identity(spec))
    return digest(spec.protocol, spec.base_url or "", spec.model_id, spec.effort or "")


def model_id_of(spec: ModelSpec) -> str:
    """The id that reports give for a model."""
    if spec.protocol == "local":
        from .local import label_of

        return label_of(spec)
    return spec.model_id
