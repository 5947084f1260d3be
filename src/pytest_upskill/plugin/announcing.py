"""How many calls a run makes and what they may cost, told before the first one."""

from collections.abc import Callable
from functools import cache

import pytest

from .._util.texts import counted
from ..measure.assembly import Assembly
from ..measure.estimate import cost_bound
from ..settings import Settings
from ..trials.plan import Plan
from .calls import collected_lines, repeat_lines
from .pytest_options import FLAGS


class Announcement:
    """The lines about calls: after collection, or with xdist when a worker has sent its plan."""

    def __init__(
        self,
        config: pytest.Config,
        models: Assembly,
        settings: Settings,
        notify: Callable[[str], None],
        *,
        asks: bool,
    ) -> None:
        self._config = config
        self._models = models
        self._settings = settings
        self._notify = notify
        self._asks = asks
        self._kept: list[str] = []

    def lines(self, plan: Plan) -> list[str]:
        cost = ["", ""] if self._settings.replay_file else self._cost(plan)
        lines = collected_lines(plan, asks=self._asks, cost=cost)
        return [*lines, *repeat_lines(plan), *self._in_batches(plan)]

    def _in_batches(self, plan: Plan) -> list[str]:
        """What an earlier run has submitted; it will be paid for twice if nobody collects it."""
        settings, root = self._settings, self._config.rootpath
        number = self._models.in_batches(settings, root, plan.trials())
        if not number:
            return []
        questions = counted(number, "question")
        if settings.batch:
            how = "their answers are" if number > 1 else "its answer is"
            return [
                f"upskill: {questions} in a batch already: {how} collected, not asked for again"
            ]
        collect = f"{FLAGS['batch']} collects the answers"
        return [f"upskill: {questions} in a batch that was not collected: {collect}"]

    def _cost(self, plan: Plan) -> list[str]:
        tests = (*plan.tests, *plan.triggers)
        trials = [trial for test in tests for trial in test.trials if not trial.is_open]
        settings, root = self._settings, self._config.rootpath
        models = self._models
        stored = models.stored_trials(settings, root, trials, self._notify)
        bound = cost_bound(trials, stored, cache(models.price_of), models.batched(settings))
        return bound.words(
            limit=settings.max_cost,
            suggest=FLAGS["max_cost"] if self._is_seen else "",
            python=any(test.trials[0].is_open for test in tests),
        )

    @property
    def _is_seen(self) -> bool:
        """Whether somebody may read it in time: on a terminal."""
        reporter = self._config.pluginmanager.getplugin("terminalreporter")
        return bool(reporter and reporter.isatty)

    def keep(self, plan: Plan) -> None:
        """In the controller of xdist, which collects nothing itself; on a thread of the link."""
        if self._config.get_verbosity() >= -1:
            self._kept += self.lines(plan)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        """Write what was kept, in the thread that writes all else, and in no row of dots."""
        reporter = self._config.pluginmanager.getplugin("terminalreporter")
        if self._kept and reporter and not self._config.get_terminal_writer().width_of_current_line:
            lines, self._kept = self._kept, []
            for line in lines:
                reporter.write_line(line)
