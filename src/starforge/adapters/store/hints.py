"""What a database can't know about a condition."""

from typing import Any, Self

from sqlalchemy import Boolean, ColumnElement
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.expression import FunctionElement
from sqlalchemy.sql.operators import OperatorType


class Unlikely(FunctionElement[bool]):
    """A condition that few rows meet. SQLite, which keeps no statistics, would rather walk through every row in the
    order asked for; Postgres knows better by itself."""

    type = Boolean()
    name = "unlikely"
    inherit_cache = True

    def __init__(self, condition: ColumnElement[bool]) -> None:
        super().__init__(condition)

    def self_group(self, against: OperatorType | None = None) -> Self:
        return self  # SQLAlchemy would compare it with 1, and no index serves that


@compiles(Unlikely)
def _plain(element: Unlikely, compiler: Any, **options: Any) -> str:
    return str(compiler.process(element.clauses.clauses[0], **options))


@compiles(Unlikely, "sqlite")
def _hinted(element: Unlikely, compiler: Any, **options: Any) -> str:
    return f"unlikely({compiler.process(element.clauses.clauses[0], **options)})"
