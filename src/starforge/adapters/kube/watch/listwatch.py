"""Lists one kind of object and watches it, again and again, so that nothing is missed and no server is pestered."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from kubernetes.client.exceptions import ApiException
from urllib3.response import BaseHTTPResponse

from starforge.adapters.kube.client import KubeApi
from starforge.adapters.kube.errors import UNREACHABLE, answer_of, short
from starforge.adapters.kube.labels import KubeObject
from starforge.adapters.kube.watch.backoff import Backoff
from starforge.adapters.kube.watch.lines import LineSplitter, chunks
from starforge.adapters.kube.watch.messages import Changed, Heard, Inbox, Kind, Listed, NotServed
from starforge.adapters.kube.watch.slimming import slimmed
from starforge.adapters.kube.watch.streams import BROKEN, Streams
from starforge.domain.reason import ReasonCode

WATCH_S = 240
QUIET_S = WATCH_S + 20.0
RELIST_S = 600.0
# A watch that ends sooner and says nothing was refused: Events with an old version get that instead of a 410.
QUICK_S = 5.0


class StaleWatch(Exception):
    """The watch can't go on from where it was: list again."""


@dataclass(frozen=True)
class Source:
    """What to watch. `resumable` kinds go on from the last version; others, as Events, are listed again each time.

    Jobs can do without an `optional` kind: that it is not served, or not for us to see, is no problem of the fleet.
    A list of a resumable kind is told whole, as what it lacks is gone; others page by page, as they may be long.
    """

    kind: Kind
    path: str
    labels: str | None = None
    resumable: bool = True
    optional: bool = False
    fields: str | None = None
    slim: Callable[[KubeObject], KubeObject] | None = None

    @property
    def selectors(self) -> dict[str, str]:
        """Query parameters that narrow it down."""
        given = {"labelSelector": self.labels, "fieldSelector": self.fields}
        return {name: text for name, text in given.items() if text}

    def slimmed(self, found: KubeObject) -> KubeObject:
        """What is kept of an object."""
        return self.slim(found) if self.slim else slimmed(self.kind, found)


class ListWatch:
    """One kind; `run` is a thread's work until all is halted."""

    def __init__(
        self,
        api: KubeApi,
        source: Source,
        inbox: Inbox,
        streams: Streams,
        *,
        backoff: Backoff | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._api, self._source, self._inbox, self._streams = api, source, inbox, streams
        self._backoff = backoff or Backoff()
        self._clock = clock

    def run(self) -> None:
        while not self._streams.halted.is_set():
            self._streams.halted.wait(self._round())

    def _round(self) -> float:
        """Lists and watches until a list is due again; how long to wait before that."""
        try:
            self._follow(self._list())
        except StaleWatch:
            return self._backoff.next_s()
        except UNREACHABLE as error:
            if isinstance(error, ApiException) and error.status == 410:
                return self._backoff.next_s()
            self._inbox.put(_problem(self._source, error))
            return self._backoff.next_s(answer_of(error).retry_after_s if isinstance(error, ApiException) else None)
        return 0.0

    def _list(self) -> str:
        """Tells what there is, page by page where nobody needs to know what is not there; the version of the list."""
        found: list[KubeObject] = []
        version = ""
        for page in self._api.pages(self._source.path, self._source.selectors):
            slim = [self._source.slimmed(each) for each in page.objects]
            found, version = [*(found if page.adds else ()), *slim], page.version
            if not self._source.resumable:
                self._inbox.put(Listed(self._source.kind, slim))
                found = []
        if self._source.resumable:
            self._inbox.put(Listed(self._source.kind, found))
        return version

    def _follow(self, version: str) -> None:
        relist_at = self._clock() + RELIST_S
        while not self._streams.halted.is_set() and self._clock() < relist_at:
            version = self._watch(version)
            if not self._source.resumable:
                return

    def _watch(self, version: str) -> str:
        """One watch until it ends, and the version to go on from; StaleWatch if it can't go on from there."""
        began, said = self._clock(), False
        try:
            with self._api.stream(self._source.path, self._query(version), quiet_s=QUIET_S) as response:
                self._inbox.put(Heard(self._source.kind))
                for change in self._changes(response):
                    said = said or change.get("type") != "BOOKMARK"
                    version = self._take(change) or version
        finally:
            quick = self._clock() - began < QUICK_S
            if not quick:
                self._backoff.reset()  # however it ends: it went well for a while
        if quick and not said and not self._streams.halted.is_set():
            raise StaleWatch
        self._backoff.reset()
        return version

    def _query(self, version: str) -> dict[str, str | int]:
        query: dict[str, str | int] = {"watch": "1", "resourceVersion": version, "timeoutSeconds": WATCH_S}
        query["allowWatchBookmarks"] = "true"
        return query | self._source.selectors

    def _changes(self, response: BaseHTTPResponse) -> Iterator[KubeObject]:
        splitter = LineSplitter()
        with self._streams.reading(response):
            try:
                for chunk in chunks(response):
                    yield from (json.loads(line) for line in splitter.feed(chunk) if line.strip())
            except BROKEN as error:  # cut off in the middle, silent for too long, or nonsense
                raise StaleWatch from error
        if splitter.rest().strip():
            raise StaleWatch

    def _take(self, change: KubeObject) -> str | None:
        """Tells of a change; the version to resume from."""
        found, word = change.get("object") or {}, change.get("type")
        if word == "ERROR" or "metadata" not in found:
            raise StaleWatch
        if word != "BOOKMARK":
            slim = self._source.slimmed(found)
            self._inbox.put(Changed(self._source.kind, slim, deleted=word == "DELETED"))
        version: str | None = found["metadata"].get("resourceVersion")
        return version


def _problem(source: Source, error: BaseException) -> Heard | NotServed:
    kind = source.kind
    if source.optional and isinstance(error, ApiException) and error.status in (403, 404):
        return NotServed(kind, answer_of(error).message)
    if not isinstance(error, ApiException) or not error.status:
        return Heard(kind, f"The Kubernetes API can't be reached: {short(error)}")
    if error.status == 404 and kind in (Kind.RAYJOB, Kind.RAYCLUSTER):
        message = f"The cluster does not know {kind}s: the KubeRay operator is not installed."
        return Heard(kind, message, ReasonCode.OPERATOR_ABSENT)
    answer = answer_of(error)
    if answer.status in (401, 403):
        message = f"Kubernetes does not let StarForge watch {kind.plural}: {answer.message}"
        return Heard(kind, message, ReasonCode.PERMISSION)
    return Heard(kind, f"The Kubernetes API answered {answer.status} when asked for {kind.plural}: {answer.message}")
