"""Settings by the names that users of pytest know: flags and ini keys.

Errors below the plugin name settings; ``message_of`` writes the flag or the ini key.
"""

from functools import partial
from typing import Final

import pytest

from .._util.keys import without_keys
from .._util.texts import harmless
from ..errors import SettingsError, UpskillError, spelling
from ..settings import Settings
from .options import INI_KEYS, OPTIONS

FLAGS: Final = {
    **{option.setting: option.flag for option in OPTIONS},
    **{setting: key for setting, (key, _, _) in INI_KEYS.items()},
}
spell: Final = spelling(FLAGS)


def message_of(error: UpskillError, config: pytest.Config) -> str:
    """An error with flags for settings, and the ini file if the wrong value is from there."""
    if isinstance(error, SettingsError):
        return harmless(without_keys(error.message(spell, partial(_origin, config))))
    return harmless(without_keys(error.message(spell)))


def _origin(config: pytest.Config, setting: str) -> str:
    if setting in INI_KEYS:
        return f"{config.inipath or '-o'}: {INI_KEYS[setting][0]}"
    of_ini = (o.ini for o in OPTIONS if o.setting == setting and o.is_of_ini_file(config))
    return next((f"{config.inipath}: {key}" for key in of_ini), "")


def flags_of_agents(config: pytest.Config, settings: Settings) -> list[str]:
    """The options of the command line that only agents use.

    A model that chooses a skill, for triggers, chooses among other skills, too.
    """
    unused = {"sandbox", "image", "max_turns", "agents_at_once", "cluster", "cluster_send_keys"}
    unused |= {"allow_network", "transcripts_folder"}
    if not settings.asks_triggers("chat"):
        unused |= {"with_skills", "noise", "trigger_runs"}
    return [one.flag for one in OPTIONS if one.setting in unused and one.is_given(config)]
