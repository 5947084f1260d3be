"""Models: names people write, and one adapter per protocol behind one small port."""

from ..settings import Settings
from .names import ModelSpec
from .port import Model

__all__ = ["Model", "ModelSpec", "model_id_of", "open_model"]


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


def model_id_of(spec: ModelSpec) -> str:
    """The id that reports give for a model."""
    if spec.protocol == "local":
        from .local import label_of

        return label_of(spec)
    return spec.model_id
