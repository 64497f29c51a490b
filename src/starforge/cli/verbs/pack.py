"""`starforge pack`: what of a directory goes into a Capsule. It asks no gateway."""

import shutil
import tempfile
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from starforge.adapters.packing.packer import CapsulePacker
from starforge.adapters.packing.walk import LeftOut, Walk, walk_code
from starforge.cli.answers import Json
from starforge.cli.consoles import err_console, out_console, print_json
from starforge.cli.exits import ExitCode
from starforge.cli.specfile import SpecFile
from starforge.cli.views.problems import problems_table
from starforge.cli.waiting import patiently
from starforge.cli.words import size
from starforge.domain.capsule import PackedCode
from starforge.domain.errors import CodeRefused

LARGEST = 10
LEFT_OUT_SHOWN = 5


def run(directory: Path, *, output: Path | None, as_json: bool) -> ExitCode:
    """Packs it, shows what goes, and keeps the zip at `output` if that is given."""
    err = err_console()
    walk = walk_code(directory)
    with tempfile.TemporaryDirectory(prefix="starforge-", ignore_cleanup_errors=True) as scratch:
        packer = CapsulePacker(Path(scratch))
        try:
            code = patiently(err, "Packing", lambda: packer.pack_directory(directory, Path(scratch)))
        except CodeRefused as refused:
            return _refused(refused, err, as_json=as_json)
        if output:
            shutil.copyfile(code.archive, output)
    if as_json:
        print_json(_as_json(code, walk))
    else:
        _show(code, walk, out_console())
    return ExitCode.SUCCEEDED


def _show(code: PackedCode, walk: Walk, out: Console) -> None:
    total = sum(file.size for file in code.files)
    out.print(Text(f"{len(code.files)} files, {size(total)}, packed {size(code.bytes)}", "bold"))
    out.print(f"digest {code.digest}\n", soft_wrap=True)
    out.print(_largest(code))
    if walk.left_out:
        out.print(Text("\nLeft out", "bold"))
        out.print(_left_out(walk.left_out))


def _largest(code: PackedCode) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(justify="right")
    for file in sorted(code.files, key=lambda file: -file.size)[:LARGEST]:
        table.add_row(Text(size(file.size)), Text(file.path), Text("executable" if file.executable else "", "dim"))
    if len(code.files) > LARGEST:
        table.add_row("", Text(f"… and {len(code.files) - LARGEST} smaller ones", "dim"))
    return table


def _left_out(left_out: Sequence[LeftOut]) -> Table:
    """A row for each rule that kept something out."""
    table = Table.grid(padding=(0, 2, 0, 0))
    by_rule = sorted(left_out, key=lambda one: one.because)
    for rule, group in groupby(by_rule, key=lambda one: one.because):
        paths = [one.path for one in group]
        more = f" and {len(paths) - LEFT_OUT_SHOWN} more" if len(paths) > LEFT_OUT_SHOWN else ""
        table.add_row(Text(rule, "dim"), Text(", ".join(paths[:LEFT_OUT_SHOWN]) + more))
    return table


def _as_json(code: PackedCode, walk: Walk) -> Json:
    files = [
        {"path": file.path, "bytes": file.size, "sha256": file.sha256, "executable": file.executable}
        for file in code.files
    ]
    return {
        "digest": code.digest,
        "bytes": code.bytes,
        "transportSha256": code.transport_sha256,
        "files": files,
        "leftOut": [{"path": one.path, "because": one.because} for one in walk.left_out],
    }


def _refused(refused: CodeRefused, err: Console, *, as_json: bool) -> ExitCode:
    if as_json:
        problems = [
            {"code": one.code, "message": one.message, "path": one.file, "rule": one.rule} for one in refused.problems
        ]
        print_json({"status": "REFUSED", "userErrors": problems})
    err.print("It can't be packed as it is:")
    err.print(problems_table(refused.problems, SpecFile()))
    return ExitCode.REFUSED
