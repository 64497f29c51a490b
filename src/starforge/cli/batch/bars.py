"""Progress bars of a batch on a terminal; nothing elsewhere."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from starforge.cli.answers import Json
from starforge.cli.words import words


@contextmanager
def sending_bar(console: Console, total: int) -> Iterator[Callable[[int], None]]:
    """Gives what to call with how many jobs are submitted."""
    with _bar(console) as progress:
        task = progress.add_task("Submitting", total=total)
        yield lambda done: progress.update(task, completed=done)


@contextmanager
def following_bar(console: Console, total: int) -> Iterator[Callable[[Json], None]]:
    """Gives what to call with each new version of a job."""
    states: dict[str, str] = {}
    with _bar(console) as progress:
        task = progress.add_task("Waiting", total=total)

        def told(job: Json) -> None:
            states[job["id"]] = job["state"]
            counts = Counter(states.values())
            said = ", ".join(f"{count} {words(state)}" for state, count in counts.most_common())
            ended = sum(counts[state] for state in ("SUCCEEDED", "FAILED", "CANCELED"))
            progress.update(task, completed=ended, description=said)

        yield told


def _bar(console: Console) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
