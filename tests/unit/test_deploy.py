"""What deploy/ and scripts/e2e/ promise to each other and to docs/kubernetes.md."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
SCRIPTS = sorted((ROOT / "scripts/e2e").glob("*.sh"))
BASH = shutil.which("bash") or "/bin/bash"


class Rule(NamedTuple):
    scope: str
    group: str
    resource: str
    verbs: str


def documents(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(path.read_text()))


def only(path: Path, kind: str, name: str | None = None) -> dict[str, Any]:
    [found] = [d for d in documents(path) if d["kind"] == kind and name in (None, d["metadata"]["name"])]
    return found


def rules_of(kind: str, scope: str) -> set[Rule]:
    found = set()
    for rule in only(DEPLOY / "rbac.yaml", kind)["rules"]:
        names = f" ({' '.join(rule['resourceNames'])})" if "resourceNames" in rule else ""
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                found.add(Rule(scope, group or "core", resource + names, " ".join(rule["verbs"])))
    return found


def rules_in_docs() -> set[Rule]:
    lines = (ROOT / "docs/kubernetes.md").read_text().splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return {Rule(*row[:4]) for row in rows if row[0] in ("namespace", "cluster")}


def run(script: str, *arguments: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = [BASH, str(ROOT / "scripts/e2e" / script), *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=30, check=False)


@pytest.fixture
def bare_path(tmp_path: Path) -> Path:
    """A folder for PATH with the few tools every machine has, and none of Docker, kind, kubectl and helm."""
    for tool in ("basename", "cat", "chmod", "dirname", "ln", "mkdir", "mktemp", "rm"):
        (tmp_path / tool).symlink_to(shutil.which(tool) or pytest.fail(f"this machine has no {tool}"))
    return tmp_path


def add_tool(folder: Path, name: str, script: str) -> None:
    (folder / name).write_text(f"#!{BASH}\n{script}\n")
    (folder / name).chmod(0o755)


@pytest.mark.parametrize("path", sorted(DEPLOY.rglob("*.yaml")), ids=lambda path: str(path.relative_to(DEPLOY)))
def test_every_file_is_a_list_of_kubernetes_objects(path: Path) -> None:
    for document in documents(path):
        assert {"apiVersion", "kind"} <= document.keys()


def test_rights_are_those_in_the_docs() -> None:
    assert rules_of("Role", "namespace") | rules_of("ClusterRole", "cluster") == rules_in_docs()


def test_no_right_is_a_wildcard_or_lets_one_gain_more() -> None:
    words = {
        word
        for rule in only(DEPLOY / "rbac.yaml", "Role")["rules"] + only(DEPLOY / "rbac.yaml", "ClusterRole")["rules"]
        for word in (*rule["apiGroups"], *rule["verbs"], *rule["resources"])
    }
    powers = {"*", "escalate", "impersonate", "bind", "pods/exec", "pods/attach", "pods/portforward", "pods/proxy"}
    assert words.isdisjoint(powers)


def test_every_rule_says_why() -> None:
    lines = (DEPLOY / "rbac.yaml").read_text().splitlines()
    starts = [number for number, line in enumerate(lines) if line.startswith("  - apiGroups")]
    assert starts
    assert all(lines[number - 1].startswith("  # ") for number in starts)


def test_kustomize_lists_files_that_exist() -> None:
    for path in DEPLOY.rglob("kustomization.yaml"):
        for resource in documents(path)[0]["resources"]:
            assert (path.parent / resource).is_file()


def test_kind_has_one_worker_per_series() -> None:
    nodes = documents(DEPLOY / "kind/cluster.yaml")[0]["nodes"]
    assert [n["role"] for n in nodes] == ["control-plane", "worker", "worker"]
    assert [n.get("labels", {}).get("starforge/gpu-series") for n in nodes] == [None, "h200", "b200"]


def test_kind_publishes_the_port_of_the_object_store() -> None:
    [port] = only(DEPLOY / "kind/s3.yaml", "Service")["spec"]["ports"]
    [published] = documents(DEPLOY / "kind/cluster.yaml")[0]["nodes"][0]["extraPortMappings"]
    assert published["containerPort"] == port["nodePort"]
    assert f"s3_node_port={port['nodePort']}" in (ROOT / "scripts/e2e/setup-kind.sh").read_text()


def test_every_worker_mounts_the_folders_of_the_volumes() -> None:
    paths = {
        d["spec"]["hostPath"]["path"] for d in documents(DEPLOY / "volumes/volumes.yaml") if "hostPath" in d["spec"]
    }
    assert paths
    for node in documents(DEPLOY / "kind/cluster.yaml")[0]["nodes"][1:]:
        assert {mount["containerPath"] for mount in node["extraMounts"]} == paths


@pytest.mark.parametrize("name", ["starforge-storage", "starforge-corpus"])
def test_a_claim_binds_its_volume_and_no_other(name: str) -> None:
    claim = only(DEPLOY / "volumes/volumes.yaml", "PersistentVolumeClaim", name)["spec"]
    volume = only(DEPLOY / "volumes/volumes.yaml", "PersistentVolume", name)["spec"]
    assert claim["volumeName"] == name
    assert claim["accessModes"] == volume["accessModes"]
    assert claim["storageClassName"] == volume["storageClassName"] == ""


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_bash_can_read_the_script(script: Path) -> None:
    subprocess.run([BASH, "-n", str(script)], check=True, timeout=30)


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="shellcheck is not installed")
def test_shellcheck_has_nothing_to_say() -> None:
    result = subprocess.run(
        ["shellcheck", "-x", *SCRIPTS], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert result.stdout == ""


def test_setup_kind_names_every_missing_tool_in_a_sentence(bare_path: Path) -> None:
    result = run("setup-kind.sh", env={"PATH": str(bare_path), "HOME": str(bare_path)})
    assert result.returncode == 1
    assert result.stdout == ""
    sentences = result.stderr.splitlines()
    assert [s.split(" is not on the path: ")[0] for s in sentences] == ["docker", "kind", "kubectl", "curl", "helm"]
    assert all(s.endswith(".") for s in sentences)


def test_setup_kind_needs_no_helm_for_a_kustomize_folder(bare_path: Path) -> None:
    result = run("setup-kind.sh", "--operator-kustomize", "x", env={"PATH": str(bare_path), "HOME": str(bare_path)})
    assert "kubectl is not on the path" in result.stderr
    assert "helm" not in result.stderr


def test_setup_kind_tells_a_docker_that_does_not_answer(bare_path: Path) -> None:
    for tool in ("kind", "kubectl", "curl", "helm"):
        add_tool(bare_path, tool, "exit 0")
    add_tool(bare_path, "docker", "exit 1")
    result = run("setup-kind.sh", env={"PATH": str(bare_path), "HOME": str(bare_path)})
    assert (result.returncode, result.stdout) == (1, "")
    assert "daemon does not answer" in result.stderr


def test_setup_kind_refuses_an_archive_it_can_not_read(bare_path: Path) -> None:
    for tool in ("docker", "kind", "kubectl", "curl", "helm"):
        add_tool(bare_path, tool, "exit 0")
    env = {"PATH": str(bare_path), "HOME": str(bare_path)}
    result = run("setup-kind.sh", "--image-archive", "/nowhere/ray.tar", env=env)
    assert (result.returncode, result.stdout) == (1, "")
    assert "/nowhere/ray.tar can't be read" in result.stderr


@pytest.mark.parametrize("script", ["setup-kind.sh", "use-cluster.sh"])
def test_an_unknown_option_is_told(script: str, bare_path: Path) -> None:
    result = run(script, "--nonsense", env={"PATH": str(bare_path), "HOME": str(bare_path)})
    assert (result.returncode, result.stdout) == (1, "")
    assert "there is no option --nonsense" in result.stderr


def cluster_env(folder: Path) -> Path:
    values = {
        "KUBECONFIG": folder / "kubeconfig",
        "CLUSTER_API_SERVER": "https://cluster:6443",
        "CLUSTER_CA": folder / "ca.crt",
        "RAY_IMAGE": "registry/ray:2.55.1",
        "S3_HTTPS_ENDPOINT": "https://store:9443",
        "S3_HTTP_ENDPOINT": "http://store:9000",
        "S3_ACCESS_KEY": "access",
        "S3_SECRET_KEY": "se cret'$(id)",
    }
    file = folder / "env"
    file.write_text("".join(f"export {key}={shell_quoted(str(value))}\n" for key, value in values.items()))
    return file


def shell_quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def use_cluster(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    add_tool(folder, "kubectl", 'case " $* " in *" create token "*) echo the-token ;; esac')
    return run("use-cluster.sh", *arguments, env={"PATH": str(folder), "CLUSTER_ENV": str(cluster_env(folder))})


def settings_after_eval(lines: str) -> dict[str, str]:
    """What a shell has after `eval` of the lines."""
    command = [BASH, "-c", 'eval "$1"; env -0', "-", lines]
    done = subprocess.run(
        command, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, check=True, timeout=30
    )
    return dict(entry.split("=", 1) for entry in done.stdout.split("\0") if entry.startswith("FORGE_"))


def test_use_cluster_prints_settings_that_survive_eval(bare_path: Path) -> None:
    result = use_cluster(bare_path)
    assert result.returncode == 0, result.stderr
    assert all(line.startswith("export FORGE_") for line in result.stdout.splitlines())
    assert settings_after_eval(result.stdout) == {
        "FORGE_DEFAULT_FLEET_KIND": "kuberay",
        "FORGE_K8S_API_SERVER": "https://cluster:6443",
        "FORGE_K8S_TOKEN": "the-token",
        "FORGE_K8S_CA_FILE": str(bare_path / "ca.crt"),
        "FORGE_K8S_NAMESPACE": "starforge",
        "FORGE_IMAGE_NEMO_RL": "registry/ray:2.55.1",
        "FORGE_KUBERAY_RAY_VERSION": "2.55.1",
        "FORGE_S3_ENDPOINT": "https://store:9443",
        "FORGE_S3_BUCKET": "starforge",
        "FORGE_S3_ACCESS_KEY": "access",
        "FORGE_S3_SECRET_KEY": "se cret'$(id)",
        "FORGE_S3_CA_FILE": str(bare_path / "ca.crt"),
    }


def test_use_cluster_keeps_secrets_from_standard_error(bare_path: Path) -> None:
    result = use_cluster(bare_path)
    assert "the-token" in result.stdout
    assert "the-token" not in result.stderr
    assert "se cret" not in result.stderr


def test_use_cluster_prints_the_http_only_store_and_the_claims_when_asked(bare_path: Path) -> None:
    settings = settings_after_eval(use_cluster(bare_path, "--http", "--storage").stdout)
    assert settings["FORGE_S3_ENDPOINT"] == "http://store:9000"
    assert "FORGE_S3_CA_FILE" not in settings
    assert settings["FORGE_STORAGE_ROOT"] == "/starforge"
    assert settings["FORGE_K8S_STORAGE_PVC"] == "starforge-storage"
    assert settings["FORGE_K8S_CORPUS_PVC"] == "starforge-corpus"


def test_use_cluster_tells_that_there_is_no_cluster(bare_path: Path) -> None:
    result = run("use-cluster.sh", env={"PATH": str(bare_path), "CLUSTER_ENV": "/nowhere/env"})
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == "No cluster is described by /nowhere/env: start one, or set CLUSTER_ENV to its file.\n"


def test_use_cluster_tells_that_the_api_server_is_silent(bare_path: Path) -> None:
    add_tool(bare_path, "kubectl", "exit 1")
    result = run("use-cluster.sh", env={"PATH": str(bare_path), "CLUSTER_ENV": str(cluster_env(bare_path))})
    assert (result.returncode, result.stdout) == (1, "")
    assert "https://cluster:6443 does not answer" in result.stderr
