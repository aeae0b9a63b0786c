"""URLs of PostgreSQL and Valkey keep known options and refuse unknown ones."""

import subprocess

import pytest

from config.broker_url import parse_broker_url
from config.database_url import django_database, parse_database_url
from config.setting_names import UnknownSetting, check_setting_names
from tests.config.test_settings_page import run_with_settings

OPTIONS = "sslmode=verify-full&sslrootcert=/ca.pem&target_session_attrs=read-write&connect_timeout=3&application_name=z"


def test_every_option_of_a_database_url_reaches_psycopg() -> None:
    found = django_database(
        f"postgresql://web:p%40s@a.example:5433,b.example:5434/gpus?{OPTIONS}", session="-c jit=off"
    )
    assert (found["NAME"], found["USER"], found["PASSWORD"]) == ("gpus", "web", "p@s")
    assert (found["HOST"], found["PORT"]) == ("a.example,b.example", "5433,5434")
    assert found["OPTIONS"] == {
        "sslmode": "verify-full",
        "sslrootcert": "/ca.pem",
        "target_session_attrs": "read-write",
        "connect_timeout": "3",
        "application_name": "z",
        "options": "-c jit=off",
    }


def test_session_settings_of_a_url_follow_ours() -> None:
    found = django_database("postgresql:///gpus?host=/run/pg&options=-c%20jit%3Don", session="-c jit=off")
    assert found["OPTIONS"]["options"] == "-c jit=off -c jit=on"
    assert found["HOST"] == "/run/pg"


def test_a_password_may_have_a_question_mark() -> None:
    assert parse_database_url("postgresql://web:hu?sh@db/gpus")["password"] == "hu?sh"


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("postgresql://web:hush@db/gpus?sslmod=require", 'invalid URI query parameter: "sslmod"'),
        ("mysql://web:hush@db/gpus", "not the URL of a PostgreSQL database"),
        ("host=db password=hush", "not the URL of a PostgreSQL database"),
        ("postgresql://web:hush@db:port/gpus", "port must be a number"),
        ("postgresql://web:hush%@db/gpus", "libpq cannot read it"),
        ("postgresql://web:hush@db", "name of the database is missing"),
        ("postgresql://web:hush@db/gpus?sslmode=verifyfull", "sslmode must be one of disable"),
        ("postgresql://web:hush@db/gpus?target_session_attrs=primry", "target_session_attrs must be one of any"),
        ("postgresql://web:hush@db/gpus?sslmode=verify-full&sslmode=disable", "sslmode is given twice"),
        ("postgresql://web:hush@db/gpus?sslrootcert=", "sslrootcert has no value"),
    ],
)
def test_a_wrong_database_url_is_refused_without_repeating_it(url: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as refused:
        parse_database_url(url)
    assert "hush" not in str(refused.value)


def test_valkey_by_tls_is_always_verified() -> None:
    found = parse_broker_url("rediss://:key@valkey.example:6380/0?ssl_ca_certs=/ca.pem")
    assert found.url == "rediss://:key@valkey.example:6380/0"
    assert found.tls == {"ssl_ca_certs": "/ca.pem", "ssl_cert_reqs": "required", "ssl_check_hostname": True}
    assert parse_broker_url("rediss://valkey.example").tls == {"ssl_cert_reqs": "required", "ssl_check_hostname": True}
    assert parse_broker_url("redis://valkey.example:6379/0").tls is None
    assert parse_broker_url("redis+socket:///run/valkey.sock?virtual_host=1").tls is None


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("rediss://valkey/0?ssl_ca_cert=/ca.pem", "Option ssl_ca_cert of rediss:// is unknown. Known: ssl_ca_certs"),
        ("rediss://valkey/0?ssl_cert_reqs=none", "Option ssl_cert_reqs of rediss:// is unknown"),
        ("redis://valkey/0?ssl_ca_certs=/ca.pem", "for TLS use rediss://"),
        ("amqp://rabbit/0", "must begin with one of redis://"),
        ("rediss://valkey/0?ssl_ca_certs=", "ssl_ca_certs has no value"),
        ("rediss://valkey/0?ssl_ca_certs=/a.pem&ssl_ca_certs=/b.pem", "ssl_ca_certs is given twice"),
        ("redis://valkey:port/0", "one host, a port, and the number of a database"),
        ("redis://a:6379,b:6379/0", "one host"),
        ("redis://valkey:6379/leases", "the number of a database"),
        ("redis://valkey:6379/0#1", "the number of a database"),
    ],
)
def test_an_option_of_the_valkey_url_without_effect_is_refused(url: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        parse_broker_url(url)


def test_a_misspelt_setting_is_refused_with_the_name_that_was_meant() -> None:
    known = ["database_url", "mail_url"]
    check_setting_names(["GPUBROKER_MAIL_URL", "gpubroker_database_url", "PATH", "..data"], known)
    for name in ("GPUBROKR_MAIL_URL", "GPUBROKERMAIL_URL", "GPU_BROKER_DATABASE_URL"):
        with pytest.raises(UnknownSetting, match="did you mean GPUBROKER_"):
            check_setting_names([name], known)
    with pytest.raises(UnknownSetting, match=r"GPUBROKER_MAIL_ULR is not a setting: did you mean GPUBROKER_MAIL_URL\?"):
        check_setting_names(["GPUBROKER_MAIL_ULR"], known)
    with pytest.raises(UnknownSetting, match=r"GPUBROKER_WEB_PORT is not a setting"):
        check_setting_names(["GPUBROKER_WEB_PORT"], known)


def started(**settings: str) -> subprocess.CompletedProcess[str]:
    return run_with_settings("import config.settings", secret_key="k", **settings)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"database_url": "postgresql://web:hush@db/x?sslmod=require"}, "sslmod"),
        ({"database_url": "postgresql:///x", "broker_url": "redis://:hush@valkey/0?ssl=1"}, "Option ssl"),
        ({"database_url": "postgresql:///x", "mail_server": "hush"}, "GPUBROKER_MAIL_SERVER is not a setting"),
    ],
)
def test_a_start_with_a_wrong_setting_fails_and_names_it(settings: dict[str, str], why: str) -> None:
    done = started(**settings)
    assert done.returncode == 1
    assert why in done.stderr
    assert "hush" not in done.stderr


def test_the_owner_s_connection_keeps_the_options_of_its_url() -> None:
    code = "import config.settings as s; print(s.DATABASES['owner']['OPTIONS'])"
    url = "postgresql://owner@db/x?sslmode=verify-full"
    done = run_with_settings(code, secret_key="k", database_url="postgresql:///x", owner_database_url=url)
    assert "'sslmode': 'verify-full'" in done.stdout, done.stderr
    assert "lock_timeout=2s" in done.stdout
