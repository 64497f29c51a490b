"""Where things lie in the containers of a run, and what they are called."""

CAPSULE_VOLUME = "starforge-capsule"
CAPSULE_DIR = "/starforge-capsule"
ATTEMPT_VOLUME = "starforge-attempt"
ATTEMPT_DIR = "/starforge-attempt"
ATTEMPT_KEY = "attempt.json"
URL_KEY = "capsule-url"
CA_VOLUME = "starforge-ca"
CA_DIR = "/starforge-ca"
CA_KEY = "ca.crt"
CA_FILE = f"{CA_DIR}/{CA_KEY}"
SHM_VOLUME = "starforge-shm"
STORAGE_VOLUME = "starforge-storage"
CORPUS_VOLUME = "starforge-corpus"
INIT_CONTAINER = "starforge-capsule"
HEAD_CONTAINER = "ray-head"
WORKER_CONTAINER = "ray-worker"
SUBMITTER_CONTAINER = "ray-job-submitter"
# `exec`, as Ray starts it by a shell: a shell that stayed would die first of a stop, the runner would become a child
# of the container's first process, which reaps nobody, and Ray would wait for it as long as it waits for anything.
RUNNER = "exec python3 .starforge/runner.pex"
# The runner's frames go to the head's own log, by way of its first process.
STREAM = "/proc/1/fd/1"


def capsule_file(transport_sha256: str) -> str:
    return f"{CAPSULE_DIR}/{transport_sha256}.zip"
