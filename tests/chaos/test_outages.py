"""One outage at a time: API answers and recovery."""

import http.client
import json
import os
import signal
import threading
import time
from contextlib import suppress

import psycopg
import pytest

from tests.chaos.disturbed import Disturbed
from tests.chaos.fault_injector import processes

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(180)]


def test_the_api_answers_202_while_valkey_is_dead(here: Disturbed) -> None:
    here.fault_injector.kill("Valkey and its file")
    intents = [here.intent() for _ in range(4)]
    answers = [here.ask(intent) for intent in intents]
    assert [answer.status for answer in answers] == [202] * 4
    assert max(answer.at - answer.sent for answer in answers) < 2
    for intent in intents:
        here.until(intent, "active", within_s=60)


def test_a_silent_valkey_keeps_no_request_waiting(here: Disturbed) -> None:
    valkey = here.fault_injector.main("valkey")
    os.kill(valkey, signal.SIGSTOP)  # takes connections, never answers
    try:
        intents = [here.intent() for _ in range(4)]
        with here.heard("relay", "relay waiting"):
            answers = [here.ask(intent) for intent in intents]
        answers.append(here.ask(late := here.intent()))
    finally:
        os.kill(valkey, signal.SIGCONT)
    assert [answer.status for answer in answers] == [202] * 5
    assert max(answer.at - answer.sent for answer in answers) < 2
    for intent in [*intents, late]:
        here.until(intent, "active", within_s=60)


def test_a_request_repeated_after_a_postgresql_crash_creates_one_lease(here: Disturbed) -> None:
    intent = here.intent()
    with suppress(psycopg.OperationalError), here.locked("broker_lease"):  # which dies with it
        asking = threading.Thread(target=here.ask, args=[intent])
        asking.start()
        here.until_someone_waits()
        killed = here.fault_injector.kill("PostgreSQL")
        asking.join(30)
    (first,) = intent.heard
    assert first.status in (0, 503)
    here.client.launch(intent)
    assert intent.heard[-1].status == 202
    assert intent.heard[-1].at - killed.at < 10
    assert here.count(intent) == 1
    here.until(intent, "active", within_s=60)


def test_a_lost_answer_is_replayed_and_creates_no_second_lease(here: Disturbed) -> None:
    intent = here.intent()
    line = http.client.HTTPConnection("127.0.0.1", here.running.port)
    line.request("POST", "/api/v1/leases", json.dumps(intent.body), here.client.headers(intent.key))
    end = time.monotonic() + 10
    while not here.count(intent):
        assert time.monotonic() < end
        time.sleep(0.02)
    line.close()
    again = here.ask(intent)  # who hung up never saw the first answer
    assert (again.status, again.replayed) == (202, True)
    assert here.count(intent) == 1


def test_a_worker_finishes_its_task_after_sigterm(here: Disturbed) -> None:
    intent, worker = here.intent(), here.fault_injector.main("worker")
    with here.locked("broker_simulatedpod"):
        here.ask(intent)
        here.until_someone_waits()
        with here.heard("worker", "Warm shutdown"):
            os.kill(worker, signal.SIGTERM)
        assert worker in processes(), "it left its work behind"
    end = time.monotonic() + 10
    while worker in processes():
        assert time.monotonic() < end
        time.sleep(0.05)
    assert here.pods(intent) == 1
    here.fault_injector.main("worker", other_than=worker)
    here.until(intent, "active", within_s=30)
    query = "SELECT unfinished_claims, claimed_until FROM broker_lease WHERE name = %s"
    assert here.history.rows(query, intent.body["name"]) == [(0, None)]


def test_a_task_cut_off_at_shutdown_is_done_by_the_next_worker(here: Disturbed) -> None:
    intent, worker = here.intent(), here.fault_injector.main("worker")
    with here.locked("broker_simulatedpod"):
        here.ask(intent)
        here.until_someone_waits()
        with here.heard("worker", "Warm shutdown"):
            os.kill(worker, signal.SIGTERM)
        os.kill(worker, signal.SIGQUIT)  # the grace is over
        here.fault_injector.main("worker", other_than=worker)
    took = here.until(intent, "active", within_s=60)
    assert took < 60
    assert here.pods(intent) == 1


def test_a_killed_worker_child_is_replaced_and_its_lease_becomes_active(here: Disturbed) -> None:
    intent = here.intent()
    with here.locked("broker_simulatedpod"):
        here.ask(intent)
        here.until_someone_waits()
        for child in here.fault_injector.children("worker"):
            os.kill(child, signal.SIGKILL)
    here.until(intent, "active", within_s=60)


def test_a_read_only_database_returns_503_until_it_is_writable(here: Disturbed) -> None:
    before = here.intent()
    assert here.ask(before).status == 202
    with here.running.connect() as administrator:
        administrator.execute("ALTER SYSTEM SET default_transaction_read_only = on")
        administrator.execute("SELECT pg_reload_conf()")
        try:
            intent, end = here.intent(), time.monotonic() + 10
            while (answer := here.ask(intent)).status == 202:  # a session hears of it with its next statement
                assert time.monotonic() < end
                intent = here.intent()
            assert (answer.status, answer.body["code"]) == (503, "busy")
        finally:
            administrator.execute("SET default_transaction_read_only = off")
            administrator.execute("ALTER SYSTEM RESET default_transaction_read_only")
            administrator.execute("SELECT pg_reload_conf()")
    here.client.launch(intent)
    assert intent.heard[-1].status == 202
    assert (here.count(before), here.count(intent)) == (1, 1)
    for lease in (before, intent):
        here.until(lease, "active", within_s=60)


def test_a_database_without_room_for_another_session_is_a_quick_503_and_health_stays(
    here: Disturbed,
) -> None:
    intent = here.intent()
    with here.running.connect() as administrator:
        administrator.execute("ALTER DATABASE gpubroker CONNECTION LIMIT 0")
        try:
            administrator.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename LIKE 'gpubroker_w%'"
            )
            answers = [here.ask(intent) for _ in range(12)]
            health = http.client.HTTPConnection("127.0.0.1", here.running.port)
            health.request("GET", "/health")
            assert health.getresponse().status == 200
            health.close()
        finally:
            administrator.execute("ALTER DATABASE gpubroker CONNECTION LIMIT -1")
    assert {(answer.status, answer.body.get("code")) for answer in answers} == {(503, "busy")}
    assert max(answer.at - answer.sent for answer in answers) < 2
    here.client.launch(intent)
    assert here.count(intent) == 1
    here.until(intent, "active", within_s=60)
