"""Live logs: delivery, resuming, the end, and who may read them."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from broker.domain.lifecycle.states import LeaseState
from broker.domain.logs.log_lines import LogLine
from broker.models import Lease, LeaseLog
from broker.services.logs import log_pages, log_storage
from broker.services.logs.log_storage import LogProgress
from tenants.domain.roles import Role
from tenants.models import Member
from tenants.services.rls import tenant_scope
from tests.simulation import TenantContext, create_tenant
from tests.web.http.test_event_stream import Reader, _look_often, ask, bearer, kestrel, run, session_of, while_reading

NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)
__all__ = ["_look_often", "kestrel"]


@pytest.fixture
def lease(kestrel: TenantContext) -> Lease:
    wanted = ask(kestrel, "mine")
    with tenant_scope(kestrel.tenant.pk):
        log_storage.begin_log(wanted, now=NOW)
    return wanted


def write(lease: Lease, *texts: str) -> None:
    with tenant_scope(lease.tenant_id):
        log = LeaseLog.objects.get(pk=lease.pk)
        lines = [LogLine(NOW, text) for text in texts]
        assert log_storage.store_lines(log, lines, LogProgress(generation=log.generation, due_at=NOW))


def reader_of(lease: Lease, headers: dict[str, str], *, query: str = "") -> Reader:
    return Reader(headers, path=f"/api/v1/events/logs/{lease.pk}", query=query)


def texts(reader: Reader) -> list[str]:
    rows = [row.removeprefix("data: ") for row in reader.text.decode().splitlines() if row.startswith("data: {")]
    return [line["text"] for line in map(json.loads, rows) if "text" in line]


def test_a_reader_gets_the_newest_lines_and_then_what_is_written(kestrel: TenantContext, lease: Lease) -> None:
    write(lease, "one", "two")
    reader = reader_of(lease, bearer(kestrel))
    while_reading(reader, lambda: write(lease, "three"), until=lambda got: b"three" in got.text)
    assert texts(reader) == ["one", "two", "three"]
    assert b"id: 3\nevent: line\n" in reader.text


@pytest.mark.parametrize("how", ["header", "query"])
def test_a_reader_resumes_after_the_last_line_it_got(kestrel: TenantContext, lease: Lease, how: str) -> None:
    write(lease, "one", "two", "three")
    headers = bearer(kestrel) | ({"last-event-id": "1"} if how == "header" else {})
    reader = reader_of(lease, headers, query="cursor=1" if how == "query" else "")
    run(reader.read())
    assert texts(reader) == ["two", "three"]


def test_a_reader_that_is_cut_off_at_once_loses_no_line(kestrel: TenantContext, lease: Lease) -> None:
    write(lease, "one", "two")
    reader = reader_of(lease, bearer(kestrel))
    run(reader.read())
    assert b": you are here\nid: 0\n" in reader.text


def test_many_lines_arrive_in_order(kestrel: TenantContext, lease: Lease) -> None:
    wanted = [f"line {number}" for number in range(1200)]
    write(lease, *wanted)
    reader = reader_of(lease, bearer(kestrel), query="cursor=0")
    run(reader.read())
    assert texts(reader) == wanted


def test_the_stream_ends_with_the_log(kestrel: TenantContext, lease: Lease) -> None:
    write(lease, "one")
    with tenant_scope(lease.tenant_id):
        Lease.objects.update(state=LeaseState.RELEASED)
        LeaseLog.objects.update(completed_at=NOW, due_at=None)
    reader = reader_of(lease, bearer(kestrel))
    run(reader.read())
    assert reader.was_sent_away
    assert reader.text.endswith(b"event: end\ndata: {}\n\n")
    assert texts(reader) == ["one"]


def test_reading_live_has_the_log_collected_more_often(kestrel: TenantContext, lease: Lease) -> None:
    with tenant_scope(lease.tenant_id):
        later = NOW + timedelta(days=3650)
        LeaseLog.objects.update(due_at=later)
    run(reader_of(lease, bearer(kestrel)).read())
    with tenant_scope(lease.tenant_id):
        log = LeaseLog.objects.get()
        assert log.followed_until is not None
        assert log.due_at is not None
        assert log.due_at < later


@pytest.mark.parametrize("last", ["x", "-1", "1-2", "9" * 19])
def test_an_invalid_line_number_is_refused(kestrel: TenantContext, lease: Lease, last: str) -> None:
    reader = reader_of(lease, bearer(kestrel) | {"last-event-id": last})
    run(reader.read())
    assert reader.status == 400


def test_another_tenants_log_does_not_exist(lease: Lease) -> None:
    reader = reader_of(lease, bearer(create_tenant("Swift")))
    run(reader.read())
    assert reader.status == 404
    assert b"one" not in reader.text


def test_a_member_of_another_project_does_not_see_it(kestrel: TenantContext, lease: Lease) -> None:
    headers, user = session_of(kestrel, Role.VIEWER)
    with tenant_scope(kestrel.tenant.pk):
        Member.objects.filter(user=user).update(project=kestrel.create_project("elsewhere"))
    reader = reader_of(lease, headers)
    run(reader.read())
    assert reader.status == 404


def test_a_reader_who_loses_access_is_disconnected(kestrel: TenantContext, lease: Lease) -> None:
    headers, user = session_of(kestrel)

    def dismiss() -> None:
        with tenant_scope(kestrel.tenant.pk):
            Member.objects.filter(user=user).delete()
        write(lease, "secret")

    reader = reader_of(lease, headers)
    while_reading(reader, dismiss, until=lambda _: False)
    assert reader.was_sent_away
    assert texts(reader) == []


def test_a_lease_that_never_ran_has_an_empty_log_that_ends_with_it(kestrel: TenantContext) -> None:
    wanted = ask(kestrel, "never")
    with tenant_scope(wanted.tenant_id):
        Lease.objects.filter(pk=wanted.pk).update(state=LeaseState.RELEASED)
        assert log_pages.read_log_state(wanted).line_count == 0
    reader = reader_of(wanted, bearer(kestrel))
    run(reader.read())
    assert (reader.was_sent_away, texts(reader)) == (True, [])
