"""Finds secrets in code, so that they are refused before they go anywhere. The text found is never shown."""

import re
from dataclasses import dataclass

from starforge.domain.capsule import MIB, CodeRule

SCANNED_MAX_BYTES = MIB
_TEXT_SAMPLE = 8192


@dataclass(frozen=True)
class _Secret:
    """`needle` is searched first, as that is many times faster than `pattern`."""

    rule: CodeRule
    needle: bytes
    pattern: re.Pattern[bytes]


_AWS = rb"(?<![A-Za-z0-9])AKIA(?!IOSFODNN7EXAMPLE)[0-9A-Z]{16}(?![A-Za-z0-9])"  # but AWS's own example
_KUBECONFIG = rb"client-key-data[\"']?\s*:\s*[\"']?[A-Za-z0-9+/]{20}"


def _secret(rule: CodeRule, needle: bytes, pattern: bytes) -> _Secret:
    return _Secret(rule, needle, re.compile(pattern))


_SECRETS = (
    _secret(CodeRule.AWS_KEY, b"AKIA", _AWS),
    _secret(CodeRule.PRIVATE_KEY, b"PRIVATE KEY", rb"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY"),
    _secret(CodeRule.GITHUB_CREDENTIAL, b"ghp_", rb"(?<![A-Za-z0-9_])ghp_[A-Za-z0-9]{36}"),
    _secret(CodeRule.HUGGING_FACE_CREDENTIAL, b"hf_", rb"(?<![A-Za-z0-9_])hf_[A-Za-z0-9]{30}"),
    _secret(CodeRule.SLACK_CREDENTIAL, b"xox", rb"(?<![A-Za-z0-9_])xox[abeoprs]-[A-Za-z0-9-]{10}"),
    _secret(CodeRule.KUBECONFIG_KEY, b"client-key-data", _KUBECONFIG),
    _secret(CodeRule.STARFORGE_CREDENTIAL, b"sf_", rb"(?<![A-Za-z0-9_])sf_[0-9a-f]{16}_[0-9a-f]{64}"),
)


def secret_rules(data: bytes) -> list[CodeRule]:
    """The rules that the content of a file breaks; empty for what is no text or longer than SCANNED_MAX_BYTES."""
    if len(data) > SCANNED_MAX_BYTES or b"\0" in data[:_TEXT_SAMPLE]:
        return []
    return [secret.rule for secret in _SECRETS if secret.needle in data and secret.pattern.search(data)]
