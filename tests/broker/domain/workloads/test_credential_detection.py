"""Credentials in environment variables are recognised by names and within values."""

import time

import pytest

from broker.domain.workloads.credential_detection import embedded_credentials, looks_like_credential

WORD = "hunter22"
CREDENTIALS = """
HF_TOKEN AWS_SECRET_ACCESS_KEY AWS_ACCESS_KEY_ID AWS_SESSION_TOKEN db_password KEY PGPASSWORD DB_PASS PASS MYSQL_PWD
GITHUB_PAT AZURE_DEVOPS_EXT_PAT API_TOKENS REDIS_AUTH REDISCLI_AUTH OPENAI_APIKEY hfToken HFTOKEN DBPASS SSHKEY
SIGNING_KEYS NPM_AUTHTOKEN PRIVATEKEY SLACK_WEBHOOK_URL DOCKER_AUTH_CONFIG COOKIE JWT WANDB_API_KEY INPUT_TOKEN
"""
HARMLESS = """
TOKENIZERS_PARALLELISM MAX_TOKENS MAX_NUM_BATCHED_TOKENS MAX_NEW_TOKENS PAD_TOKEN EOS_TOKEN_ID PASSTHROUGH BYPASS
COMPASS KEYBOARD MONKEY MODE PWD OLDPWD SORT_KEY PUBLIC_KEY SSH_AUTH_SOCK AUTH_TYPE USE_AUTH_TOKEN PGPASSFILE
TOKEN_TTL_SECONDS HF_TOKEN_PATH PRIVATE_KEY_FILE HF_HUB_DISABLE_IMPLICIT_TOKEN PATH PATTERN AUTHOR SECRET_NAME
NUM_PASS TOKENS_PER_SECOND AUTHORITY PASSES DATABASE_URL
"""


@pytest.mark.parametrize("name", CREDENTIALS.split())
def test_names_of_credentials_are_recognised(name: str) -> None:
    assert looks_like_credential(name)


@pytest.mark.parametrize("name", [*HARMLESS.split(), "", "_", "1"])
def test_other_names_are_not_taken_for_credentials(name: str) -> None:
    assert not looks_like_credential(name)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (f"postgres://u:{WORD}@db/x", [WORD, f"u:{WORD}"]),
        ("redis://:p%40ss@cache:6379/0", ["p%40ss", "p@ss"]),
        ("http://user:pw@proxy:3128", ["pw", "user:pw"]),
        ("https://ghp_0123456789abcdef@github.com/a/b", ["ghp_0123456789abcdef"]),
        ("Server=db;User=sa;Password=Sup3r;", ["Sup3r"]),
        ("https://x.blob.example/c?sv=1&sig=ab%2Fcd", ["ab%2Fcd", "ab/cd"]),
        ("postgres://u:$(DB_PASSWORD)@db/x", []),
        ("postgres://u:${DB_PASSWORD}@db/x", []),
        ("https://user@github.com/a/b", []),
        ("https://example.com/a@b:c", []),
        ("host:8080", []),
        ("--max-tokens=4096", []),
        ("", []),
    ],
)
def test_credentials_within_a_value_are_found(value: str, found: list[str]) -> None:
    assert list(embedded_credentials(value)) == found


@pytest.mark.parametrize(
    "value", ["a://" * 9000, "x://:" * 9000, "password=" * 9000, ";" * 40000, "http://" + "a" * 40000]
)
def test_hostile_values_are_searched_quickly(value: str) -> None:
    began = time.process_time()
    list(embedded_credentials(value))
    assert time.process_time() - began < 1
