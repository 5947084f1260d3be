"""What a run that tests skills has: one value, in ``config.stash[RUN]``.

It is made when pytest is configured and filled by the plugins of each moment:
collecting, asking, recording, ending. Features read it in their own plugins.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pytest

if TYPE_CHECKING:
    from ..measure.open_run import OpenRun
    from ..results.case_changes import Earlier
    from ..results.run import RunResults
    from ..settings import Settings
    from ..trials.plan import PlannedCase, SkillInfo, Unmatched
    from .asking import Asking
    from .ledger import Ledger
    from .paths import Selected
    from .skill_files import SkillFile
    from .spending import Spending

_GOOD: Final = (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)


class Run:
    """A run that tests skills, in one process: without xdist, its controller or one of
    its workers.
    """

    # From the start of the session on.
    session: pytest.Session
    settings: "Settings"
    selected: "Selected"
    subjects: "OpenRun"
    asks: bool  # false with --collect-only
    asking: "Asking"

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.files: list[SkillFile] = []
        self.collected: list[pytest.Item] = []  # before some were deselected
        self.unmatched: tuple[Unmatched, ...] = ()  # accepted results without a test
        self.conftests = set[Path]()  # folders whose conftest files are loaded
        self.warned = Counter[str]()  # files, by the kind of their first problem
        self.lacking = Counter[str]()  # cases, by the option that a run would need
        self.skip_reason = ""  # why all tests of skills are skipped
        self.stopped: str | None = None  # why the run ended early
        self.problems: list[str] = []  # shown in red at the end

        # None in xdist workers, and if nothing will be asked.
        self.ledger: Ledger | None = None
        self.spending: Spending | None = None

        # Filled at the end, by features as well.
        self.results: RunResults | None = None
        self.earlier: Earlier | None = None  # the run that the page compares it with
        self.notes: list[str] = []  # below the tables, in reports as well
        self.lines: list[str] = []  # below the tables of the terminal, with -q too
        self.written: list[Path] = []

    @property
    def is_quiet(self) -> bool:
        """Whether there is no summary."""
        return self.config.get_verbosity() < 0 or bool(self.config.option.no_summary)

    @property
    def has_failed(self) -> bool:
        """By its exit status."""
        return self.session.exitstatus not in _GOOD

    @property
    def workerinput(self) -> Mapping[str, Any]:
        """What xdist's controller sent to this worker; empty in any other process."""
        sent: Mapping[str, Any] = getattr(self.config, "workerinput", {})
        return sent

    @property
    def is_worker(self) -> bool:
        return bool(self.workerinput)

    @property
    def has_workers(self) -> bool:
        """Whether this is the controller of xdist."""
        return bool(self.config.pluginmanager.hasplugin("dsession"))

    def note(self, problem: str) -> None:
        """Note a problem once, though several steps may come upon it."""
        if problem not in self.problems:
            self.problems.append(problem)

    def fail(self, problem: str = "") -> None:
        """Have the run fail, though all tests may have passed."""
        if problem:
            self.note(problem)
        # A plugin may turn "no tests" into a success, but not a gate without evidence.
        if not self.has_failed:
            self.session.exitstatus = pytest.ExitCode.TESTS_FAILED


def start_run(config: pytest.Config) -> Run:
    """Register the plugins of a run: the later one is asked first, where order
    matters.
    """
    from .asking import Asking
    from .collecting import Collecting
    from .ending import Ending
    from .recording import Recording

    run = config.stash[RUN] = Run(config)
    run.asking = Asking(run)
    plugins = {
        "upskill-ending": Ending(run),
        "upskill-recording-reports": Recording(run),
        "upskill-asking": run.asking,
        "upskill-collecting": Collecting(run),
    }
    for name, plugin in plugins.items():
        config.pluginmanager.register(plugin, name)
    return run


RUN: Final = pytest.StashKey[Run]()


@dataclass
class PlannedTest:
    """What a run asks for a test of a skill, in the stash of its item.

    A feature may replace the case until the plan is made, as with an accepted result
    that the case is expected to reach.
    """

    skill: "SkillInfo"
    case: "PlannedCase"


PLANNED: Final = pytest.StashKey[PlannedTest]()


def planned_of(item: pytest.Item) -> "PlannedCase | None":
    """The case of a test of a skill, also if it is skipped; None for any other test.

    It has the test's present marks, and its node id, which xdist's loadgroup changes.
    """
    test = item.stash.get(PLANNED, None)
    if test is None:
        return None

    case = test.case
    compared = not is_expected_to_fail(item) and not case.kind.agent
    if item.config.stash[RUN].settings.aa:
        compared = False
    if (compared, item.nodeid) != (case.compared, case.nodeid):
        extra_trials = case.extra_trials if compared else ()
        test.case = replace(
            case, compared=compared, extra_trials=extra_trials, nodeid=item.nodeid
        )
    return test.case


def is_skipped(item: pytest.Item) -> bool:
    """Whether pytest will skip the test, so that nothing needs to be asked.

    Only pytest evaluates a condition given as a string,
    so such a test is not taken as skipped.
    """
    for mark in item.iter_markers():
        if mark.name == "skip" or (mark.name == "skipif" and _holds(mark)):
            return True
        if mark.name == "xfail" and mark.kwargs.get("run") is False and _holds(mark):
            return not item.config.getoption("runxfail", default=False)
    return False


def is_expected_to_fail(item: pytest.Item) -> bool:
    """Whether an xfail mark of its own holds; a condition given as
    a string is not known to.
    """
    return any(_holds(mark) for mark in item.iter_markers("xfail"))


def _holds(mark: pytest.Mark) -> bool:
    conditions = [mark.kwargs["condition"]] if "condition" in mark.kwargs else mark.args
    return not conditions or any(condition is True for condition in conditions)


class NextStep(NamedTuple):
    """The command that a run suggests on its last line, and a hint before it.

    Either may be empty.
    """

    command: list[str]
    hint: str = ""
