"""Volumes of a Ray Pod, each with the place where its containers see it."""

from dataclasses import dataclass

from starforge.adapters.kube.labels import KubeObject
from starforge.adapters.kube.rendering import places
from starforge.adapters.kube.settings import KubeConfig
from starforge.domain.spec import PoolSpec


@dataclass(frozen=True)
class Mounted:
    volume: KubeObject
    mount: KubeObject


def mounted(pool: PoolSpec, config: KubeConfig, *, secret: str, head: bool, capsule_by_init: bool) -> list[Mounted]:
    """Everything that a Ray container sees; only the head gets the attempt file."""
    found = [_shm(pool)]
    if capsule_by_init:
        found.append(_capsule())
    if head:
        found.append(_secret_key(places.ATTEMPT_VOLUME, places.ATTEMPT_DIR, secret, places.ATTEMPT_KEY))
    if config.s3_ca_file:
        found.append(ca_bundle(secret))
    return found + _claims(config)


def ca_bundle(secret: str) -> Mounted:
    return _secret_key(places.CA_VOLUME, places.CA_DIR, secret, places.CA_KEY)


def _shm(pool: PoolSpec) -> Mounted:
    volume = {"name": places.SHM_VOLUME, "emptyDir": {"medium": "Memory", "sizeLimit": pool.shm_size}}
    return Mounted(volume, {"name": places.SHM_VOLUME, "mountPath": "/dev/shm"})  # noqa: S108


def _capsule() -> Mounted:
    mount = {"name": places.CAPSULE_VOLUME, "mountPath": places.CAPSULE_DIR, "readOnly": True}
    return Mounted({"name": places.CAPSULE_VOLUME, "emptyDir": {}}, mount)


def _secret_key(name: str, where: str, secret: str, key: str) -> Mounted:
    # Readable by all: images run as whatever user they like.
    source = {"secretName": secret, "defaultMode": 0o444, "items": [{"key": key, "path": key}]}
    return Mounted({"name": name, "secret": source}, {"name": name, "mountPath": where, "readOnly": True})


def _claims(config: KubeConfig) -> list[Mounted]:
    found = []
    if config.storage_pvc:
        where = config.storage_mount or config.storage_root
        found.append(_claim(places.STORAGE_VOLUME, config.storage_pvc, where, read_only=False))
    if config.corpus_pvc:
        found.append(_claim(places.CORPUS_VOLUME, config.corpus_pvc, config.corpus_mount, read_only=True))
    return found


def _claim(name: str, claim: str, where: str, *, read_only: bool) -> Mounted:
    source: KubeObject = {"claimName": claim}
    mount: KubeObject = {"name": name, "mountPath": where}
    if read_only:
        source["readOnly"] = mount["readOnly"] = True
    return Mounted({"name": name, "persistentVolumeClaim": source}, mount)
