"""FORGE_* settings: what is taken, what is refused with which sentence, and that the documentation lists them all."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from starforge.adapters.settings import (
    SubmissionMode,
    as_table,
    describe,
    load_client_settings,
    load_database_settings,
    load_settings,
)
from starforge.domain.errors import SettingsWrong
from starforge.domain.ports import FleetKind
from starforge.domain.rights import Role

LOCAL = {"FORGE_DEFAULT_FLEET_KIND": "local"}
S3 = {"FORGE_S3_ENDPOINT": "https://s3.internal/", "FORGE_S3_ACCESS_KEY": "access", "FORGE_S3_SECRET_KEY": "hush"}
OPERATIONS = Path(__file__).parents[2] / "docs" / "operations.md"


def refused(env: Mapping[str, str], required: tuple[str, ...] = ()) -> dict[str, str]:
    """The sentences of the settings that are refused, by name."""
    with pytest.raises(SettingsWrong) as caught:
        load_settings(env, required=required)
    return {problem.field[0]: problem.message for problem in caught.value.problems}


def test_the_defaults_are_those_of_the_documentation() -> None:
    settings = load_settings(S3)
    assert settings.default_fleet_kind is FleetKind.KUBERAY
    assert (settings.fleet, settings.k8s_namespace, settings.k8s_gpu_node_label) == (
        "kuberay", "starforge", "starforge/gpu-series",
    )  # fmt: skip
    assert (settings.kuberay_ray_version, settings.kuberay_ttl_seconds) == ("2.55.1", 600)
    assert settings.kuberay_prerunning_deadline_s == 1800
    assert (settings.default_cpus, settings.default_memory, settings.k8s_shm_size) == (1, "2Gi", "64Gi")
    assert settings.kuberay_submission_mode is SubmissionMode.HTTP
    assert settings.k8s_gpu_passthrough
    assert settings.k8s_storage_shared


def test_values_are_typed(tmp_path: Path) -> None:
    (tmp_path / "ca").touch()
    settings = load_settings(
        S3
        | {
            "FORGE_K8S_GPU_PASSTHROUGH": "0", "FORGE_K8S_STORAGE_SHARED": "False", "FORGE_LOCAL_GPUS": "h200:8, b200:4",
            "FORGE_S3_CA_FILE": str(tmp_path / "ca"), "FORGE_KUBERAY_SUBMISSION_MODE": "K8sJobMode",
            "FORGE_FLEET_NAME": "berlin", "FORGE_KUBERAY_TTL_SECONDS": "60",
        }
    )  # fmt: skip
    assert not settings.k8s_gpu_passthrough
    assert not settings.k8s_storage_shared
    assert settings.local_gpus == {"h200": 8, "b200": 4}
    assert settings.s3_ca_file == tmp_path / "ca"
    assert settings.kuberay_submission_mode is SubmissionMode.K8S_JOB
    assert settings.fleet == "berlin"
    assert settings.s3_endpoint == "https://s3.internal"
    assert settings.kuberay_ttl_seconds == 60


def test_only_the_given_environment_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORGE_PORT", "1")
    assert load_settings(LOCAL | {"PATH": "/bin"}).port == 8000


def test_an_empty_setting_is_not_set() -> None:
    assert load_settings(LOCAL | {"FORGE_PORT": "", "FORGE_K8S_TOKEN": ""}).port == 8000


def test_what_is_not_set_lies_in_the_data_directory() -> None:
    settings = load_settings(LOCAL | {"FORGE_DATA_DIR": "/data"})
    assert settings.objects == Path("/data/objects")
    assert settings.database == "sqlite:////data/starforge.db"
    assert settings.address == "http://127.0.0.1:8000"


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("FORGE_DEFAULT_FLEET_KIND", "slurm", "=slurm must be kuberay, local or simulated; for example"),
        ("FORGE_K8S_GPU_PASSTHROUGH", "yes", "=yes must be 0, 1, true or false"),
        ("FORGE_KUBERAY_TTL_SECONDS", "1.5", "=1.5 must be a whole number; for example FORGE_KUBERAY_TTL_SECONDS=600."),
        ("FORGE_PORT", "70000", "=70000 must be at most 65535"),
        ("FORGE_FEED_RETENTION_S", "1", "=1 must be at least 60"),
        ("FORGE_S3_URL_MAX_S", "604801", "must be at most 604800"),
        ("FORGE_DEFAULT_MEMORY", "2 GB", "=2 GB must be a quantity"),
        ("FORGE_K8S_SHM_SIZE", "much", "must be a quantity"),
        ("FORGE_K8S_NAMESPACE", "Star_Forge", "must be lower-case letters"),
        ("FORGE_K8S_CA_FILE", "/nowhere/ca.crt", "=/nowhere/ca.crt is not there, or is no file"),
        ("FORGE_K8S_API_SERVER", "10.0.0.1:6443", "must be an http or https address"),
        ("FORGE_PUBLIC_URL", "https://user:hush@x", "must hold no user or password"),
        ("FORGE_STORAGE_ROOT", "starforge", "must be an absolute path"),
        ("FORGE_KUBERAY_SUBMISSION_MODE", "ssh", "must be 'HTTPMode' or 'K8sJobMode'"),
        ("FORGE_LOCAL_GPUS", "h200", "must be a list of series:count"),
        ("FORGE_LOCAL_GPUS", "h200:1,h200:2", "each series once"),
        ("FORGE_REDIS_URL", "http://x", "must start with redis://"),
        ("FORGE_OIDC_ROLES", "ml", "must be a list of value=ROLE"),
        ("FORGE_OIDC_ROLES", "ml=BOSS", "with VIEWER, SUBMITTER or ADMIN"),
        ("FORGE_OIDC_ROLES", "ml=ADMIN,ml=VIEWER", "each value once"),
        ("FORGE_OIDC_ISSUER", "login.example.com", "must be an http or https address"),
    ],
)
def test_a_wrong_value_is_refused_with_a_sentence(name: str, text: str, words: str) -> None:
    found = refused(LOCAL | {name: text})
    assert name in found
    assert words in found[name]
    assert found[name].startswith(name)
    assert found[name].count("; for example FORGE_") == 1


@pytest.mark.parametrize("name", ["FORGE_DATABASE_URL", "FORGE_REDIS_URL", "FORGE_K8S_TOKEN", "FORGE_S3_SECRET_KEY"])
def test_a_secret_is_never_repeated(name: str) -> None:
    found = refused(LOCAL | {name: "mysql://user:hush now@db"})
    assert "hush" not in " ".join(found.values())
    assert name in found


def test_secrets_are_hidden_in_what_is_printed() -> None:
    assert "hush" not in repr(load_settings(S3 | {"FORGE_BOOTSTRAP_TOKEN": "hush-hush"}))


def test_every_problem_is_told_at_once() -> None:
    assert set(refused({"FORGE_PORT": "x", "FORGE_HOTS": "y"}, ("FORGE_REDIS_URL",))) == {
        "FORGE_PORT", "FORGE_HOTS", "FORGE_REDIS_URL", *S3,
    }  # fmt: skip


def test_an_unknown_setting_is_refused_with_the_one_that_was_meant() -> None:
    found = refused(LOCAL | {"FORGE_S3_BUKET": "x", "FORGE_COLOUR": "red"})
    assert found["FORGE_S3_BUKET"] == "FORGE_S3_BUKET is not a setting: did you mean FORGE_S3_BUCKET?"
    assert "docs/operations.md" in found["FORGE_COLOUR"]


def test_kuberay_needs_an_object_store_and_other_fleets_a_whole_one_or_none() -> None:
    assert set(refused({})) == set(S3)
    assert set(refused(LOCAL | {"FORGE_S3_ENDPOINT": "http://s3"})) == {"FORGE_S3_ACCESS_KEY", "FORGE_S3_SECRET_KEY"}
    assert load_settings(LOCAL | S3).s3_endpoint
    assert load_settings(LOCAL).s3_endpoint is None


def test_there_is_one_token_and_a_server_that_it_is_for(tmp_path: Path) -> None:
    (tmp_path / "token").touch()
    both = {"FORGE_K8S_TOKEN": "t", "FORGE_K8S_TOKEN_FILE": str(tmp_path / "token")}
    server = {"FORGE_K8S_API_SERVER": "https://10.0.0.1:6443"}
    assert "exclude each other" in refused(S3 | both | server)["FORGE_K8S_TOKEN"]
    assert set(refused(S3 | {"FORGE_K8S_TOKEN": "t"})) == {"FORGE_K8S_API_SERVER"}
    assert set(refused(S3 | server)) == {"FORGE_K8S_TOKEN"}
    assert load_settings(S3 | server | {"FORGE_K8S_TOKEN": "t"}).k8s_token


def test_an_issuer_is_named_as_it_names_itself_and_with_an_audience() -> None:
    issuer = {"FORGE_OIDC_ISSUER": "https://login.example.com/"}
    assert load_settings(LOCAL | issuer | {"FORGE_OIDC_AUDIENCE": "forge"}).oidc_issuer == issuer["FORGE_OIDC_ISSUER"]
    assert set(refused(LOCAL | issuer)) == {"FORGE_OIDC_AUDIENCE"}
    assert set(refused(LOCAL | {"FORGE_OIDC_ROLES": "ml=ADMIN"})) == {"FORGE_OIDC_AUDIENCE", "FORGE_OIDC_ISSUER"}


def test_roles_are_the_last_word_of_each_part() -> None:
    env = LOCAL | {
        "FORGE_OIDC_ISSUER": "https://x",
        "FORGE_OIDC_AUDIENCE": "a",
        "FORGE_OIDC_ROLES": "cn=ml=ADMIN, b=VIEWER",
    }
    assert load_settings(env).oidc_roles == {"cn=ml": Role.ADMIN, "b": Role.VIEWER}


def test_the_database_is_enough_for_tokens() -> None:
    env = {"FORGE_DATABASE_URL": "sqlite:////forge.db", "FORGE_PORT": "wrong", "FORGE_OIDC_ROLES": "wrong"}
    assert load_database_settings(env).database == "sqlite:////forge.db"
    with pytest.raises(SettingsWrong, match="FORGE_DATABASE_URL must start with"):
        load_database_settings({"FORGE_DATABASE_URL": "mysql://x"})


def test_client_verbs_need_none_of_the_server_s_settings() -> None:
    client = load_client_settings({"FORGE_URL": "https://forge/", "FORGE_TOKEN": "hush", "FORGE_PORT": "wrong"})
    assert client.url == "https://forge"
    assert client.token is not None
    assert client.token.get_secret_value() == "hush"
    assert load_client_settings({}).url == "http://127.0.0.1:8000"
    with pytest.raises(SettingsWrong, match="FORGE_URL=forge must be an http or https address"):
        load_client_settings({"FORGE_URL": "forge"})


def test_settings_of_the_client_are_known_to_the_server() -> None:
    assert load_settings(LOCAL | {"FORGE_URL": "http://x", "FORGE_TOKEN": "t"}).port == 8000


def test_every_setting_is_described() -> None:
    assert all(re.fullmatch(r"[A-Z0-9].*\.", one.description) for one in describe())


def test_the_documentation_has_the_table_of_the_code() -> None:
    text = OPERATIONS.read_text(encoding="utf-8")
    table = text.partition("<!-- settings -->\n")[2].partition("\n<!-- end of settings -->")[0]
    assert table == as_table(), f"Put this between the marks in docs/operations.md:\n{as_table()}"
