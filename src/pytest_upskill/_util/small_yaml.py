"""YAML that strangers write, with limits: aliases and merges can turn a few lines into millions."""

from typing import Any, Final

import yaml

_DEEPEST: Final = 100  # levels, and brackets on a line: PyYAML takes quadratic time
_MOST_NODES: Final = 10_000  # with every alias written out

# What reading can raise.
YAML_ERRORS: Final = (yaml.YAMLError, RecursionError, ValueError, OverflowError)


class _Shallow:
    """Makes a loader reject deep nesting."""

    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise yaml.YAMLError(f"more than {_DEEPEST} levels")
        node: yaml.Node | None = super().compose_node(parent, index)  # type: ignore[misc]
        self._depth -= 1
        return node


class _Texts(_Shallow, yaml.BaseLoader):
    """Every scalar is a string."""


class _Values(_Shallow, yaml.SafeLoader):
    pass


def read_yaml(text: str, *, only_texts: bool = False) -> tuple[yaml.Node | None, Any]:
    """The root and the value of a document, which may be None; one of YAML_ERRORS if it is bad."""
    if any(line.count("[") + line.count("{") > _DEEPEST for line in text.split("\n")):
        raise yaml.YAMLError("too many brackets on a line")
    loader = _Texts(text) if only_texts else _Values(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None, None
        _nodes_in(node, {})
        return node, loader.construct_document(node)
    finally:
        loader.dispose()


def _nodes_in(node: yaml.Node, sizes: dict[int, int]) -> int:
    """How many nodes there are if each alias is written out."""
    if id(node) not in sizes:
        sizes[id(node)] = _MOST_NODES  # a node inside itself has no end
        inside = node.value if isinstance(node, yaml.CollectionNode) else []
        children = [
            child for item in inside for child in (item if isinstance(item, tuple) else (item,))
        ]
        sizes[id(node)] = 1 + sum(_nodes_in(child, sizes) for child in children)
    if sizes[id(node)] >= _MOST_NODES:
        raise yaml.YAMLError(f"more than {_MOST_NODES:,} values, counting each alias")
    return sizes[id(node)]
