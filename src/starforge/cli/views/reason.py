"""Why a job waits or ended, in a few sentences."""

from rich.text import Text

from starforge.cli.answers import Json
from starforge.cli.words import WHOSE


def reason_text(reason: Json) -> Text:
    style = "yellow" if reason["code"] not in {"STARTING", "CANCELED"} else "dim"
    text = Text.assemble((f"{reason['code']} ", f"bold {style}"), (reason["message"], style))
    if reason["advice"]:
        text.append(f" {reason['advice']}")
    if reason["code"] not in {"STARTING", "CANCELED"}:
        text.append(f" ({WHOSE.get(reason['whose'], reason['whose'])})", "dim")
    return text
