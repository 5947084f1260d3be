"""The outputs of a golden run: masked, laid out for a readable diff,
compared and renewed.
"""

import json
import re
from collections.abc import Mapping
from difflib import unified_diff
from pathlib import Path
from typing import Any, Final

RENEW: Final = "If this is what you want: make golden RUNS={name}, and read the diff."

# What differs between machines and days, and nothing else.
_MASKED_KEYS: Final = {
    "started",
    "seconds",
    "date",
    "versions",
    "generated_at",
    "asked_at",
}
_MASKS: Final = (
    (r"^(platform|plugins:) .*\n", ""),
    (r"=+ (.*) in \d+\.\d+s( \([\d:]+\))? =+$", r"===== \1 in TIME ====="),
    (r" in \d+\.\d+s( \([\d:]+\))?$", " in TIME"),
    (r"\b\d+(\.\d+)? s\):", "TIME):"),  # of an answer
    (r"^Took .*\.$", "Took TIME."),
    (r', "(seconds|asked_at)": [\d.]+', ""),  # an answer that took no time has none
    (r"\b\d{4}-\d\d-\d\d\b", "DATE"),
    (r"\b\d{4}-\d\d-\d\dT[\d:.]+Z", "TIME"),
    (r"\b[0-9a-f]{40}\b", "COMMIT"),
    (r"\btmp-\w+", "TEMPORARY"),
)

# Lists with a line for each member, however long it is.
_LINES: Final = {
    *("records", "tests", "questions", "by_case", "queries", "outcomes"),
}
_WIDTH: Final = 100


def masked_text(text: str, folder: Path) -> str:
    text = text.replace(str(folder), "FOLDER")
    for pattern, replacement in _MASKS:
        text = re.sub(pattern, replacement, text, flags=re.M)
    return text


def masked_json(value: Any, folder: Path) -> Any:
    match value:
        case dict():
            masked = {}
            for key, member in value.items():
                if key in _MASKED_KEYS and member is not None:
                    masked[key] = "MASKED"
                else:
                    masked[key] = masked_json(member, folder)

            # There is no change of seconds where an answer happened to take none.
            if "changes" in masked and isinstance(masked["changes"], dict):
                masked["changes"].pop("seconds", None)
            return masked
        case list():
            return [masked_json(member, folder) for member in value]
        case str():
            return masked_text(value, folder)
        case float():  # the last digits depend on the processor
            return float(f"{value:.9g}")
    return value


def laid_out(value: Any, name: str = "", indent: str = "") -> str:
    """JSON with a line for each record and each value that is short."""
    flat = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or len(indent + flat) <= _WIDTH:
        return flat
    inner = f"{indent} "
    if isinstance(value, dict):
        first, last = "{}"
        members = [
            f'"{key}": {laid_out(member, key, inner)}' for key, member in value.items()
        ]
    elif name in _LINES:
        first, last = "[]"
        members = [json.dumps(member, ensure_ascii=False) for member in value]
    else:
        first, last = "[]"
        members = [laid_out(member, "", inner) for member in value]
    return f",\n{inner}".join(members).join([f"{first}\n{inner}", f"\n{indent}{last}"])


def shortened(report: dict[str, Any]) -> dict[str, Any]:
    """Of a run with many cases, the summary, the gate and a short form of the
    records.
    """
    keys = ("case", "arm", "outcome", "input_tokens", "output_tokens")
    records = [[record[key] for key in keys] for record in report["records"]]
    return {"summary": report["summary"], "gate": report["gate"], "records": records}


def difference(kept: Path, outputs: Mapping[str, str]) -> str:
    """How outputs differ from the kept files, and how to renew those;
    empty if they don't.
    """
    lines = list[str]()
    for name in sorted({*outputs, *(file.name for file in kept_files(kept))}):
        file = kept / name
        before = file.read_text(encoding="utf-8") if file.exists() else ""
        sides = before.splitlines(), outputs.get(name, "").splitlines()
        names = f"{kept.name}/{name}, kept", f"{kept.name}/{name}, now"
        lines += unified_diff(*sides, *names, lineterm="", n=1)
    return "\n".join([*lines, "", RENEW.format(name=kept.name)]) if lines else ""


def renew(kept: Path, outputs: Mapping[str, str]) -> None:
    for file in kept_files(kept):
        file.unlink()
    for name, text in outputs.items():
        (kept / name).write_text(text, encoding="utf-8")


def kept_files(kept: Path) -> list[Path]:
    return [path for path in kept.iterdir() if path.suffix in (".txt", ".json", ".md")]
