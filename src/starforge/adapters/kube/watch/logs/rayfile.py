"""What a driver printed, as Ray keeps it in a file of the head: more than the container's log may still have."""

import logging
import re
import tempfile
from typing import IO

from starforge.adapters.kube.client import ANSWER_S, KubeApi
from starforge.adapters.kube.errors import UNREACHABLE
from starforge.adapters.kube.labels import selector
from starforge.adapters.kube.paths import Paths
from starforge.adapters.kube.views.runs import newest
from starforge.adapters.kube.watch.lines import chunks
from starforge.domain.names import RunKey

# A gap that is larger is not filled, as all of the file before it has to be read too.
GAP_MAX_BYTES = 1 << 30
# Ray says this in the file too, and may do so after the runner has begun to write: then all is that much later.
_SAID = re.compile(rb"Running entrypoint for job [^\n]*\n")
_HEAD_BYTES = 4096
_log = logging.getLogger(__name__)


class RayFile:
    """The file of one run, by way of the API server and Ray's dashboard."""

    def __init__(self, api: KubeApi, namespace: str, run: RunKey) -> None:
        self._api, self._paths, self._run = api, Paths(namespace), run

    def fetch(self, start: int, end: int, then: bytes) -> IO[bytes] | None:
        """Bytes `start` to `end` of the file; None if it has them not, or if `then` does not follow on them.

        Raises one of UNREACHABLE if it can't be asked right now.
        """
        if end - start > GAP_MAX_BYTES:
            _log.warning("%s: %d bytes of output are too many to be fetched from Ray", self._run, end - start)
            return None
        found = tempfile.TemporaryFile()  # noqa: SIM115  whoever gets it closes it
        try:
            late = self._copy(found, start, end + len(then))
            if late is not None and any(_ends_with(found, skip, end - start, then) for skip in (0, late)):
                return found
        except UNREACHABLE:
            found.close()
            raise
        found.close()
        _log.warning("%s: Ray's file does not hold bytes %d to %d of the output", self._run, start, end)
        return None

    def _copy(self, into: IO[bytes], start: int, end: int) -> int | None:
        """Copies that part and a little more; the length of what Ray says in the file itself, None if there is none."""
        rayjobs, _ = self._api.list(self._paths.rayjobs, {"labelSelector": selector(self._run)})
        status = (newest(rayjobs) or {}).get("status") or {}
        cluster, submission = status.get("rayClusterName"), status.get("jobId")
        if not cluster or not submission:
            return None
        node = self._api.get(self._paths.dashboard(cluster, f"api/jobs/{submission}")).get("driver_node_id")
        query: dict[str, str | int] = {"node_id": node or "", "filename": f"job-driver-{submission}.log", "lines": -1}
        path = self._paths.dashboard(cluster, "api/v0/logs/file")
        place, head = 0, b""
        with self._api.stream(path, query, quiet_s=ANSWER_S) as response:
            for chunk in chunks(response):
                head += chunk[: max(0, _HEAD_BYTES - place)]
                into.write(chunk[max(0, start - place) : max(0, end + _HEAD_BYTES - place)])
                place += len(chunk)
                if place >= end + _HEAD_BYTES:
                    break
        said = _SAID.search(head)
        return len(said[0]) if said else 0


def _ends_with(file: IO[bytes], skip: int, size: int, then: bytes) -> bool:
    """Whether `then` comes `size` bytes after the first `skip`; the file is these bytes then, from where it is read."""
    file.seek(skip + size)
    if file.read(len(then)) != then:
        return False
    file.truncate(skip + size)
    file.seek(skip)
    return True
