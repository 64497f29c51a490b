import json
from pathlib import Path

from starforge.adapters.local.environment import marker, node_environment, runner_environment
from starforge.domain.spec import EnvVar
from tests.unit.local.local_orders import order, spec

MACHINE = {"PATH": "/usr/bin", "HOME": "/home/me", "FORGE_S3_SECRET_KEY": "hush", "AWS_SECRET_ACCESS_KEY": "hush"}
RUNS = Path("/data/runs")


def runner(env: dict[str, str] | None = None) -> dict[str, str]:
    return runner_environment(
        order(env=env or {}),
        address="127.0.0.1:1",
        code=Path("/tmp/sf-1/code"),
        capsule=Path("/tmp/sf-1/capsule.zip"),
        attempt_file=RUNS / "1" / "attempt.json",
        base=MACHINE,
    )


def test_the_secrets_of_the_platform_stay_out() -> None:
    assert "hush" not in str({**node_environment(order(), MACHINE), **runner()})


def test_the_spec_decides_over_the_machine() -> None:
    job = spec(env=(EnvVar("HOME", "/elsewhere"), EnvVar("NOTE", "a 'b'\n$(HOME)")))
    env = node_environment(order(job), MACHINE)
    assert (env["HOME"], env["NOTE"]) == ("/elsewhere", "a 'b'\n$(HOME)")


def test_a_spec_can_not_take_the_mark_off() -> None:
    env = node_environment(order(env={"STARFORGE_RUN": "another"}), MACHINE)
    assert f"STARFORGE_RUN={env['STARFORGE_RUN']}" == marker(order().uid)


def test_the_driver_finds_the_node_and_its_actors_the_code() -> None:
    env = runner({"PYTHONPATH": "/more", "RAY_ADDRESS": "elsewhere"})
    assert env["RAY_ADDRESS"] == "127.0.0.1:1"
    assert env["PYTHONPATH"] == "/tmp/sf-1/code:/more"
    job_config = json.loads(env["RAY_JOB_CONFIG_JSON_ENV_VAR"])
    assert job_config == {"runtime_env": {"working_dir": "file:///tmp/sf-1/capsule.zip"}}


def test_only_the_runner_is_told_of_the_attempt() -> None:
    assert runner()["STARFORGE_ATTEMPT_FILE"] == str(RUNS / "1" / "attempt.json")
    assert "STARFORGE_ATTEMPT_FILE" not in node_environment(order(), MACHINE)
