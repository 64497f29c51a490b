"""The schema, put together from the rooms, and its text."""

import strawberry
from strawberry.schema.config import StrawberryConfig

from starforge.api.capacity.fits import FitQueries
from starforge.api.capacity.queries import CapacityQueries
from starforge.api.capacity.subscriptions import CapacitySubscriptions
from starforge.api.capsules.mutations import CapsuleMutations
from starforge.api.directives import with_directives
from starforge.api.events import types as events
from starforge.api.events.subscriptions import EventSubscriptions
from starforge.api.fleets import FleetQueries
from starforge.api.health.queries import HealthQueries
from starforge.api.health.subscriptions import HealthSubscriptions
from starforge.api.jobs.batch import BatchMutations
from starforge.api.jobs.counts import CountQueries
from starforge.api.jobs.mutations import JobMutations
from starforge.api.jobs.queries import JobQueries
from starforge.api.jobs.subscriptions import JobSubscriptions
from starforge.api.logs.subscriptions import LogSubscriptions
from starforge.api.payloads import CodeError, ConflictError, InputError, UnsatisfiableError
from starforge.api.plain_inputs import read_inputs_plainly
from starforge.api.scalars import SCALARS
from starforge.api.transport.compiled import CompiledExecutor
from starforge.api.transport.schema import GatewaySchema
from starforge.api.viewer import ViewerQueries


@strawberry.type(description="Everything that can be read.")
class Query(ViewerQueries, JobQueries, CountQueries, FleetQueries, CapacityQueries, FitQueries, HealthQueries): ...


@strawberry.type(
    description=(
        "Everything that can be done; each is one database transaction and is safe to send again as the schema's note on "
        "retries says."
    )
)
class Mutation(CapsuleMutations, JobMutations, BatchMutations): ...


@strawberry.type(
    description=(
        "Everything that can be followed live; each starts with a snapshot, or after a cursor, and then sends every change."
    )
)
class Subscription(
    JobSubscriptions, EventSubscriptions, LogSubscriptions, HealthSubscriptions, CapacitySubscriptions
): ...


EVENTS = [
    events.JobStateEvent,
    events.ReasonEvent,
    events.ActionEvent,
    events.ClockEvent,
    events.PodEvent,
    events.LogEvent,
    events.TeardownEvent,
    events.CommandEvent,
    events.FleetEvent,
    events.KubernetesEvent,
]


def make_schema() -> GatewaySchema:
    """The schema of the gateway."""
    schema = GatewaySchema(
        query=Query,
        mutation=Mutation,
        subscription=Subscription,
        types=[*EVENTS, InputError, ConflictError, CodeError, UnsatisfiableError],
        config=StrawberryConfig(scalar_map=dict(SCALARS)),
        execution_context_class=CompiledExecutor,
    )
    with_directives(schema)
    read_inputs_plainly(schema)
    return schema


def print_schema() -> str:
    """The schema's text, as it is committed in schema.graphql."""
    return make_schema().as_str() + "\n"
