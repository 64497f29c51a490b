"""`starforge health`."""

import os

from starforge.cli.consoles import out_console, print_json
from starforge.cli.documents import HEALTH
from starforge.cli.exits import ExitCode
from starforge.cli.gateway import Gateway
from starforge.cli.views.health import health_page
from starforge.cli.words import clean


def run(*, as_json: bool) -> ExitCode:
    with Gateway.from_settings(os.environ) as gateway:
        health = gateway.ask(HEALTH)["health"]
    if as_json:
        print_json(health)
    else:
        out_console().print(health_page(clean(health)))
    return ExitCode.SUCCEEDED if health["status"] == "OK" else ExitCode.FAILED
