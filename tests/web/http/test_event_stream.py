"""Event stream: delivery, order, isolation and authentication."""

import asyncio
import json
import random
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from django.conf import settings as django_settings
from django.db import connections, transaction
from django.test import Client

from broker.domain.lifecycle.states import EndReason
from broker.models import Lease
from broker.services.leases.lease_requests import LeaseRequest, request_lease
from broker.services.leases.lifecycle import termination
from broker.services.reports import lease_events
from broker.services.reports.lease_events import EventPosition
from deploy.embedded.roles import WEB
from ports import clock, outbox
from tenants.domain.roles import Role
from tenants.models import ApiToken, Member, Quota, ServiceAccount
from tenants.services.rls import system_scope, tenant_scope
from tests.database import OwnDatabase
from tests.simulation import TenantContext, create_gpus, create_tenant, offering, wait_until_events_settled
from web.http import event_stream as stream
from web.http import stream_changes
from web.http.event_stream import EventStreamApp
from web.http.openapi import PROBLEM_SCHEMA

Headers = dict[str, str]


STILL_HERE = b": still here\n\n"
PATIENCE_S = 30.0  # for what normally takes no time: a busy machine is not a failure


class Reader:
    """Client of the stream that collects frames and can disconnect."""

    def __init__(self, headers: Headers, *, path: str = "/api/v1/events/stream", query: str = "") -> None:
        self.headers, self.path, self.query = headers, path, query
        self.status, self.answered, self.text = 0, {}, b""
        self.was_sent_away = False

    async def read(
        self,
        until: "Callable[[Reader], bool] | None" = None,
        *,
        seconds: float = PATIENCE_S,
        application: EventStreamApp | None = None,
    ) -> None:
        """Read until a condition holds or the stream ends."""
        scope = {
            "type": "http",
            "method": "GET",
            "path": self.path,
            "query_string": self.query.encode(),
            "headers": [(k.lower().encode(), v.encode()) for k, v in self.headers.items()],
        }
        self._until, self._enough = until or found_nothing_new, asyncio.Event()
        reading = asyncio.ensure_future((application or EventStreamApp())(scope, self._receive, self._send))
        enough = asyncio.ensure_future(self._enough.wait())
        await asyncio.wait([reading, enough], timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        enough.cancel()
        self.was_sent_away = reading.done()
        if not self.was_sent_away:
            reading.cancel()
            await asyncio.wait([reading])
        elif error := reading.exception():
            raise error

    async def _receive(self) -> dict[str, Any]:
        await asyncio.sleep(3600)
        return {"type": "http.disconnect"}

    async def _send(self, message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.answered = {k.decode(): v.decode() for k, v in message["headers"]}
        else:
            self.text += message["body"]
            if self._until(self):
                self._enough.set()

    @property
    def frames(self) -> list[dict[str, str]]:
        whole = self.text.decode().split("\n\n")[:-1]
        return [dict(line.split(": ", 1) for line in frame.split("\n") if not line.startswith(":")) for frame in whole]

    @property
    def seen(self) -> list[dict[str, Any]]:
        return [json.loads(frame["data"]) for frame in self.frames if "data" in frame]

    @property
    def last_id(self) -> str:
        return next((frame["id"] for frame in reversed(self.frames) if "id" in frame), "")


def found_nothing_new(reader: Reader, *, times: int = 10) -> bool:
    """Return whether the last queries returned no events.

    One alone proves nothing: what ends elsewhere on the server between its snapshot and its look at the locks
    holds events back until the next.
    """
    return reader.text.rpartition(b"\ndata: ")[2].count(STILL_HERE) >= times


def never(reader: Reader) -> bool:
    return False


THREADS = 4


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine, and close the connections of its threads."""
    loop, pool = asyncio.new_event_loop(), ThreadPoolExecutor(THREADS)
    loop.set_default_executor(pool)
    together = threading.Barrier(THREADS)
    try:
        loop.run_until_complete(work)
        list(pool.map(lambda _: (together.wait(60), connections.close_all()), range(THREADS)))
    finally:
        loop.close()
        pool.shutdown()


@pytest.fixture(autouse=True)
def _look_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_changes, "POLL_INTERVAL_S", 0.02)
    monkeypatch.setattr(stream, "CHECK_INTERVAL_S", 0.02)  # each look that finds nothing is told


@pytest.fixture
def kestrel(own_database: OwnDatabase) -> Iterator[TenantContext]:
    create_gpus(1)
    with outbox.captured(lambda *hint: None):
        owner = create_tenant("Kestrel")
        with tenant_scope(owner.tenant.pk):
            Quota.objects.all().delete()  # whose row would let the writers in one by one
        yield owner


def bearer(owner: TenantContext, role: Role = Role.MEMBER, **how: Any) -> Headers:
    return {"authorization": f"Bearer {owner.token(role, now=clock.now(), **how)}"}


def ask(owner: TenantContext, name: str = "job", *, wait: bool = True) -> Lease:
    with tenant_scope(owner.tenant.pk):
        lease = request_lease(
            LeaseRequest(offering_id=offering().pk, name=name, max_duration_s=3600),
            project=owner.project,
            actor=owner.actor,
            now=clock.now(),
        )
    if wait:
        wait_until_events_settled()
    return lease


def write(owner: TenantContext, seed: int, rounds: int) -> None:
    """Create short leases in transactions that commit late or never."""
    chance = random.Random(seed)
    for number in range(rounds):
        with tenant_scope(owner.tenant.pk):
            lease = request_lease(
                LeaseRequest(offering_id=SLICE[0], name=f"w{seed}-{number}", max_duration_s=3600),
                project=owner.project,
                actor=owner.actor,
                now=clock.now(),
            )
            time.sleep(chance.choice([0, 0, 0.002, 0.03]))
            if chance.random() < 0.2:
                transaction.set_rollback(True)
                continue
        with tenant_scope(owner.tenant.pk):
            termination.release_lease(
                Lease.objects.select_related("offering").get(pk=lease.pk),
                reason=EndReason.BY_TENANT,
                now=clock.now(),
            )
            time.sleep(chance.choice([0, 0.005]))


SLICE: list[str] = []


@pytest.mark.deep
def test_a_reconnecting_reader_gets_every_event_of_concurrent_writers_exactly_once(kestrel: TenantContext) -> None:
    swift = create_tenant("Swift")
    SLICE[:] = [offering().pk]
    headers, seen = bearer(kestrel), []
    chance = random.Random(7)

    def writer(number: int) -> None:
        try:
            write(kestrel if number < 7 else swift, number, 25)
        finally:
            connections.close_all()

    writers = [threading.Thread(target=writer, args=(number,)) for number in range(8)]

    async def follow() -> None:
        beginning = Reader(headers)
        await beginning.read()
        last = beginning.last_id
        for each in writers:
            each.start()
        writing = True
        while writing:
            writing = any(each.is_alive() for each in writers)
            reader = Reader({**headers, "last-event-id": last})
            if writing:
                await reader.read(never, seconds=chance.choice([0.01, 0.05, 0.15, 0.4]))
            else:
                await asyncio.to_thread(lambda: (wait_until_events_settled(), connections.close_all()))
                await reader.read()
            seen.extend(reader.seen)
            last = reader.last_id or last

    run(follow())
    for each in writers:
        each.join()
    with system_scope():
        rows = list(Lease.objects.filter(tenant=kestrel.tenant).values_list("id", "seq"))
    wanted = sorted((lease, seq) for lease, last in rows for seq in range(last + 1))
    assert len(wanted) > 400
    got = [(event["lease"], event["seq"]) for event in seen]
    assert len(got) == len(set(got)), "doubled"
    assert sorted(got) == wanted
    ids = [lease_events.parse_event_id(event["id"], tenant_id=kestrel.tenant.pk) for event in seen]
    assert ids == sorted(ids)
    for lease, _ in rows:
        steps = [seq for of, seq in got if of == lease]
        assert steps == sorted(steps)


def test_an_uncommitted_event_delays_the_ones_after_it(kestrel: TenantContext) -> None:
    SLICE[:] = [offering().pk]
    headers = bearer(kestrel)
    begun, go_on = threading.Event(), threading.Event()

    def slow() -> None:
        try:
            with tenant_scope(kestrel.tenant.pk):
                request_lease(
                    LeaseRequest(offering_id=SLICE[0], name="slow", max_duration_s=3600),
                    project=kestrel.project,
                    actor=kestrel.actor,
                    now=clock.now(),
                )
                begun.set()
                go_on.wait(60)
        finally:
            connections.close_all()

    thread = threading.Thread(target=slow)
    first, second = Reader({**headers, "last-event-id": "0-0"}), Reader({**headers, "last-event-id": "0-0"})

    async def both() -> None:
        thread.start()
        assert await asyncio.to_thread(begun.wait, PATIENCE_S)
        await asyncio.to_thread(lambda: (ask(kestrel, "quick", wait=False), connections.close_all()))
        await first.read()
        go_on.set()
        await asyncio.to_thread(thread.join)
        await asyncio.to_thread(lambda: (wait_until_events_settled(), connections.close_all()))
        await second.read()

    run(both())
    assert first.seen == []
    assert [event["name"] for event in second.seen] == ["slow", "slow", "quick", "quick"]


def test_a_transaction_in_another_database_does_not_delay_events(
    kestrel: TenantContext, own_database: OwnDatabase
) -> None:
    with psycopg.connect(own_database.server.login(WEB, "postgres")) as elsewhere:
        elsewhere.execute("SELECT pg_current_xact_id()")
        lease = ask(kestrel, wait=False)
        with tenant_scope(kestrel.tenant.pk):
            for _ in range(100):  # others come and go on this server, and may hold one look back, never many
                seen = lease_events.events_after(EventPosition(), tenant_id=kestrel.tenant.pk)
                newest = lease_events.latest_position(tenant_id=kestrel.tenant.pk)
                if seen and newest == seen[-1].position:
                    break
                clock.sleep(0.02)
            assert [event.lease_id for event in seen] == [lease.pk] * 2
            assert newest == seen[-1].position


def test_a_reader_without_a_last_event_id_gets_only_new_events(kestrel: TenantContext) -> None:
    ask(kestrel, "before")
    for _ in range(20):  # who is held back for one look starts a little earlier
        reader = Reader(bearer(kestrel))
        run(reader.read())
        if not reader.seen:
            break
    assert (reader.status, reader.answered["content-type"]) == (200, "text/event-stream")
    assert reader.seen == []
    again = Reader({**reader.headers, "last-event-id": reader.last_id})
    ask(kestrel, "after")
    run(again.read())
    assert {event["name"] for event in again.seen} == {"after"}


def test_a_reader_cut_off_before_a_batch_gets_it_after_reconnecting(kestrel: TenantContext) -> None:
    ask(kestrel, "mine")
    headers = bearer(kestrel)
    cut_off = Reader({**headers, "last-event-id": "0-0"})
    run(cut_off.read())
    greeted_with = cut_off.frames[0]["id"]  # all that a client has when the line breaks just there
    again = Reader({**headers, "last-event-id": greeted_with})
    run(again.read())
    assert [event["type"] for event in again.seen] == ["lease.requested", "lease.queued"]


def test_events_of_more_than_one_batch_all_arrive(kestrel: TenantContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lease_events, "BATCH", 3)
    monkeypatch.setattr(lease_events.events_after, "__kwdefaults__", {"within": None, "limit": 3})
    for number in range(5):
        ask(kestrel, f"job-{number}")
    reader = Reader({**bearer(kestrel), "last-event-id": "0-0"})
    run(reader.read())
    assert len(reader.seen) == 10


def test_a_reader_gets_no_events_of_another_tenant(kestrel: TenantContext) -> None:
    swift = create_tenant("Swift")
    ask(swift, "theirs")
    reader = Reader({**bearer(kestrel), "last-event-id": "0-0"})
    run(reader.read())
    assert reader.seen == []


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"authorization": "Bearer gpb_live_nonsense"}, 401),
        ({"authorization": "Basic abc"}, 401),
        ({"cookie": "sessionid=nonsense"}, 401),
        ({"cookie": "other=1"}, 401),
        ({"cookie": "\x00=;;;"}, 401),
    ],
)
def test_an_unauthenticated_reader_gets_a_401(kestrel: TenantContext, headers: Headers, status: int) -> None:
    reader = Reader(headers)
    run(reader.read())
    assert reader.status == status
    assert reader.answered["content-type"] == "application/problem+json"
    said = json.loads(reader.text)
    assert (said["status"], said["code"]) == (401, "not-authenticated")
    assert said["fix"]["text"]
    assert set(PROBLEM_SCHEMA["required"]) <= set(said)


def test_a_token_without_the_scope_gets_a_403(kestrel: TenantContext) -> None:
    reader = Reader(bearer(kestrel, scopes=("quotas:read",)))
    run(reader.read())
    assert reader.status == 403
    said = json.loads(reader.text)
    assert (said["code"], said["detail"]) == ("missing-scope", "This token lacks the scope leases:read.")


@pytest.mark.parametrize("last", ["x", "1", "1-2-3", "9" * 50 + "-1", f"{2**63}-1"])
def test_an_invalid_last_event_id_is_refused(kestrel: TenantContext, last: str) -> None:
    reader = Reader({**bearer(kestrel), "last-event-id": last})
    run(reader.read())
    assert reader.status == 400
    assert "ID of the last event" in json.loads(reader.text)["fix"]["text"]


def while_reading(reader: Reader, act: Callable[[], None], *, until: Callable[[Reader], bool]) -> None:
    async def both() -> None:
        reading = asyncio.ensure_future(reader.read(until))
        while not found_nothing_new(reader, times=1):
            assert not reading.done()
            await asyncio.sleep(0.01)
        await asyncio.to_thread(lambda: (act(), connections.close_all()))
        await reading

    run(both())


def test_a_reader_whose_token_is_revoked_is_disconnected(kestrel: TenantContext) -> None:
    reader = Reader(bearer(kestrel))

    def revoke() -> None:
        with tenant_scope(kestrel.tenant.pk):
            ApiToken.objects.update(revoked_at=clock.now())
        ask(kestrel, "secret")

    while_reading(reader, revoke, until=never)
    assert reader.was_sent_away
    assert reader.text.endswith(b"event: end\ndata: {}\n\n")
    assert b"secret" not in reader.text


def session_of(owner: TenantContext, role: Role = Role.MEMBER) -> tuple[Headers, Any]:
    user = owner.create_member(role)
    client = Client()
    client.force_login(user)
    return {"cookie": f"sessionid={client.cookies['sessionid'].value}"}, user


def test_the_stream_accepts_sessions_only_from_the_portals_origin(kestrel: TenantContext) -> None:
    headers, _ = session_of(kestrel)
    ask(kestrel, "mine")
    ours = Reader({**headers, "origin": django_settings.PUBLIC_URL, "last-event-id": "0-0"})
    run(ours.read())
    assert ours.seen[0]["name"] == "mine"
    assert ours.answered["access-control-allow-origin"] == django_settings.PUBLIC_URL
    assert ours.answered["access-control-allow-credentials"] == "true"
    theirs = Reader({**headers, "origin": "https://evil.example"})
    run(theirs.read())
    assert "access-control-allow-origin" not in theirs.answered


def test_a_session_from_before_a_password_change_is_refused(kestrel: TenantContext) -> None:
    headers, user = session_of(kestrel)
    user.set_password("another long password")
    user.save()
    reader = Reader(headers)
    run(reader.read())
    assert reader.status == 401


def test_a_user_without_a_membership_is_refused_by_the_stream(kestrel: TenantContext) -> None:
    headers, user = session_of(kestrel)
    with tenant_scope(kestrel.tenant.pk):
        Member.objects.filter(user=user).delete()
        ServiceAccount.objects.all().delete()
    reader = Reader(headers)
    run(reader.read())
    assert reader.status == 401


def test_an_idle_stream_sends_heartbeats(kestrel: TenantContext) -> None:
    reader = Reader(bearer(kestrel))
    run(reader.read())
    assert b": still here\n\n" in reader.text


def test_a_stalled_reader_is_disconnected(kestrel: TenantContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "SEND_TIMEOUT_S", 0.05)
    reader = Reader(bearer(kestrel))
    application = EventStreamApp()

    async def take_nothing(message: dict[str, Any]) -> None:
        if message["type"] != "http.response.start":
            await asyncio.sleep(60)

    monkeypatch.setattr(reader, "_send", take_nothing)
    run(reader.read(application=application))
    assert reader.was_sent_away
    assert application.readers == 0


def test_idle_readers_share_one_query_and_are_woken_by_an_event(
    kestrel: TenantContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream, "CHECK_INTERVAL_S", 60.0)
    polls: list[int] = []
    reads: list[str] = []
    read_positions, read_next = stream_changes.read_positions, stream._read_next

    def count_polls(subjects: Any) -> dict[Any, object]:
        polls.append(len(subjects))
        return read_positions(subjects)

    async def count_reads(feed: Any, headers: Headers, position: str) -> Any:
        reads.append(position)
        return await read_next(feed, headers, position)

    monkeypatch.setattr(stream_changes, "read_positions", count_polls)
    monkeypatch.setattr(stream, "_read_next", count_reads)
    application = EventStreamApp()
    headers = bearer(kestrel)
    readers = [Reader(headers) for _ in range(5)]
    ask(kestrel, "before")

    async def idle_then_write() -> None:
        reading = [
            asyncio.ensure_future(each.read(lambda got: b"after" in got.text, application=application))
            for each in readers
        ]
        while len(reads) < 5:  # each reads once more after the first poll
            await asyncio.sleep(0.01)
        begun = len(polls)
        while len(polls) < begun + 20:
            await asyncio.sleep(0.01)
        assert len(reads) == 5
        await asyncio.to_thread(lambda: (ask(kestrel, "after"), connections.close_all()))
        await asyncio.gather(*reading)

    run(idle_then_write())
    assert set(polls) == {1}
    assert {event["name"] for reader in readers for event in reader.seen} == {"after"}
    assert not application.changes._watches


def test_readers_above_the_limit_get_a_503(kestrel: TenantContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "MAX_READERS", 0)
    reader = Reader(bearer(kestrel))
    run(reader.read())
    assert reader.status == 503


def test_the_stream_survives_a_lost_database_connection(kestrel: TenantContext) -> None:
    reader = Reader({**bearer(kestrel), "last-event-id": "0-0"})

    def cut() -> None:
        from django.db import connection

        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        ask(kestrel, "later")

    while_reading(reader, cut, until=lambda reader: len(reader.seen) == 2)
    assert {event["name"] for event in reader.seen} == {"later"}


def test_the_stream_server_answers_only_the_stream_and_health(own_database: OwnDatabase) -> None:
    for path, status in (("/health", 200), ("/api/v1/leases", 404), ("/", 404)):
        reader = Reader({}, path=path)
        run(reader.read())
        assert reader.status == status


def test_the_stream_app_confirms_lifespan_startup_and_shutdown() -> None:
    said: list[str] = []
    remaining = iter(["lifespan.startup", "lifespan.shutdown"])

    async def live() -> None:
        async def receive() -> dict[str, Any]:
            return {"type": next(remaining)}

        async def send(message: dict[str, Any]) -> None:
            said.append(message["type"])

        await EventStreamApp()({"type": "lifespan"}, receive, send)

    run(live())
    assert said == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


def test_a_tenant_has_seats_and_others_have_theirs(kestrel: TenantContext, settings: Any) -> None:
    settings.EVENT_STREAMS_PER_TENANT = 1
    swift, application = create_tenant("Swift"), EventStreamApp()
    first, second, other, later = (
        Reader(bearer(kestrel)),
        Reader(bearer(kestrel)),
        Reader(bearer(swift)),
        Reader(bearer(kestrel)),
    )

    async def scenario() -> None:
        reading = asyncio.ensure_future(
            first.read(lambda _: second.status > 0 and other.status > 0, application=application)
        )
        while not first.status:
            await asyncio.sleep(0.01)
        await second.read(application=application)
        await other.read(application=application)
        await reading
        await later.read(application=application)

    run(scenario())
    assert [each.status for each in (first, second, other, later)] == [200, 429, 200, 200]
    problem = json.loads(second.text)
    assert (problem["code"], second.answered["retry-after"]) == ("rate-limited", "60")
    assert "1 live streams" in problem["detail"]
    assert problem["fix"]["text"]
