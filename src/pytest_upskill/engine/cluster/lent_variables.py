"""Variables that runs send to a worker: in its environment until the last such run ends."""

import os
from collections.abc import Mapping, MutableMapping


class LentVariables:
    """The variables of all runs on this worker, which may overlap."""

    def __init__(self, env: MutableMapping[str, str] = os.environ) -> None:
        self._env = env
        self._lent: list[Mapping[str, str]] = []
        self._before: dict[str, str | None] = {}  # what the worker has of its own

    def lend(self, given: Mapping[str, str]) -> None:
        for name in given:
            self._before.setdefault(name, self._env.get(name))
        self._lent.append(given)
        self._env.update(given)

    def take_back(self, given: Mapping[str, str]) -> None:
        self._lent = [one for one in self._lent if one is not given]
        for name in given:
            others = [one[name] for one in self._lent if name in one]
            value = others[-1] if others else self._before.pop(name)
            if value is None:
                self._env.pop(name, None)
            else:
                self._env[name] = value
