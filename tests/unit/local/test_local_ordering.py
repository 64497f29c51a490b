import json
from datetime import UTC, datetime
from pathlib import Path

from starforge.adapters.local.ordering import attempt_file, run_order
from starforge.domain.names import Digest, JobId, RunKey
from starforge.domain.ports import LaunchOrder, Signed
from starforge.domain.spec import EnvVar
from tests.unit.local.local_orders import spec

UNTIL = datetime(2026, 1, 2, tzinfo=UTC)


def launch(claim_url: str) -> LaunchOrder:
    return LaunchOrder(
        run=RunKey(JobId("job-1"), 2),
        name="digits-1",
        spec=spec(env=(EnvVar("NOTE", "x"),)),
        capsule=Signed("GET", "https://store/c.zip?sig", (), UNTIL),
        capsule_digest=Digest("c" * 64),
        transport_sha256="0" * 64,
        claim=Signed("PUT", claim_url, (("If-None-Match", "*"),), UNTIL),
        claim_until=UNTIL,
        nonce="n",
    )


def attempt(claim_url: str) -> dict[str, object]:
    written = json.loads(attempt_file(launch(claim_url), stream=Path("/runs/1/head.log"), ca_file="/ca.pem"))
    assert isinstance(written, dict)
    return written


def test_a_claim_in_a_directory_is_a_path() -> None:
    assert attempt("file:///objects/a%20b/claim")["claim"] == {"path": "/objects/a b/claim"}


def test_a_claim_over_http_keeps_its_condition() -> None:
    headers = {"If-None-Match": "*"}
    expected = {"url": "https://store/claim?sig", "headers": headers, "ca_file": "/ca.pem"}
    assert attempt("https://store/claim?sig")["claim"] == expected


def test_the_runner_writes_into_the_head_s_log_until_the_claim_s_time() -> None:
    written = attempt("file:///claim")
    assert (written["stream"], written["claim_until"], written["nonce"]) == ("/runs/1/head.log", UNTIL.timestamp(), "n")


def test_the_order_of_a_run_has_all_that_its_supervisor_needs() -> None:
    made = run_order(
        launch("file:///claim"), uid="u", scratch=Path("/tmp/s"), fleet_gpus={"h200": 8}, ca_file=None, created_at=1.0
    )
    assert (made.job, made.attempt, made.env, made.grace_s) == ("job-1", 2, {"NOTE": "x"}, 10)
    assert (made.node.pools, made.fleet_gpus, made.scratch) == ({"train": 2, "eval": 1}, {"h200": 8}, "/tmp/s")
