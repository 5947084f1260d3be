"""Models: names people write, and one adapter per protocol behind one small port."""

from .port import Model, ModelSpec, Provider

__all__ = ["Model", "ModelSpec", "Provider"]
