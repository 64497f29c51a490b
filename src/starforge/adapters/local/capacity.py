"""The GPUs that this machine pretends to have, or has: `FORGE_LOCAL_GPUS`, for example `h200:8,b200:4`."""

import re
from collections.abc import Mapping
from pathlib import Path

from starforge.domain.errors import Problem, SettingsWrong

SETTING = "FORGE_LOCAL_GPUS"
GPUS_MAX = 10_000
_ENTRY = re.compile(r"(?P<series>[a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9])?):(?P<count>\d{1,5})", re.ASCII)


def parse_gpus(text: str) -> Mapping[str, int]:
    """GPUs by series, in the order given. SettingsWrong, with one sentence for each entry that is wrong."""
    found: dict[str, int] = {}
    problems: list[Problem] = []
    for entry in (part.strip() for part in text.split(",")):
        match = _ENTRY.fullmatch(entry)
        if match is None:
            problems.append(_problem(f"{entry!r} is not <series>:<count> such as h200:8"))
        elif match["series"] in found:
            problems.append(_problem(f"{match['series']} is there twice"))
        elif int(match["count"]) > GPUS_MAX:
            problems.append(_problem(f"{entry} is more than {GPUS_MAX} GPUs"))
        else:
            found[match["series"]] = int(match["count"])
    if problems:
        raise SettingsWrong(problems)
    return found


def real_gpus(driver: Path = Path("/proc/driver/nvidia/gpus")) -> Mapping[str, int]:
    """The devices of this machine by series, the last word of their model: `NVIDIA H200` counts as h200."""
    found: dict[str, int] = {}
    for information in sorted(driver.glob("*/information")):
        model = re.search(r"^Model:\s*(.+?)\s*$", information.read_text(), re.MULTILINE)
        if model:
            series = model[1].split()[-1].lower()
            found[series] = found.get(series, 0) + 1
    return found


def _problem(what: str) -> Problem:
    message = f"{SETTING}: {what}. Write each series once, separated by commas, for example h200:8,b200:4."
    return Problem("INVALID", (SETTING,), message)
