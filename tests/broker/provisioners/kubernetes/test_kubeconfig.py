"""Accepted kubeconfigs, and the messages of refusals."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat

from broker.provisioners.kubernetes.client.kubeconfig import (
    UnusableKubeconfig,
    parse_kubeconfig,
    parse_pasted_kubeconfig,
    server_address,
)
from broker.provisioners.kubernetes.doctor.credentials import read_credential
from tests.controlplane.certificates import Authority

AUTHORITY = Authority.new()
PAIR, OTHER = AUTHORITY.client("broker"), AUTHORITY.client("somebody")


def b64(pem: bytes) -> str:
    return base64.b64encode(pem).decode()


def of_user(**user: Any) -> dict[str, Any]:
    return config(users=[{"name": "u1", "user": user}])


def of_cluster(**cluster: Any) -> dict[str, Any]:
    return config(clusters=[{"name": "c1", "cluster": {"server": "https://prod.example", **cluster}}])


def config(**changes: Any) -> dict[str, Any]:
    whole = {
        "current-context": "prod",
        "contexts": [
            {"name": "prod", "context": {"cluster": "c1", "user": "u1"}},
            {"name": "lab", "context": {"cluster": "c2", "user": "u1"}},
        ],
        "clusters": [
            {"name": "c1", "cluster": {"server": "https://prod.example"}},
            {"name": "c2", "cluster": {"server": "https://lab.example"}},
        ],
        "users": [{"name": "u1", "user": {"token": "secret"}}],
    }
    return {**whole, **changes}


def test_only_the_current_context_of_a_kubeconfig_is_kept() -> None:
    kept = parse_kubeconfig(yaml.safe_dump(config()))
    assert server_address(kept) == "https://prod.example"
    assert "lab" not in str(kept)
    assert parse_kubeconfig(yaml.safe_dump(kept)) == kept


def test_a_kubeconfig_context_can_be_selected_by_name() -> None:
    assert server_address(parse_kubeconfig(yaml.safe_dump(config()), context="lab")) == "https://lab.example"


def test_files_next_to_the_kubeconfig_are_embedded(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_bytes(AUTHORITY.certificate)
    (tmp_path / "key.pem").write_bytes(PAIR.key)
    user = {"client-certificate-data": b64(PAIR.certificate), "client-key": "key.pem"}
    cluster = {"server": "https://prod.example", "certificate-authority": "ca.pem"}
    text = yaml.safe_dump(config(users=[{"name": "u1", "user": user}], clusters=[{"name": "c1", "cluster": cluster}]))
    kept = parse_kubeconfig(text, beside=tmp_path)
    read = base64.b64decode(kept["clusters"][0]["cluster"]["certificate-authority-data"])
    assert read == AUTHORITY.certificate
    assert base64.b64decode(kept["users"][0]["user"]["client-key-data"]) == PAIR.key
    with pytest.raises(UnusableKubeconfig, match="--flatten"):
        parse_kubeconfig(text)
    (tmp_path / "key.pem").unlink()
    with pytest.raises(UnusableKubeconfig, match="client-key` cannot be read: No such file"):
        parse_kubeconfig(text, beside=tmp_path)
    with pytest.raises(UnusableKubeconfig, match="the file name is not valid"):
        parse_kubeconfig(yaml.safe_dump(of_user(**{"client-key": "a\0b"})), beside=tmp_path)


def test_embedded_data_takes_precedence_over_a_file() -> None:
    inside = {"certificate-authority-data": b64(AUTHORITY.certificate)}
    kept = parse_kubeconfig(yaml.safe_dump(of_cluster(**{"certificate-authority": "ca"}, **inside)))
    assert kept["clusters"][0]["cluster"] == {"server": "https://prod.example", **inside}


def test_a_parsed_kubeconfig_is_json_serializable_and_keeps_dates_as_text() -> None:
    program = {"command": "sign-in", "apiVersion": "client.authentication.k8s.io/v1", "args": ["", "-v"]}
    whole = of_user(exec={**program, "env": [{"name": "A", "value": ""}]}, expires="@")
    kept = parse_kubeconfig(yaml.safe_dump(whole).replace("'@'", "2026-01-01"))
    assert json.loads(json.dumps(kept)) == kept
    assert kept["users"][0]["user"]["expires"] == "2026-01-01"


def test_a_trailing_line_break_is_removed_from_a_token() -> None:
    kept = parse_kubeconfig(yaml.safe_dump(of_user(token="abc\n", exec=None, username="")))
    assert kept["users"][0]["user"] == {"token": "abc"}


def test_token_files_and_passwords_are_accepted() -> None:
    for user in ({"tokenFile": "/run/token"}, {"username": "a", "password": "b"}):
        assert parse_kubeconfig(yaml.safe_dump(of_user(**user)))["users"][0]["user"] == user


@pytest.mark.parametrize("user", [{"tokenFile": "/etc/shadow"}, {"exec": {"command": "sh", "apiVersion": "v1"}}])
@pytest.mark.parametrize("also", [{}, {"token": "abc"}])
def test_a_pasted_kubeconfig_runs_no_program_and_reads_no_file(user: dict[str, Any], also: dict[str, str]) -> None:
    with pytest.raises(UnusableKubeconfig, match="which a pasted kubeconfig may not do"):
        parse_pasted_kubeconfig(yaml.safe_dump(of_user(**user, **also)))


def test_a_pasted_kubeconfig_with_a_token_is_accepted() -> None:
    whole = yaml.safe_dump(of_user(token="abc"))
    assert parse_pasted_kubeconfig(whole) == parse_kubeconfig(whole)


def test_a_token_with_an_out_of_range_expiry_has_no_expiry_date() -> None:
    claims = base64.urlsafe_b64encode(b'{"exp":99999999999999999}').decode().rstrip("=")
    assert read_credential(parse_kubeconfig(yaml.safe_dump(of_user(token=f"a.{claims}.b")))).expires_at is None


EXEC = {"command": "sign-in", "apiVersion": "client.authentication.k8s.io/v1"}


def expanding(line: str) -> str:
    """Return mappings of which each contains the one before twice."""
    return "\n".join(["a0: &a0 {k: v}", *(f"a{n}: &a{n} {{{line.format(f'*a{n - 1}')}}}" for n in range(1, 27))])


def naming(cluster: str) -> str:
    """Return a kubeconfig whose context names a cluster by what is no text."""
    context = f"contexts: [{{name: prod, context: {{cluster: {cluster}, user: u1}}}}]"
    return f"current-context: prod\n{context}\nclusters: [{{name: &y [*y], cluster: {{}}}}]\nusers: []"


SIGNED = {"client-certificate-data": b64(PAIR.certificate), "client-key-data": b64(PAIR.key)}
LOCKED = AUTHORITY.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"a password"))
INSECURE = {"server": "https://x", "insecure-skip-tls-verify": True}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: [", "not valid YAML in line"),
        ("\x00", "not valid YAML"),
        ("just words", "not a kubeconfig"),
        ("", "not a kubeconfig"),
        (config(**{"current-context": ""}), "no `current-context`"),
        (config(**{"current-context": "nowhere"}), "'nowhere', which `contexts` does not contain"),
        (config(contexts=None), "'prod', which `contexts` does not contain"),
        (config(users=[]), "'u1', which `users` does not contain"),
        (config(clusters=[]), "'c1', which `clusters` does not contain"),
        (config(clusters=[{"name": "c1", "cluster": {"server": "http://x"}}]), "https://"),
        (config(clusters=[{"name": "c1"}]), "https://"),
        (config(clusters=[{"name": "c1", "cluster": INSECURE}]), "certificate-authority-data"),
        (of_user(), "could not sign in"),
        (config(contexts=[{"name": "prod", "context": "c1"}]), "`context` of 'prod' .* must be a mapping"),
        (config(contexts=[{"name": "prod", "context": ["c1"]}]), "must be a mapping"),
        (config(clusters=[{"name": "c1", "cluster": "https://x"}]), "`cluster` of 'c1' .* must be a mapping"),
        (config(users=[{"name": "u1", "user": ["token"]}]), "`user` of 'u1' .* must be a mapping"),
        (config(**{"current-context": ["prod"]}), "no `current-context`"),
        (of_cluster(server="https://[::1"), "IPv6 address in .brackets."),
        (of_cluster(server="https://x:port"), "https://"),
        (of_cluster(server="https://x y"), "https://"),
        (of_cluster(server=["https://x"]), "https://"),
        ("a: !!timestamp x", "not valid YAML"),
        ("a: !!int x", "not valid YAML"),
        ("a: !!bool x", "not valid YAML"),
        ("[" * 2000, "not valid YAML"),
        (expanding("<<: [{0}, {0}]"), "`<<` in line 2 is not supported"),
        (f"{expanding('v: [{0}, {0}]')}\n{naming('*a26')}", "in `clusters` must be a text"),
        (naming("&x [*x]"), "in `clusters` must be a text"),
        (
            yaml.safe_dump(of_user(token="a", b="@")).replace("'@'", "!!timestamp 2026-01-01"),
            "unsupported type",
        ),
        (yaml.safe_dump(of_user(token="a", b="@")).replace("'@'", "&x [*x]"), "too deeply nested"),
        (of_user(token="a", b=b"bytes"), "value of the unsupported type bytes"),
        (of_user(token="a", b=["b"] * 3000), "too deeply nested"),
        (of_user(token="a€"), "contains blanks or invalid characters"),
        (of_user(token="a b"), "blanks"),
        (of_user(token=12345), "`token` must be a text. Put it in quotes"),
        (of_user(token=""), "could not sign in"),
        (of_user(tokenFile=["x"]), "`tokenFile` must be a text"),
        (of_user(username="me"), "could not sign in"),
        (of_user(username="me", password=1), "`password` must be a text"),
        (of_user(exec=None), "could not sign in"),
        (of_user(exec="gke-auth"), "`exec` must have"),
        (of_user(exec={"command": "x"}), "`exec` must have"),
        (of_user(exec={**EXEC, "args": "-v"}), "`args` as a list of texts"),
        (of_user(exec={**EXEC, "args": [5]}), "`args` as a list of texts"),
        (of_user(exec={**EXEC, "env": [{"name": "A"}]}), "list of `name` and `value`"),
        (of_user(exec={**EXEC, "env": ["A=b"]}), "list of `name` and `value`"),
        (of_user(**{"auth-provider": {"name": "gcp"}}), "`auth-provider` was removed in Kubernetes"),
        (of_cluster(**{"certificate-authority-data": "Q0E"}), "not valid base64"),
        (of_cluster(**{"certificate-authority-data": "Q0E="}), "`certificate-authority-data` contains no readable PEM"),
        (of_cluster(**{"certificate-authority-data": 5}), "must be a text"),
        (of_user(**{"client-certificate-data": b64(PAIR.certificate)}), "without `client-key-data`"),
        (of_user(**{"client-key-data": b64(PAIR.key)}), "without `client-certificate-data`"),
        (of_user(**{**SIGNED, "client-key-data": b64(OTHER.key)}), "does not match"),
        (of_user(**{**SIGNED, "client-key-data": b64(PAIR.certificate)}), "`client-key-data` contains no readable PEM"),
        (of_user(**{**SIGNED, "client-key-data": b64(LOCKED)}), "protected by a password"),
    ],
)
def test_an_invalid_kubeconfig_is_refused_with_a_fix(text: str | dict[str, Any], says: str) -> None:
    with pytest.raises(UnusableKubeconfig, match=says):
        parse_kubeconfig(text if isinstance(text, str) else yaml.safe_dump(text))
