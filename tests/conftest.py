"""Set up every test run."""

import gc
import os
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.fernet import Fernet
from hypothesis import HealthCheck, settings

from deploy.embedded import account, binaries
from deploy.embedded.process import Process
from deploy.embedded.roles import OWNER, WEB
from deploy.embedded.valkey import Valkey
from tests import postgres_server, summary, tiers, time_zones
from tests.chart.processes import box
from tests.cluster.behaviours import outcomes
from tests.controlplane import binaries as controlplane
from tests.session import folder as session_folder

pytest_plugins = ["tests.controlplane.fixtures", "tests.database", "tests.fixtures"]

HERE = Path(__file__).parent
CLUSTERS = {"control_plane", "own_control_plane", "brittle_control_plane"}
REQUEST_LIMITS = [
    f"GPUBROKER_{each}_PER_MINUTE"
    for each in ("TOKEN_REQUESTS", "TENANT_REQUESTS", "ADDRESS_REQUESTS", "SIGN_IN_ATTEMPTS")
] + ["GPUBROKER_INVITATIONS_PER_HOUR", "GPUBROKER_COUPON_ATTEMPTS_PER_HOUR"]
IS_WORKER = "PYTEST_XDIST_WORKER" in os.environ
DEEP_LEFT_OUT = pytest.StashKey[bool]()
# A busy machine is not a failure; `timeout` ends what hangs.
settings.register_profile("house", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")


def needs() -> dict[str, tuple[bool, str]]:
    """Return, per folder, whether this machine can run it."""
    return {
        "browser": (
            bool(shutil.which("chromium") or shutil.which("chromium-browser")),
            "no chromium; apt-get install chromium adds them",
        ),
        "chart": (controlplane.find_binary("helm") is not None, "no Helm; make controlplane adds them"),
        "stripemock": (
            controlplane.find_binary("stripe-mock") is not None,
            "no mock of Stripe's own; make controlplane adds them",
        ),
        "chart/processes": (
            box.possible(),
            "nobody may make namespaces here; root may, or everybody once user namespaces are allowed",
        ),
    }


def left_out() -> dict[str, str]:
    """Return the folders of tests that this machine cannot run, and why."""
    return {name: why for name, (can, why) in needs().items() if not can and (HERE / name).is_dir()}


def speaks_to_a_cluster(item: pytest.Item) -> bool:
    """Return whether a test needs a control plane."""
    if CLUSTERS & set(getattr(item, "fixturenames", ())):
        return True
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return item.get_closest_marker("cluster") is not None and "simulated" not in parameters


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Start the product with the tests' settings; tests without Django pay nothing.

    Here and not earlier: a worker's coverage begins with its session, and would miss every import before.
    """
    config = session.config
    runs_tests = IS_WORKER or config.getoption("dist", "no") == "no"
    if not runs_tests or not config.pluginmanager.has_plugin("django"):
        return
    # The plugins of pytest_plugins must not be imported before pytest itself does.
    from tests.database import worker_database

    server, name = postgres_server.server(), worker_database()
    os.environ.update(
        {
            "DJANGO_SETTINGS_MODULE": "config.settings",
            "GPUBROKER_DATABASE_URL": server.login(WEB, name),
            "GPUBROKER_OWNER_DATABASE_URL": server.login(OWNER, name),
            "GPUBROKER_SECRET_KEY": "tests only: signs nothing that anybody else would accept",
            "GPUBROKER_BROKER_URL": f"redis+socket://{session_folder()}/nobody-listens.sock",
            "GPUBROKER_DATA_DIR": str(session_folder() / "files"),
            "GPUBROKER_CREDENTIAL_ENCRYPTION_KEYS": Fernet.generate_key().decode(),
            "GPUBROKER_SECURE_COOKIES": "false",
            # Counted queries must not depend on what this process has counted; tests of limits set their own.
            **dict.fromkeys(REQUEST_LIMITS, "0"),
            # Broker is tested without money; tests of billing's gate ask for it.
            "GPUBROKER_LEASE_GATES": '["broker.services.quotas.gate"]',
        }
    )
    import django

    django.setup()
    share_static_files()
    if os.environ.get("TESTS_IN_OTHER_TIME_ZONES"):
        time_zones.move()


def share_static_files() -> None:
    """Search for static files once instead of per client."""
    from whitenoise.middleware import WhiteNoiseMiddleware

    search, found = WhiteNoiseMiddleware.add_files_from_finders, dict[str, object]()

    def add_files(self: WhiteNoiseMiddleware) -> None:
        if not found:
            search(self)
            found.update(self.files)
        self.files.update(found)

    WhiteNoiseMiddleware.add_files_from_finders = add_files


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a run choose how much of the deep tier it takes."""
    parser.addoption("--deep", default="all", help="deep tests to run: all, none, commit or a slice 0..4")


def pytest_collection_finish() -> None:
    """Keep the garbage collector from walking through all tests and imports again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)


def pytest_configure() -> None:
    """Make the session's folder, which the workers inherit."""
    session_folder()


@pytest.fixture(scope="session", autouse=True)
def _no_database_unasked(request: pytest.FixtureRequest) -> None:
    """Refuse database access to tests without a database fixture."""
    if request.config.pluginmanager.has_plugin("django"):
        request.getfixturevalue("django_db_blocker").block()


@pytest.hookimpl(tryfirst=True)  # before -m looks at the markers
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark tiers, deselect what cannot run, refuse tests that truncate tables."""
    absent, no_cluster = [HERE / name for name in left_out()], controlplane.missing_binaries()
    gone = []
    for item in items:
        in_cluster = speaks_to_a_cluster(item)
        if in_cluster:
            item.add_marker("cluster")
        if (in_cluster and no_cluster) or any(folder in item.path.parents for folder in absent):
            gone.append(item)
    tiers.sort(items)
    deep = tiers.left_out(items, config.getoption("deep"))
    config.stash[DEEP_LEFT_OUT] = bool(deep)
    gone += deep
    if gone:
        config.hook.pytest_deselected(items=gone)
        without = set(gone)
        items[:] = [item for item in items if item not in without]
    for item in items:
        mark = item.get_closest_marker("django_db")
        if mark and (mark.kwargs.get("transaction") or mark.args):
            raise pytest.UsageError(f"{item.nodeid}: tests that commit take own_database, not transaction=True")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print skipped tests and how to enable them."""
    if any(outcomes.folder().iterdir()):
        for line in outcomes.table():
            terminalreporter.write_line(line)
    said = [f"left out: tests/{name}: {why}" for name, why in left_out().items()]
    if controlplane.missing_binaries():
        said.append("left out: cluster tests: no Kubernetes control plane; make controlplane adds it")
    if not any(binaries.DEBIAN_DIRECTORY.glob("*/bin/initdb")):
        said.append("left out: the SQL on a second version of PostgreSQL; apt-get install postgresql adds it")
    # Who leads workers collects nothing, and cannot know.
    if config.stash.get(DEEP_LEFT_OUT, True) and (words := tiers.described(config.getoption("deep"))):
        said.append(words)
    if IS_WORKER or summary.note(terminalreporter.stats, said):  # a worker's outcomes are counted by who leads it
        return
    for words in said:
        terminalreporter.write_line(words, yellow=True)
    if outcome := os.environ.get("EARLIER_OUTCOME"):
        terminalreporter.write_line(outcome, red=True)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave the server to the next session."""
    if IS_WORKER or "TEST_SESSION" not in os.environ:
        return
    postgres_server.leave()
    shutil.rmtree(session_folder(), ignore_errors=True)


@pytest.fixture(scope="session")
def valkey_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Valkey]:
    """Start this worker's own Valkey, in memory only."""
    servers = account.unprivileged_account()
    places = session_folder() / f"valkey-{os.getpid()}"
    places.mkdir()
    account.give_ownership(places, servers)
    session_folder().chmod(0o711)
    server = Valkey(binaries.find_valkey(servers), places, places, servers, keep=False)
    process = Process(server.process_spec(), places / "valkey.log")
    process.start()
    try:
        while not server.responds():
            assert process.is_alive, process.last_words()
            time.sleep(0.01)
        yield server
    finally:
        process.send(signal.SIGTERM)
        process.popen.wait(10)


@pytest.fixture
def valkey_url(valkey_server: Valkey) -> str:
    """Return the address of an empty Valkey."""
    valkey_server.send_command(b"FLUSHALL")
    return valkey_server.url
