"""What an operator may hand over as the way into a cluster, and what we say when it leads nowhere."""

import base64
from pathlib import Path
from typing import Any

import pytest
import yaml

from broker.provisioners.kubernetes.kubeconfig import Unusable, parse, server


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


def test_only_the_context_in_use_is_kept() -> None:
    kept = parse(yaml.safe_dump(config()))
    assert server(kept) == "https://prod.example"
    assert "lab" not in str(kept)
    assert parse(yaml.safe_dump(kept)) == kept


def test_another_context_can_be_named() -> None:
    assert server(parse(yaml.safe_dump(config()), context="lab")) == "https://lab.example"


def test_files_beside_it_are_read_in(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("CA")
    (tmp_path / "key.pem").write_text("KEY")
    user = {"client-certificate-data": "Q0VSVA==", "client-key": "key.pem"}
    cluster = {"server": "https://prod.example", "certificate-authority": "ca.pem"}
    text = yaml.safe_dump(
        config(users=[{"name": "u1", "user": user}], clusters=[{"name": "c1", "cluster": cluster}])
    )
    kept = parse(text, beside=tmp_path)
    assert base64.b64decode(kept["clusters"][0]["cluster"]["certificate-authority-data"]) == b"CA"
    assert base64.b64decode(kept["users"][0]["user"]["client-key-data"]) == b"KEY"
    with pytest.raises(Unusable, match="--flatten"):
        parse(text)
    (tmp_path / "key.pem").unlink()
    with pytest.raises(Unusable, match="client-key` cannot be read: No such file"):
        parse(text, beside=tmp_path)


CA = {"server": "https://x", "certificate-authority": "ca", "certificate-authority-data": "Q0E="}


def test_what_is_inside_wins_over_the_file() -> None:
    kept = parse(yaml.safe_dump(config(clusters=[{"name": "c1", "cluster": CA}])))
    assert kept["clusters"][0]["cluster"] == {"server": "https://x", "certificate-authority-data": "Q0E="}


INSECURE = {"server": "https://x", "insecure-skip-tls-verify": True}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("a: [", "no YAML in line"),
        ("\x00", "no YAML"),
        ("just words", "no kubeconfig"),
        ("", "no kubeconfig"),
        (config(**{"current-context": ""}), "no `current-context`"),
        (config(**{"current-context": "nowhere"}), "no entry 'nowhere' under `contexts`"),
        (config(contexts=None), "no entry 'prod' under `contexts`"),
        (config(users=[]), "no entry 'u1' under `users`"),
        (config(clusters=[]), "no entry 'c1' under `clusters`"),
        (config(clusters=[{"name": "c1", "cluster": {"server": "http://x"}}]), "https://"),
        (config(clusters=[{"name": "c1"}]), "https://"),
        (config(clusters=[{"name": "c1", "cluster": INSECURE}]), "certificate-authority-data"),
        (config(users=[{"name": "u1", "user": {}}]), "could not sign in"),
    ],
)
def test_a_broken_one_is_refused_with_what_to_change(text: str | dict[str, Any], says: str) -> None:
    with pytest.raises(Unusable, match=says):
        parse(text if isinstance(text, str) else yaml.safe_dump(text))
