"""Secrets are found by content; the examples are put together here, so that this file has none."""

import pytest

from starforge.adapters.packing.secrets import secret_rules
from starforge.domain.capsule import MIB, CodeRule

EXAMPLES = {
    CodeRule.AWS_KEY: "AKIA" + "ABCDEFGHIJKLMNOP",
    CodeRule.PRIVATE_KEY: "-----BEGIN RSA " + "PRIVATE KEY-----",
    CodeRule.GITHUB_CREDENTIAL: "ghp_" + "a1B2" * 9,
    CodeRule.HUGGING_FACE_CREDENTIAL: "hf_" + "aB" * 17,
    CodeRule.SLACK_CREDENTIAL: "xoxb-" + "1234567890-abc",
    CodeRule.KUBECONFIG_KEY: "client-key-data: " + "LS0tLS1CRUdJTiBSU0EgUFJ",
    CodeRule.STARFORGE_CREDENTIAL: "sf_" + "0123456789abcdef_" + "a1" * 32,
}


@pytest.mark.parametrize("rule", EXAMPLES)
def test_each_kind_is_found_wherever_it_is(rule: CodeRule) -> None:
    text = EXAMPLES[rule]
    assert secret_rules(text.encode()) == [rule]
    assert secret_rules(f"{'x' * 100_000}\nKEY = '{text}'\n".encode()) == [rule]


def test_all_kinds_at_once() -> None:
    assert set(secret_rules("\n".join(EXAMPLES.values()).encode())) == set(EXAMPLES)


@pytest.mark.parametrize(
    "text",
    [
        "from huggingface_hub import hf_hub_download, hf_hub_url",
        "AKIA",
        "AKIAIOSFODNN7" + "EXAMPLE",
        "XAKIA" + "ABCDEFGHIJKLMNOP",
        "if line.startswith('ghp_'):",
        "client-key-data: $KEY",
        "xoxo-kisses",
        "sf_train_loss_0123456789abcdef",
        "-----BEGIN PUBLIC KEY-----",
        "-----BEGIN CERTIFICATE-----",
    ],
)
def test_what_only_looks_similar(text: str) -> None:
    assert secret_rules(text.encode()) == []


def test_only_text_up_to_the_limit_is_searched() -> None:
    secret = EXAMPLES[CodeRule.AWS_KEY].encode()
    assert secret_rules(b"\0" + secret) == []
    assert secret_rules(secret.ljust(MIB)) == [CodeRule.AWS_KEY]
    assert secret_rules(secret.ljust(MIB + 1)) == []
