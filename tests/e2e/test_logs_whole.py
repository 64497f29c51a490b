"""A job that prints fast and a lot: every line is kept once and in order, live, in pages and in the archive."""

import asyncio
import hashlib
import os
import ssl
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e.conftest import Cluster

sys.path.insert(0, str(Path(__file__).parent.parent.parent / "scripts" / "e2e"))

from loop import checks
from loop.gateway import Gateway
from loop.jobs import Followed, pool, run
from loop.processes import starforge

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

LINES = 200_000
LONG = 10_000_000
PAGE = """
query ($id: ID!, $after: String) {
  job(id: $id) {
    logs(first: 1000, after: $after) { totalCount nodes { number text marks } pageInfo { hasNextPage endCursor } }
    logSources { key state lines bytes sha256 gaps { afterLine message } download { url } }
  }
}"""


def spec(name: str) -> dict[str, object]:
    deadlines = {"preRunningSeconds": 300, "activeSeconds": 600}
    return {"name": name, "command": ["python3", "main.py"], "pools": [pool("train", "h200")], "deadlines": deadlines}


def ran(code: str, name: str, directory: Path) -> tuple[Followed, list[dict[str, Any]], dict[str, Any], bytes]:
    """A job of this code that has ended: what was followed, every line by pages, the driver's source and its text."""
    (directory / "main.py").write_text(code)

    async def story(gateway: Gateway) -> tuple[Followed, list[dict[str, Any]], dict[str, Any], bytes]:
        try:
            followed = await run(gateway, spec(name), directory)
            lines, source = await pages(gateway, followed.id)
            return followed, lines, source, await downloaded(source["download"]["url"])
        finally:
            await gateway.close()

    with starforge({}) as gateway:
        return asyncio.run(story(gateway))


async def pages(gateway: Gateway, job: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    after = None
    while True:
        found = (await gateway.ask(PAGE, id=job, after=after))["job"]
        lines += found["logs"]["nodes"]
        after = found["logs"]["pageInfo"]["endCursor"]
        if not found["logs"]["pageInfo"]["hasNextPage"]:
            (source,) = [source for source in found["logSources"] if source["key"] == "driver"]
            assert len(lines) == found["logs"]["totalCount"] == source["lines"]
            return lines, source


async def downloaded(url: str) -> bytes:
    verify: Any = ssl.create_default_context(cafile=os.environ.get("FORGE_S3_CA_FILE"))
    async with httpx.AsyncClient(verify=verify, timeout=120) as http:
        return (await http.get(url)).content


def test_two_hundred_thousand_lines_printed_at_once_are_kept_once_and_in_order(
    cluster: Cluster, tmp_path: Path
) -> None:
    code = f"for number in range({LINES}):\n    print(f'line {{number}} of many')\n"
    followed, lines, source, text = ran(code, "many-lines", tmp_path)
    expected = [f"line {number} of many" for number in range(LINES)]
    assert followed.job["state"] == "SUCCEEDED", followed.job["reason"]
    assert followed.lines == expected
    assert followed.numbers == list(range(1, LINES + 1))
    assert [line["text"] for line in lines] == expected
    assert (source["state"], source["gaps"]) == ("CLOSED", [])
    assert text == "".join(f"{line}\n" for line in expected).encode()
    assert (source["bytes"], source["sha256"]) == (len(text), hashlib.sha256(text).hexdigest())
    asyncio.run(checks.after(followed, checks.settings_of({})))


def test_a_line_of_ten_megabytes_bytes_that_are_no_text_and_colours_are_kept(cluster: Cluster, tmp_path: Path) -> None:
    code = (
        "import sys\n"
        f"sys.stdout.buffer.write(b'ab' * {LONG // 2} + b'\\n')\n"
        "sys.stdout.buffer.write(b'\\xff\\xfe\\n')\n"
        "print('\\x1b[31mred\\x1b[0m')\n"
    )
    followed, lines, source, text = ran(code, "long-line", tmp_path)
    assert followed.job["state"] == "SUCCEEDED", followed.job["reason"]
    *cut, last, odd, red = lines
    assert {tuple(line["marks"]) for line in cut} == {("CUT",)}
    assert last["marks"] == red["marks"] == []
    assert (odd["text"], odd["marks"]) == ("\ufffd\ufffd", ["INVALID_UTF8"])
    assert red["text"] == "\x1b[31mred\x1b[0m"
    assert "".join(line["text"] for line in [*cut, last]) == "ab" * (LONG // 2)
    assert text == b"ab" * (LONG // 2) + "\n\ufffd\ufffd\n\x1b[31mred\x1b[0m\n".encode()
    assert (source["state"], source["sha256"]) == ("CLOSED", hashlib.sha256(text).hexdigest())
