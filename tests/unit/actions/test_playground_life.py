"""A playground from the wish for it to the proof that nothing of it is left."""

from dataclasses import replace
from datetime import timedelta

import pytest

from starforge.domain.actions.expire_playgrounds import expire_playgrounds
from starforge.domain.actions.extend_playground import extend_playground
from starforge.domain.actions.stop_playground import stop_playground
from starforge.domain.actions.submit import SubmitStatus
from starforge.domain.actions.use_playground import Use, note_use
from starforge.domain.deadlines import ClockKind, ClockState
from starforge.domain.errors import Conflict, NotFound, SpecRefused, WrongState
from starforge.domain.logs import LogState
from starforge.domain.names import PlaygroundId
from starforge.domain.observation import EventSeen
from starforge.domain.playground import PlaygroundState
from starforge.domain.queries import FeedKind
from starforge.domain.reason import ObjectRef, ReasonCode, ReasonOwner, reason
from starforge.domain.timeline import CommandKind
from tests.unit.actions.playing import DRAFT, Players
from tests.unit.actions.world import ANN, World

S = PlaygroundState


@pytest.fixture
def players(world: World) -> Players:
    return Players(world)


def test_it_starts_with_one_command(players: Players) -> None:
    created = players.create()
    assert created.status is SubmitStatus.CREATED
    assert created.playground.state is S.STARTING
    assert [players.world.take(one).command.kind for one in players.world.due()] == [CommandKind.START_PLAYGROUND]


def test_the_fleet_is_asked_once_for_it(players: Players) -> None:
    id_ = players.starting()
    one = players.get(id_)
    (order,) = players.world.fleet.launches
    assert (order.run, order.name) == (one.key, one.pod_name)
    assert one.launched_at
    assert one.run


def test_it_is_ready_when_its_pod_is(players: Players) -> None:
    id_ = players.starting()
    players.see(id_, players.pod(id_, ready=False))
    held = players.get(id_).reason
    assert held
    assert held.message == "The server runs and loads the model."
    players.see(id_, players.pod(id_))
    one = players.get(id_)
    assert one.state is S.READY
    assert one.reason is None
    assert one.expires_at == players.world.clock() + timedelta(seconds=600)
    clocks = {clock.kind: clock.state for clock in one.clocks}
    assert clocks == {
        ClockKind.PRE_RUNNING: ClockState.STOPPED,
        ClockKind.TIME_TO_LIVE: ClockState.RUNNING,
        ClockKind.IDLE: ClockState.RUNNING,
    }


def test_a_key_makes_it_safe_to_ask_again(players: Players) -> None:
    first = players.create(key="key")
    again = players.create(key="key")
    assert (again.status, again.playground.id) == (SubmitStatus.REPLAYED, first.playground.id)
    with pytest.raises(Conflict):
        players.create(replace(DRAFT, gpus=2), key="key")


def test_what_is_wrong_is_told_by_its_own_fields(players: Players) -> None:
    draft = replace(DRAFT, gpus=99, model="../x", args=("--port=1", "--served_model_name", "--ho"), ttl_seconds=1)
    with pytest.raises(SpecRefused) as refused:
        players.create(draft, key="")
    fields = {problem.field for problem in refused.value.problems}
    assert fields == {
        ("gpus",),
        ("model",),
        *(("args", str(at)) for at in range(3)),
        ("ttlSeconds",),
        ("idempotencyKey",),
    }


@pytest.mark.parametrize(
    "model", ["/etc/passwd", "/starforge/../etc", "/starforge/", "a/b/c", "-x", "a b", "/starforge2/x"]
)
def test_a_model_is_of_the_hub_or_below_the_storage_root(players: Players, model: str) -> None:
    with pytest.raises(SpecRefused):
        players.create(replace(DRAFT, model=model))


def test_a_path_is_served_by_its_last_name(players: Players) -> None:
    spec = players.create(replace(DRAFT, model="/starforge/runs/7/step_100")).playground.spec
    assert spec.served_model_name == "step_100"


def test_it_is_announced_before_it_expires_and_then_stopped(players: Players) -> None:
    id_ = players.ready()
    players.pass_time(541)
    assert players.get(id_).state is S.EXPIRING
    players.pass_time(60)
    one = players.get(id_)
    assert one.state is S.STOPPED
    assert one.reason
    assert one.reason.code is ReasonCode.IDLE
    assert one.released_at
    assert players.states(id_) == [S.STARTING, S.READY, S.EXPIRING, S.STOPPED]


def test_who_uses_it_keeps_it_alive_until_its_time_to_live_is_over(players: Players) -> None:
    id_ = players.ready()
    for _ in range(8):
        note_use(players.world.ports, id_, Use("one", 0, 1, 10, 20, (0.5,), players.world.clock()))
        players.pass_time(450)
    one = players.get(id_)
    assert one.state is S.STOPPED
    assert one.reason
    assert one.reason.code is ReasonCode.EXPIRED
    assert (one.usage.requests, one.usage.prompt_tokens, one.usage.completion_tokens) == (8, 80, 160)
    assert one.ended_at
    assert one.ready_at
    assert (one.ended_at - one.ready_at).total_seconds() == 3600


def test_use_takes_back_what_was_announced(players: Players) -> None:
    id_ = players.ready()
    players.pass_time(560)
    assert players.get(id_).state is S.EXPIRING
    one = note_use(players.world.ports, id_, Use("one", 1, 1))
    assert one.state is S.READY
    assert one.usage.active_requests == 1


def test_a_long_stream_is_no_idleness_while_its_gateway_tells_of_it(players: Players) -> None:
    id_ = players.ready()
    for _ in range(40):
        note_use(players.world.ports, id_, Use("one", 1))
        players.pass_time(30)
    assert players.get(id_).state is S.READY
    players.pass_time(601)
    one = players.get(id_)
    assert (one.state, one.usage.active_requests) == (S.STOPPED, 0)


def test_two_gateways_answer_together(players: Players) -> None:
    id_ = players.ready()
    note_use(players.world.ports, id_, Use("one", 2, 2))
    one = note_use(players.world.ports, id_, Use("two", 3, 3))
    assert (one.usage.active_requests, one.usage.requests) == (5, 5)
    assert note_use(players.world.ports, id_, Use("one", 0)).usage.active_requests == 3


def test_it_is_extended_and_never_shortened(players: Players) -> None:
    id_, ports = players.ready(), players.world.ports
    until = players.world.clock() + timedelta(seconds=7200)
    assert extend_playground(ports, id_, 7200, ANN).expires_at == until
    revision = players.get(id_).revision
    assert extend_playground(ports, id_, 60, ANN).expires_at == until
    assert extend_playground(ports, id_, 7200, ANN).revision == revision
    for seconds in (59, 10**6):
        with pytest.raises(WrongState):
            extend_playground(ports, id_, seconds, ANN)


def test_only_what_answers_is_extended(players: Players) -> None:
    id_, ports = players.starting(), players.world.ports
    with pytest.raises(WrongState):
        extend_playground(ports, id_, 100, ANN)
    stop_playground(ports, id_, ANN)
    with pytest.raises(WrongState):
        extend_playground(ports, id_, 100, ANN)
    with pytest.raises(NotFound):
        extend_playground(ports, PlaygroundId("play-none"), 100, ANN)


def test_it_is_stopped_removed_and_its_log_kept(players: Players) -> None:
    id_ = players.ready()
    players.say(id_, "one", "two")
    stop_playground(players.world.ports, id_, ANN)
    players.world.work()
    assert players.get(id_).released_at
    players.say(id_, "three", closed=True)
    players.pass_time(1)
    one = players.get(id_)
    assert (one.state, one.reason and one.reason.code) == (S.STOPPED, ReasonCode.CANCELED)
    assert one.logs_archived_at
    (source,) = players.world.sql.log_sources([one.key])[one.key]
    assert (source.key, source.state, source.lines) == (one.log, LogState.CLOSED, 3)
    assert players.world.objects.objects[source.object_key or ""] == b"one\ntwo\nthree\n"
    assert stop_playground(players.world.ports, id_, ANN).revision == one.revision


def test_a_log_that_nobody_reads_to_its_end_is_closed_with_a_gap(players: Players) -> None:
    id_ = players.ready()
    players.say(id_, "one")
    stop_playground(players.world.ports, id_, ANN)
    players.pass_time(25)
    one = players.get(id_)
    assert one.logs_archived_at
    (source,) = players.world.sql.log_sources([one.key])[one.key]
    assert source.state is LogState.TRUNCATED


@pytest.mark.parametrize(
    ("code", "why", "told"), [(1, None, ReasonCode.SERVER_FAILED), (137, "OOMKilled", ReasonCode.OOM_KILLED)]
)
def test_a_server_that_ends_by_itself_has_failed(
    players: Players, code: int, why: str | None, told: ReasonCode
) -> None:
    id_ = players.ready()
    players.see(id_, players.ended_pod(id_, code, why))
    one = players.get(id_)
    assert (one.state, one.reason and one.reason.code) == (S.FAILED, told)
    players.world.work()
    assert players.get(id_).released_at


def test_a_pod_that_somebody_deletes_is_no_stop(players: Players) -> None:
    id_ = players.ready()
    players.gone(id_)
    one = players.get(id_)
    assert (one.state, one.reason and one.reason.code) == (S.FAILED, ReasonCode.DELETED_OUTSIDE)


def test_what_was_never_launched_is_not_taken_for_deleted(players: Players) -> None:
    id_ = players.create().playground.id
    players.gone(id_)
    assert players.get(id_).state is S.STARTING


def test_a_refusal_of_the_fleet_ends_it(players: Players) -> None:
    players.world.fleet.refuses = reason(ReasonCode.QUOTA, "No room.", players.world.clock())
    id_ = players.starting()
    one = players.get(id_)
    assert (one.state, one.reason and one.reason.code) == (S.FAILED, ReasonCode.QUOTA)
    assert one.released_at


def test_a_start_that_takes_too_long_ends_it(players: Players) -> None:
    id_ = players.starting()
    players.see(id_, players.pod(id_, ready=False))
    players.pass_time(1801)
    one = players.get(id_)
    assert (one.state, one.reason and one.reason.code) == (S.FAILED, ReasonCode.SERVER_FAILED)


def test_a_start_waits_for_a_fleet_that_is_away_and_says_so(players: Players) -> None:
    players.world.fleet.down = "The API is down."
    id_ = players.starting()
    held = players.get(id_).reason
    assert (held and held.code) is ReasonCode.API_UNAVAILABLE
    players.world.fleet.down = None
    players.pass_time(5)
    assert players.get(id_).launched_at


def test_a_fleet_that_fails_for_ever_is_given_up(players: Players) -> None:
    players.world.fleet.broken = True
    id_ = players.starting()
    players.pass_time(300)
    one = players.get(id_)
    assert (one.state, one.reason and one.reason.code) == (S.FAILED, ReasonCode.INTERNAL)
    assert one.released_at is None
    players.world.fleet.broken = False
    players.pass_time(60)
    assert players.get(id_).released_at


def test_removal_goes_on_while_the_fleet_is_away(players: Players) -> None:
    id_ = players.ready()
    players.world.fleet.down = "The API is down."
    stop_playground(players.world.ports, id_, ANN)
    players.pass_time(100)
    left = players.get(id_).teardown
    assert left
    assert left.reason
    players.world.fleet.down = None
    players.pass_time(60)
    assert players.get(id_).released_at


def test_stopped_before_it_was_launched_it_never_is(players: Players) -> None:
    id_ = players.create().playground.id
    stop_playground(players.world.ports, id_, ANN)
    players.world.work()
    assert players.world.fleet.launches == []
    assert players.get(id_).released_at


def test_a_launch_that_comes_after_the_end_is_undone(players: Players) -> None:
    id_ = players.create().playground.id
    players.world.fleet.during_launch = lambda: stop_playground(players.world.ports, id_, ANN)
    players.world.work()
    players.pass_time(5)
    assert players.world.fleet.orders == {}
    assert players.get(id_).released_at


def test_what_comes_after_the_release_is_removed_at_sight(players: Players) -> None:
    id_ = players.ready()
    stop_playground(players.world.ports, id_, ANN)
    players.gone(id_)
    players.pass_time(25)
    players.world.fleet.deletes.clear()
    players.see(id_, players.pod(id_))
    players.world.work()
    assert players.world.fleet.deletes


def test_kubernetes_events_are_in_its_timeline(players: Players) -> None:
    id_ = players.starting()
    at, one = players.world.clock(), players.get(id_)
    ref = ObjectRef("Pod", one.pod_name, "training", "uid")
    players.world.observer.observe([EventSeen(one.key, "1", ref, "Pulling", False, "Pulling image", 1, at, at)])
    assert "Pulling image" in " ".join(entry.message for entry in players.entries(id_))


def test_every_change_has_a_row_of_the_feed_with_its_revision(players: Players) -> None:
    id_ = players.ready()
    rows = [row for row in players.world.feed() if row.kind is FeedKind.PLAYGROUND]
    assert {row.subject for row in rows} == {id_}
    assert rows[-1].revision == players.get(id_).revision
    assert {row.project for row in rows} == {"default"}


def test_a_picture_in_which_nothing_is_new_is_told_to_nobody(players: Players) -> None:
    id_ = players.ready()
    before = len(players.world.feed())
    players.world.clock.forward(400)
    players.see(id_, players.pod(id_))
    assert len(players.world.feed()) == before


def test_two_workers_expire_it_once(players: Players) -> None:
    id_ = players.ready()
    players.pass_time(599)
    players.world.clock.forward(1)
    players.world.store.interfere.append(lambda: expire_playgrounds(players.world.ports))
    expire_playgrounds(players.world.ports)
    assert players.states(id_).count(S.STOPPED) == 1


def test_whose_move_it_is(players: Players) -> None:
    assert reason(ReasonCode.SERVER_FAILED, "", players.world.clock()).whose is ReasonOwner.USER
