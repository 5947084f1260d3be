"""Regions and credentials of clouds, found as the clouds' own tools find them."""

import logging
import re
import warnings
from collections.abc import Mapping
from configparser import ConfigParser
from configparser import Error as ConfigError
from pathlib import Path
from typing import Any, Final

from .._util.texts import one_line
from ..errors import InputError
from .model import first_set

_REGION: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_GOOGLE_SCOPE: Final = "https://www.googleapis.com/auth/cloud-platform"
# Values of OPENAI_API_VERSION that mean v1
AZURE_V1: Final = ("", "v1", "latest", "preview")


def aws_region(env: Mapping[str, str]) -> tuple[str, str]:
    """The variable or file that names the region, and the region, in boto3's order."""
    variable, region = _region_in(env, "AWS_REGION", "AWS_DEFAULT_REGION")
    if region:
        return variable, region
    profile = first_set(env, ("AWS_DEFAULT_PROFILE", "AWS_PROFILE"))[1] or "default"
    for variable, default, section in (
        ("AWS_SHARED_CREDENTIALS_FILE", "credentials", profile),
        (
            "AWS_CONFIG_FILE",
            "config",
            "default" if profile == "default" else f"profile {profile}",
        ),
    ):
        file = env.get(variable) or f"{env.get('HOME', '')}/.aws/{default}"
        parser = ConfigParser(interpolation=None, strict=False)
        try:
            parser.read(Path(file).expanduser(), "utf-8")
        except (ConfigError, ValueError, OSError):
            continue  # boto3 reports what is wrong with it
        if region := parser.get(section, "region", fallback=""):
            return _region_in({file: region}, file)
    return "", ""


def aws_credentials() -> Any:
    """What boto3 finds; None if it finds nothing."""
    import boto3

    # botocore logs a failed login with a traceback, and secrets at debug level.
    logging.getLogger("botocore.credentials").setLevel(logging.CRITICAL + 1)
    logging.getLogger("botocore").setLevel(logging.WARNING)
    return boto3.Session().get_credentials()


def vertex_region(env: Mapping[str, str]) -> tuple[str, str]:
    return _region_in(env, "CLOUD_ML_REGION")


def vertex_project(env: Mapping[str, str]) -> str:
    return first_set(env, ("ANTHROPIC_VERTEX_PROJECT_ID", "GOOGLE_CLOUD_PROJECT"))[1]


def google_login() -> tuple[Any, str] | str:
    """Google's credentials and their project, or why there are none."""
    with warnings.catch_warnings():  # google-auth warns of credentials that work
        warnings.simplefilter("ignore")
        import google.auth

        try:
            credentials, project = google.auth.default(scopes=[_GOOGLE_SCOPE])
        except Exception as error:  # of any kind: it trusts the files that it reads
            return one_line(f"no Google credentials: {login_error_text(error)}", 200)
    return credentials, project or ""


def login_error_text(error: Exception) -> str:
    """The message of an error; Google's errors have a cause or a
    server's reply as arguments.
    """
    if not type(error).__module__.startswith("google."):
        return str(error)
    return ": ".join(
        str(part) for part in error.args if isinstance(part, str | Exception)
    )


def azure_version(env: Mapping[str, str]) -> str:
    """A dated version of Azure's API; empty for v1, which has none."""
    version = env.get("OPENAI_API_VERSION", "").strip()
    return "" if version in AZURE_V1 else version


def _region_in(env: Mapping[str, str], *variables: str) -> tuple[str, str]:
    """The first of these variables that is set, and the region that it names."""
    variable, region = first_set(env, variables)
    if region and not _REGION.fullmatch(region):
        hint = "A region is a word such as us-east-1 (AWS) or us-east5 (Google)."
        raise InputError(variable, "not the name of a region", hint)
    return variable, region
