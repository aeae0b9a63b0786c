"""Settings and their reference page."""

import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import SecretStr, ValidationError

from config.env import EnvironmentSettings, settings_markdown

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "settings.md"


def test_the_settings_page_matches_the_settings_class() -> None:
    # To update it: python -c "from config.env import settings_markdown; print(settings_markdown(), end='')"
    # with its output in docs/reference/settings.md
    assert PAGE.read_text() == settings_markdown()


def test_every_setting_has_a_description() -> None:
    assert [name for name, field in EnvironmentSettings.model_fields.items() if not field.description] == []


def test_a_secret_is_read_from_a_file_unless_its_variable_is_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "GPUBROKER_METRICS_TOKEN").write_text("from the file\n")
    monkeypatch.delenv("GPUBROKER_METRICS_TOKEN", raising=False)
    operator = EnvironmentSettings(_secrets_dir=tmp_path)  # type: ignore[call-arg]
    assert operator.metrics_token == SecretStr("from the file")
    assert "from the file" not in repr(operator)
    monkeypatch.setenv("GPUBROKER_METRICS_TOKEN", "from the variable")
    assert EnvironmentSettings(_secrets_dir=tmp_path).metrics_token == SecretStr("from the variable")  # type: ignore[call-arg]


def run_with_settings(code: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process that has these settings and no others."""
    env = {f"GPUBROKER_{name.upper()}": value for name, value in settings.items()}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=PAGE.parents[2], env=env, capture_output=True, text=True)


def test_the_secrets_folder_of_containers_is_used_if_it_exists() -> None:
    code = """from pathlib import Path; Path.is_dir = lambda self: True; Path.iterdir = lambda self: iter(())
from config.env import EnvironmentSettings; print(EnvironmentSettings.model_config["secrets_dir"])"""
    done = run_with_settings(code, secret_key="k", database_url="postgresql:///x")
    assert done.stdout == "/run/secrets/gpubroker\n", done.stderr


def test_a_start_without_a_required_setting_fails_and_names_it() -> None:
    done = run_with_settings("import config.env", database_url="postgresql:///x")
    assert done.returncode == 1
    assert "secret_key" in done.stderr


def load(**settings: object) -> EnvironmentSettings:
    return EnvironmentSettings(**{"secret_key": "k", "database_url": "postgresql:///x", **settings})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("secret_key", "", "at least 1"),
        ("credential_encryption_keys", "hush", "not a Fernet key"),
        ("public_url", "gpus.example.com", "https://gpus.example.com"),
        ("public_url", "https://gpus.example.com/portal", "without a path"),
        ("public_url", "", "https://gpus.example.com"),
        ("events_url", "events.example.com", "without a path"),
        ("log_level", "DEBUGG", "'DEBUG'"),
        ("currency", "EURO", "ISO 4217"),
        ("supplier_country", "Germany", "two letters"),
        ("sign_up_domains", ("@uni.example",), "without @"),
        ("oidc_client_id", "abc", "needs both"),
        ("oidc_server_url", "https://sso.example", "needs both"),
        ("max_lease_hours", 0, "greater than or equal to 1"),
        ("provision_timeout_s", 0, "greater than or equal to 1"),
        ("simulated_speed", 0, "greater than 0"),
        ("simulated_speed", float("nan"), "finite"),
    ],
)
def test_a_value_that_would_fail_later_is_refused_at_the_start(name: str, value: object, why: str) -> None:
    with pytest.raises(ValidationError, match=why) as refused:
        load(**{name: value})
    assert "hush" not in str(refused.value)


def test_a_public_url_with_a_slash_makes_the_same_links() -> None:
    assert load(public_url="https://gpus.example.com/").public_url == "https://gpus.example.com"


def test_a_log_level_may_be_in_lower_case() -> None:
    assert load(log_level="debug").log_level == "DEBUG"


def test_a_list_that_is_no_json_is_refused_by_the_name_of_its_variable() -> None:
    done = run_with_settings("import config.env", secret_key="k", database_url="postgresql:///x", allowed_hosts="a.b")
    assert "GPUBROKER_ALLOWED_HOSTS must be JSON" in done.stderr
