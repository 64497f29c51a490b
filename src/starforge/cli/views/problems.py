"""What is wrong with a spec or with code, as a table."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from starforge.cli.specfile import SpecFile, shown
from starforge.cli.words import clean
from starforge.domain.errors import Problem


def problems_table(problems: Sequence[Problem], file: SpecFile) -> Table:
    """A row for each: the field in the words of starforge.yaml with its line, or the file of the code; what to do."""
    table = Table(box=None, pad_edge=False, header_style="bold dim")
    table.add_column("LINE", justify="right", no_wrap=True)
    table.add_column("WHERE", no_wrap=True, overflow="fold")
    table.add_column("WHAT IS WRONG")
    for problem in problems:
        line = None if problem.file else file.line_of(problem.field)
        where = problem.file or shown(problem.field)
        table.add_row(Text(str(line or ""), "dim"), Text(clean(where), "bold"), Text(clean(problem.message)))
    return table
