"""Models: names people write, and one adapter per protocol behind one small port."""

from .model import Model, ModelSource, ModelSpec, Provider

__all__ = ["Model", "ModelSource", "ModelSpec", "Provider"]
