"""Every setting is documented as it is."""

import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import SecretStr

from config.env import EnvironmentSettings, settings_markdown

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "settings.md"


def test_the_page_of_settings_is_printed_from_their_declaration() -> None:
    # To update it: python -c "from config.env import settings_markdown; print(settings_markdown(), end='')"
    # with its output in docs/reference/settings.md
    assert PAGE.read_text() == settings_markdown()


def test_every_setting_says_what_it_means() -> None:
    assert [name for name, field in EnvironmentSettings.model_fields.items() if not field.description] == []


def test_a_secret_may_lie_in_a_file_of_its_name_which_a_variable_outdoes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "GPUBROKER_METRICS_TOKEN").write_text("from the file\n")
    monkeypatch.delenv("GPUBROKER_METRICS_TOKEN", raising=False)
    operator = EnvironmentSettings(_secrets_dir=tmp_path)  # type: ignore[call-arg]
    assert operator.metrics_token == SecretStr("from the file")
    assert "from the file" not in repr(operator)
    monkeypatch.setenv("GPUBROKER_METRICS_TOKEN", "from the variable")
    assert EnvironmentSettings(_secrets_dir=tmp_path).metrics_token == SecretStr("from the variable")  # type: ignore[call-arg]


def started(code: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run code in a process that has these settings and no others."""
    env = {f"GPUBROKER_{name.upper()}": value for name, value in settings.items()}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, cwd=PAGE.parents[2], env=env, capture_output=True, text=True)


def test_the_folder_where_containers_find_their_secrets_is_read_once_it_is_there() -> None:
    code = """from pathlib import Path; Path.is_dir = lambda self: True
from config.env import EnvironmentSettings; print(EnvironmentSettings.model_config["secrets_dir"])"""
    done = started(code, secret_key="k", database_url="postgresql:///x")
    assert done.stdout == "/run/secrets/gpubroker\n", done.stderr


def test_a_start_without_its_key_ends_and_names_what_is_missing() -> None:
    done = started("import config.env", database_url="postgresql:///x")
    assert done.returncode == 1
    assert "secret_key" in done.stderr
