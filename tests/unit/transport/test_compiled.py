"""The compiled way where values are not what their types say, where rights are guarded, and in subscriptions."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar

import pytest
import strawberry
from graphql import execute, parse
from strawberry import Schema
from strawberry.schema.schema import StrawberryGraphQLCoreExecutionContext

from starforge.api.directives import needs, with_directives
from starforge.api.mirror import Made, Mirror, mirror
from starforge.api.transport.compiled import CompiledExecutor
from starforge.domain.rights import Role


@strawberry.enum
class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Row:
    name: Any = "a"
    size: Any = 1
    colour: Any = Colour.RED
    maybe: Any = None
    tags: Any = ("x", "y")
    parts: Any = ()


@strawberry.interface
class Named:
    name: str


@strawberry.type
class Part(Named):
    weight: int


@strawberry.type
class Other(Named):
    flag: bool


@strawberry.type
class Thing(Mirror):
    name: str
    size: int
    colour: Colour
    maybe: float | None
    tags: list[str | None]
    parts: list[Named | None]
    doubled: int
    secret: str | None = strawberry.field(directives=[needs(Role.ADMIN)])
    made: ClassVar[Made] = {"doubled": lambda this: this.mirrored.size * 2, "secret": lambda _: "s"}

    @strawberry.field
    async def slow(self) -> str:
        return "slow"

    @strawberry.field
    def failing(self) -> str | None:
        raise ValueError("it failed")


ROWS: list[Any] = []


def _things() -> list[Any]:
    return [mirror(Thing, row) if isinstance(row, Row) else row for row in ROWS]


@strawberry.type
class Query:
    @strawberry.field
    async def things(self) -> list[Thing | None]:
        return _things()

    @strawberry.field
    def firm(self) -> list[Thing] | None:
        return _things()


@strawberry.type
class Subscription:
    @strawberry.subscription
    async def follow(self) -> AsyncIterator[Thing]:
        for thing in _things():
            yield thing


@dataclass
class Everybody:
    """A caller with no rights at all."""

    asked: list[Role] = field(default_factory=list)

    @property
    def caller(self) -> "Everybody":
        return self

    def demand(self, role: Role) -> None:
        self.asked.append(role)
        raise PermissionError(f"{role} only")


def schema(executor: type[Any]) -> Schema:
    made = Schema(Query, subscription=Subscription, types=[Part, Other], execution_context_class=executor)
    with_directives(made)
    return made


COMPILED, PLAIN = schema(CompiledExecutor), schema(StrawberryGraphQLCoreExecutionContext)
PARTS = "parts { __typename name ... on Part { weight } ... on Other { flag } }"
LEAVES = f"{{ %s {{ __typename n: name size colour maybe tags {PARTS} doubled }} }}"
MIXED = "{ %s { slow name failing size again: slow doubled } }"


def answer(schema: Schema, text: str, **variables: Any) -> Any:
    async def ask() -> Any:
        result = await schema.execute(text, variables, Everybody())
        # graphql-core leaves what an error has made useless to end in the background.
        await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))
        return list_of(result.data), [error.formatted for error in result.errors or ()]

    return asyncio.run(ask())


def list_of(data: Any) -> Any:
    """Data with the order of its keys."""
    if isinstance(data, dict):
        return [(key, list_of(value)) for key, value in data.items()]
    return [list_of(one) for one in data] if isinstance(data, list) else data


STRANGE = [
    [Row()],
    [Row(parts=[Part(name="p", weight=1), Other(name="o", flag=True), None])],
    [Row(), None, Row(name="b")],
    [Row(name=None), Row()],
    [Row(size="many"), Row(size=2**31), Row(size=True), Row(size=1.0), Row(size=1.5)],
    [Row(colour="red"), Row(colour=Colour.BLUE), Row(colour="RED"), Row(colour=7)],
    [Row(maybe=float("nan")), Row(maybe=3), Row(maybe=1.5), Row(maybe="1.5")],
    [Row(name=ValueError("a value")), Row(tags=KeyError("another"))],
    [Row(tags=None), Row(tags=["x", None]), Row(tags="xy"), Row(tags={"x"}), Row(tags=[object()])],
    [Row(parts=[Part(name=None, weight=1)]), Row(parts=[Row()]), Row(parts=[Part(name="p", weight="heavy")])],  # type: ignore[arg-type]
    ["not a thing", Row()],
]


@pytest.mark.parametrize("rows", STRANGE)
@pytest.mark.parametrize("text", [LEAVES % "things", LEAVES % "firm", MIXED % "things", MIXED % "firm"])
def test_strange_values_give_the_same_data_and_errors(rows: list[Any], text: str) -> None:
    ROWS[:] = rows
    assert answer(COMPILED, text) == answer(PLAIN, text)


def test_an_error_has_its_path() -> None:
    ROWS[:] = [Row(), Row(colour=7)]
    data, errors = answer(COMPILED, "{ things { name colour } }")
    assert data == [("things", [[("name", "a"), ("colour", "RED")], None])]
    assert [error["path"] for error in errors] == [["things", 1, "colour"]]


def test_a_guarded_field_asks_for_rights_though_it_is_only_read() -> None:
    ROWS[:] = [Row()]
    context = Everybody()
    result = asyncio.run(COMPILED.execute("{ things { name secret } }", {}, context))
    assert context.asked == [Role.ADMIN]
    assert result.data == {"things": [{"name": "a", "secret": None}]}
    assert [error.path for error in result.errors or ()] == [["things", 0, "secret"]]


def test_what_variables_leave_out_is_decided_each_time() -> None:
    ROWS[:] = [Row()]
    fragment = "fragment F on Thing { name }"
    document = parse(
        "query($a: Boolean!, $b: Boolean = true) { firm { ...F @skip(if: $a) size @include(if: $b) } }" + fragment
    )

    def asked(**variables: Any) -> Any:
        result: Any = execute(COMPILED._schema, document, variable_values=variables, executor_class=CompiledExecutor)
        return list(result.data["firm"][0])

    assert asked(a=False) == ["name", "size"]
    assert asked(a=True) == ["size"]
    assert asked(a=True, b=False) == []
    assert asked(a=False, b=False) == ["name"]


def test_a_subscription_takes_it_for_each_event() -> None:
    ROWS[:] = [Row(name="a"), Row(name="b", colour=7), Row(name="c")]

    async def follow(schema: Schema) -> list[Any]:
        stream: Any = await schema.stream("subscription { follow { name colour slow } }", {}, Everybody())
        async with aclosing(stream) as events:
            return [(event.data, [error.formatted for error in event.errors or ()]) async for event in events]

    compiled = asyncio.run(follow(COMPILED))
    assert compiled == asyncio.run(follow(PLAIN))
    assert compiled[0] == ({"follow": {"name": "a", "colour": "RED", "slow": "slow"}}, [])


def test_a_mirror_is_given_nothing_that_it_reads() -> None:
    with pytest.raises(TypeError, match="say in `made`"):
        mirror(Thing, Row(), name="other")


def test_a_mirror_reads_what_is_asked_and_knows_no_other_names() -> None:
    thing = mirror(Thing, Row(size=4))
    assert (thing.doubled, thing.doubled) == (8, 8)
    with pytest.raises(AttributeError, match="nonsense"):
        thing.nonsense  # type: ignore[attr-defined]  # noqa: B018
