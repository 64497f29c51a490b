"""`starforge fits`."""

import os
from pathlib import Path

from starforge.cli.answers import Json
from starforge.cli.consoles import err_console, out_console, print_json
from starforge.cli.documents import FITS
from starforge.cli.exits import ExitCode
from starforge.cli.gateway import Gateway
from starforge.cli.specfile import SpecFileRefused, read_spec, read_spec_file
from starforge.cli.submitting import SubmitRefused
from starforge.cli.verbs.submit import tell_refused
from starforge.cli.views.fits import fit_page
from starforge.cli.words import clean

EXITS = {"NOW": ExitCode.SUCCEEDED, "NEVER": ExitCode.REFUSED}


def run(path: Path, *, as_json: bool) -> ExitCode:
    """NEVER is what submit refuses; LATER and UNKNOWN are no mistake, and not now either."""
    try:
        file = read_spec(path) if path.is_dir() else read_spec_file(path)
        with Gateway.from_settings(os.environ) as gateway:
            report: Json = gateway.ask(FITS, spec=file.spec)["fits"]
        if report["userErrors"] and not as_json:
            raise SubmitRefused(report["userErrors"], file)
    except (SpecFileRefused, SubmitRefused) as refused:
        return tell_refused(refused.problems, refused.file, err_console(), as_json=as_json)
    if as_json:
        print_json(report)
    else:
        out_console().print(fit_page(clean(report)))
    return EXITS.get(report["verdict"], ExitCode.FAILED)
