"""What a Capsule is: its files, the canonical manifest, the digests, and the rules that code has to keep.

The digest is the sha256 of the canonical manifest and not of the zip, so that two zlibs agree on it. The rules are
those of a zip that unpacks to the same tree on every machine (docs of `zipfile`, Snyk's zip-slip set).
"""

import builtins
import hashlib
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from starforge.domain.errors import Problem
from starforge.domain.names import Digest

CODE_TOP = "code"
CAPSULE_TOP = "capsule"
STARFORGE_DIR = ".starforge"
STARFORGE_MODULE = "starforge.py"
JOBSPEC_PATH = f"{STARFORGE_DIR}/jobspec.json"
MANIFEST_PATH = f"{STARFORGE_DIR}/manifest.json"
RUNNER_PATH = f"{STARFORGE_DIR}/runner.pex"

PATH_MAX_BYTES = 240
PATH_MAX_DEPTH = 32
MIB = 1024 * 1024


@dataclass(frozen=True)
class CapsuleFile:
    """A file by content: `path` is POSIX and below the top, `size` in bytes, `sha256` lower-case hexadecimal."""

    path: str
    size: int
    sha256: str
    executable: bool = False


@dataclass(frozen=True)
class InlineFile:
    """A file that came within a request, as text."""

    path: str
    content: str
    executable: bool = False


@dataclass(frozen=True)
class PackedCode:
    """Code as a zip under `code/`; `bytes` and `transport_sha256` are of the zip at `archive`."""

    digest: Digest
    files: tuple[CapsuleFile, ...]
    archive: Path
    bytes: int
    transport_sha256: str


@dataclass(frozen=True)
class PackedCapsule:
    """A Capsule as a zip under `capsule/`; `files` are those of `manifest`, so manifest.json is not among them."""

    digest: Digest
    code_digest: Digest
    files: tuple[CapsuleFile, ...]
    archive: Path
    bytes: int
    transport_sha256: str
    runner_digest: Digest
    manifest: builtins.bytes


@dataclass(frozen=True)
class CodeLimits:
    """The most that may come in one go; `bytes` is the sum of the file sizes."""

    files: int
    bytes: int


INLINE_LIMITS = CodeLimits(files=100, bytes=MIB)
CODE_LIMITS = CodeLimits(files=20_000, bytes=500 * MIB)


class CodeRule(StrEnum):
    """Rule that refuses code, as `rule` of a problem."""

    EMPTY_PATH = "EMPTY_PATH"
    ABSOLUTE_PATH = "ABSOLUTE_PATH"
    DRIVE_PATH = "DRIVE_PATH"
    PARENT_PATH = "PARENT_PATH"
    BACKSLASH = "BACKSLASH"
    CONTROL_CHARACTER = "CONTROL_CHARACTER"
    NOT_UNICODE = "NOT_UNICODE"
    NOT_NFC = "NOT_NFC"
    PATH_TOO_LONG = "PATH_TOO_LONG"
    PATH_TOO_DEEP = "PATH_TOO_DEEP"
    RESERVED_NAME = "RESERVED_NAME"
    DUPLICATE_PATH = "DUPLICATE_PATH"
    CASE_COLLISION = "CASE_COLLISION"
    UNICODE_COLLISION = "UNICODE_COLLISION"
    FILE_AND_FOLDER = "FILE_AND_FOLDER"
    TOO_MANY_FILES = "TOO_MANY_FILES"
    TOO_MANY_BYTES = "TOO_MANY_BYTES"
    AWS_KEY = "AWS_KEY"
    PRIVATE_KEY = "PRIVATE_KEY"
    GITHUB_CREDENTIAL = "GITHUB_CREDENTIAL"
    HUGGING_FACE_CREDENTIAL = "HUGGING_FACE_CREDENTIAL"
    SLACK_CREDENTIAL = "SLACK_CREDENTIAL"
    KUBECONFIG_KEY = "KUBECONFIG_KEY"
    STARFORGE_CREDENTIAL = "STARFORGE_CREDENTIAL"
    LINK_LEAVES_ROOT = "LINK_LEAVES_ROOT"
    LINK_BROKEN = "LINK_BROKEN"
    LINK_LOOP = "LINK_LOOP"
    LINK_TO_EXCLUDED = "LINK_TO_EXCLUDED"
    LINK = "LINK"
    SPECIAL_FILE = "SPECIAL_FILE"
    UNREADABLE = "UNREADABLE"
    CHANGED_WHILE_READ = "CHANGED_WHILE_READ"
    NOT_A_ZIP = "NOT_A_ZIP"
    TOP_FOLDER = "TOP_FOLDER"
    NAME_ENCODING = "NAME_ENCODING"
    ENCRYPTED = "ENCRYPTED"
    COMPRESSION_METHOD = "COMPRESSION_METHOD"
    COMPRESSION_RATIO = "COMPRESSION_RATIO"
    SIZE_MISMATCH = "SIZE_MISMATCH"
    CHECKSUM_MISMATCH = "CHECKSUM_MISMATCH"
    HEADER_MISMATCH = "HEADER_MISMATCH"
    OVERLAP = "OVERLAP"
    TRAILING_DATA = "TRAILING_DATA"


def manifest_bytes(files: Iterable[CapsuleFile]) -> bytes:
    """The canonical manifest: JSON that is equal, byte by byte, for equal files in any order."""
    rows = [
        {"executable": file.executable, "path": file.path, "sha256": file.sha256, "size": file.size}
        for file in sorted(files, key=lambda file: file.path.encode())
    ]
    return json.dumps({"files": rows}, separators=(",", ":"), sort_keys=True, ensure_ascii=False).encode()


def files_digest(files: Iterable[CapsuleFile]) -> Digest:
    """The digest of code, from the user's files alone, or of a Capsule, from all that its manifest lists."""
    return Digest(hashlib.sha256(manifest_bytes(files)).hexdigest())


def code_key(digest: Digest) -> str:
    return f"code/{digest}.zip"


def capsule_key(digest: Digest) -> str:
    return f"capsules/{digest}.zip"


def code_problem(rule: CodeRule, path: str, message: str) -> Problem:
    """A problem about the file at `path`, which is made printable; "" stands for the code as a whole."""
    shown = printable(path)
    said = f"{shown}: {message}" if path else f"{message[:1].upper()}{message[1:]}"
    return Problem(code=_error_code(rule), field=("code",), message=said, file=shown, rule=rule.value)


def code_problems(files: Sequence[tuple[str, int]], limits: CodeLimits) -> list[Problem]:
    """Everything that the paths and sizes (bytes) of code break; an empty list when it may be taken."""
    problems = size_problems(count=len(files), size=sum(size for _, size in files), limits=limits)
    for path, _ in files:
        problems.extend(path_problems(path))
    problems.extend(collision_problems([path for path, _ in files]))
    return problems


def size_problems(*, count: int, size: int, limits: CodeLimits) -> list[Problem]:
    problems = []
    if count > limits.files:
        message = f"there are {count:,} files and {limits.files:,} is the most; leave some out by .starforgeignore."
        problems.append(code_problem(CodeRule.TOO_MANY_FILES, "", message))
    if size > limits.bytes:
        message = f"the files have {size:,} bytes and {limits.bytes:,} is the most; leave some out by .starforgeignore."
        problems.append(code_problem(CodeRule.TOO_MANY_BYTES, "", message))
    return problems


def path_problems(path: str) -> list[Problem]:
    """Every rule that one path breaks, with the sentence for it."""
    return [code_problem(rule, path, message) for rule, message in _broken_rules(path)]


def collision_problems(paths: Iterable[str]) -> list[Problem]:
    """Paths, or folders on the way to them, that are one and the same on some file systems, or twice there."""
    known: dict[str, str] = {}
    seen: set[str] = set()
    folders: set[str] = set()
    problems = []
    for path in paths:
        if path in seen:
            problems.append(code_problem(CodeRule.DUPLICATE_PATH, path, "it is there twice; keep one of them."))
            continue
        seen.add(path)
        steps = list(_prefixes(path))
        folders.update(steps[:-1])
        for step in steps:
            other = known.setdefault(_folded(step), step)
            if other != step:
                problems.append(_collision(step, other))
                break
    both = sorted(seen & folders)
    problems.extend(
        code_problem(CodeRule.FILE_AND_FOLDER, path, "it is a file and a folder; rename one.") for path in both
    )
    return problems


def printable(text: str) -> str:
    """Text from outside for a sentence: what can't be printed becomes an escape, and it has an end."""
    safe = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    return safe if len(safe) <= PATH_MAX_BYTES else f"{safe[:PATH_MAX_BYTES]}…"


def _broken_rules(path: str) -> Iterator[tuple[CodeRule, str]]:
    steps = path.split("/")
    if path.startswith("/"):
        yield CodeRule.ABSOLUTE_PATH, "it is absolute; give it relative to the code's folder."
    elif not path or any(step in {"", "."} for step in steps):
        yield CodeRule.EMPTY_PATH, "it has an empty step; write it as folder/file."
    if re.match(r"[A-Za-z]:", path):
        yield CodeRule.DRIVE_PATH, "it names a drive; give it relative to the code's folder."
    if ".." in steps:
        yield CodeRule.PARENT_PATH, "it leads upwards by '..'; keep it within the code's folder."
    if "\\" in path:
        yield CodeRule.BACKSLASH, "it has a backslash; separate folders by '/'."
    yield from _broken_character_rules(path)
    if len(path.encode(errors="surrogatepass")) > PATH_MAX_BYTES:
        yield CodeRule.PATH_TOO_LONG, f"it has more than {PATH_MAX_BYTES} bytes; shorten it."
    if len(steps) > PATH_MAX_DEPTH:
        yield CodeRule.PATH_TOO_DEEP, f"it is deeper than {PATH_MAX_DEPTH} folders; flatten it."
    if _folded(steps[0]) in {STARFORGE_DIR, STARFORGE_MODULE}:
        yield CodeRule.RESERVED_NAME, f"{steps[0]} at the top is a name of StarForge's own; rename it."


def _broken_character_rules(path: str) -> Iterator[tuple[CodeRule, str]]:
    categories = {unicodedata.category(char) for char in path}
    if "Cs" in categories:
        yield CodeRule.NOT_UNICODE, "it is not Unicode; rename it."
    if categories & {"Cc", "Zl", "Zp"}:
        yield CodeRule.CONTROL_CHARACTER, "it has a control character; rename it."
    if not unicodedata.is_normalized("NFC", path):
        yield CodeRule.NOT_NFC, "its Unicode is not composed (NFC); rename it."


def _collision(path: str, other: str) -> Problem:
    message = f"it is the same as {printable(other)} where"
    if unicodedata.normalize("NFC", path) == unicodedata.normalize("NFC", other):
        return code_problem(CodeRule.UNICODE_COLLISION, path, f"{message} Unicode is composed; rename one.")
    return code_problem(CodeRule.CASE_COLLISION, path, f"{message} case does not matter; rename one.")


def _folded(path: str) -> str:
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", path).casefold())


def _prefixes(path: str) -> Iterator[str]:
    end = path.find("/")
    while end >= 0:
        yield path[:end]
        end = path.find("/", end + 1)
    yield path


def _error_code(rule: CodeRule) -> str:
    if rule in _SECRET_RULES:
        return "SECRET_FOUND"
    if rule in {CodeRule.TOO_MANY_FILES, CodeRule.TOO_MANY_BYTES, CodeRule.COMPRESSION_RATIO}:
        return "TOO_LARGE"
    if rule is CodeRule.RESERVED_NAME:
        return "RESERVED"
    return "UNSAFE_PATH" if rule in _PATH_RULES else "INVALID"


_SECRET_RULES = frozenset(
    {
        CodeRule.AWS_KEY,
        CodeRule.PRIVATE_KEY,
        CodeRule.GITHUB_CREDENTIAL,
        CodeRule.HUGGING_FACE_CREDENTIAL,
        CodeRule.SLACK_CREDENTIAL,
        CodeRule.KUBECONFIG_KEY,
        CodeRule.STARFORGE_CREDENTIAL,
    }
)
_PATH_RULES = frozenset(
    {
        CodeRule.EMPTY_PATH,
        CodeRule.ABSOLUTE_PATH,
        CodeRule.DRIVE_PATH,
        CodeRule.PARENT_PATH,
        CodeRule.BACKSLASH,
        CodeRule.CONTROL_CHARACTER,
        CodeRule.NOT_UNICODE,
        CodeRule.NOT_NFC,
        CodeRule.PATH_TOO_LONG,
        CodeRule.PATH_TOO_DEEP,
        CodeRule.DUPLICATE_PATH,
        CodeRule.CASE_COLLISION,
        CodeRule.UNICODE_COLLISION,
        CodeRule.FILE_AND_FOLDER,
        CodeRule.LINK_LEAVES_ROOT,
        CodeRule.LINK_BROKEN,
        CodeRule.LINK_LOOP,
        CodeRule.LINK_TO_EXCLUDED,
        CodeRule.LINK,
        CodeRule.SPECIAL_FILE,
    }
)
