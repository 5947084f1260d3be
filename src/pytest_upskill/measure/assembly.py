"""An engine put together for some models: where they are opened, and where answers are kept."""

from collections.abc import Callable, Mapping
from pathlib import Path

from ..engine.budget import Budget
from ..engine.engine import Engine
from ..engine.store import FILE_NAME, FOLDER, KnownAnswers, Store, StoredAnswers
from ..models import Model, ModelSpec
from ..settings import Settings

Specs = Mapping[str, ModelSpec]


def assemble(specs: Specs, settings: Settings, answers: KnownAnswers, budget: Budget) -> Engine:
    async def open_by_name(name: str) -> Model:
        spec = specs[name]
        return await spec.provider.open(spec, settings.timeout)

    return Engine(
        open_by_name,
        concurrency=settings.concurrency,
        timeout=settings.timeout,
        answers=answers,
        budget=budget,
    )


def stored_answers(
    specs: Specs, root: Path, tell: Callable[[str], None], *, fresh: bool
) -> StoredAnswers:
    """The answers that are kept below a folder."""
    identities = {name: spec.provider.identity(spec) for name, spec in specs.items()}
    file = root / FOLDER / FILE_NAME
    return StoredAnswers(lambda: Store(file, tell), lambda name: identities[name], fresh=fresh)
