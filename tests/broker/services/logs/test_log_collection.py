"""Collection of logs: what is stored, when it is read, and what never is."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from broker.domain.lifecycle.states import LeaseState
from broker.domain.logs.log_lines import SKIPPED_TEXT, LogLine
from broker.domain.workloads.secret_variables import SecretVariable
from broker.models import Lease, LeaseLog, LeaseLogChunk
from broker.provisioners.base import ClusterUnreachable
from broker.services.leases.provision_specs import load_provision_spec
from broker.services.logs import log_collection, log_pages, log_retention, log_storage
from broker.services.logs.log_storage import LogProgress
from tenants.services.rls import tenant_scope
from tests.broker.services.logs.played_output import PlayedOutput, log_of, program_texts, stored_lines
from tests.simulation import Simulation, TenantContext, create_tenant, offering, reload_lease


def test_output_and_state_changes_are_stored_in_order_of_time(lease: Lease, output: PlayedOutput) -> None:
    output.write("hello", "world")
    output.collect(lease)
    texts = [each.line.text for each in stored_lines(lease)]
    assert [text.partition(":")[0] for text in texts[:4]] == [
        "lease requested",
        "lease queued",
        "lease provisioning",
        "lease active",
    ]
    assert texts[-2:] == ["hello", "world"]
    assert [each.number for each in stored_lines(lease)] == list(range(1, len(texts) + 1))


def test_a_second_collection_adds_only_what_is_new(lease: Lease, output: PlayedOutput) -> None:
    output.write("one")
    output.collect(lease)
    assert output.collect(lease) == 0
    output.write("two")
    assert output.collect(lease) == 1
    assert program_texts(lease) == ["one", "two"]


def test_a_log_is_read_before_its_lease_is_removed(lease: Lease, sim: Simulation, output: PlayedOutput) -> None:
    output.collect(lease)
    output.write("last words")
    sim.release_lease(lease)
    sim.run(30)
    assert reload_lease(lease).state == LeaseState.RELEASED
    assert program_texts(lease) == ["last words"]


def test_a_released_lease_has_its_whole_life_in_its_log_and_is_not_due_again(
    lease: Lease, sim: Simulation, output: PlayedOutput
) -> None:
    sim.release_lease(lease)
    sim.run(30)
    output.collect(lease)
    assert stored_lines(lease)[-1].line.text.startswith("lease released")
    assert (log_of(lease).due_at, log_of(lease).completed_at) == (None, sim.now)
    assert (lease.pk, lease.tenant_id) not in log_collection.due_logs(now=sim.now + timedelta(days=1))


def test_a_stopped_lease_is_read_again_after_its_start(
    sim: Simulation, kestrel: TenantContext, output: PlayedOutput
) -> None:
    lease = sim.create_lease(kestrel, offering(), volume=sim.create_volume(kestrel).pk)
    output.write("first run")
    output.collect(lease)
    sim.stop_lease(lease, kestrel)
    sim.run(30)
    output.collect(lease)
    output.collect(lease)
    assert log_of(lease).due_at is None
    output.lines.clear()
    sim.start_lease(lease, kestrel)
    sim.run(60)
    output.write("second run")
    output.collect(lease)
    assert program_texts(lease) == ["first run", "second run"]


def test_the_log_of_a_lease_released_while_it_was_stopped_is_completed(
    sim: Simulation, kestrel: TenantContext, output: PlayedOutput
) -> None:
    lease = sim.create_lease(kestrel, offering(), volume=sim.create_volume(kestrel).pk)
    sim.stop_lease(lease, kestrel)
    sim.run(30)
    output.collect(lease)
    output.collect(lease)
    assert log_of(lease).due_at is None
    sim.release_lease(lease)
    sim.run(30)
    output.collect(lease)
    assert log_of(lease).completed_at is not None
    assert stored_lines(lease)[-1].line.text.startswith("lease released")


def test_following_a_log_does_not_take_it_from_who_collects_it(
    lease: Lease, sim: Simulation, output: PlayedOutput
) -> None:
    def follow() -> None:
        with tenant_scope(lease.tenant_id):
            log_pages.follow_log(lease, now=sim.now)
        later = sim.now + timedelta(seconds=5)
        assert (lease.pk, lease.tenant_id) not in log_collection.due_logs(now=later)

    output.before_answer = follow
    output.write("hello")
    output.collect(lease)
    assert program_texts(lease) == ["hello"]


def test_a_cluster_that_does_not_respond_is_asked_again_after_a_minute(lease: Lease, output: PlayedOutput) -> None:
    output.failure = ClusterUnreachable("timed out")
    output.collect(lease)
    assert log_of(lease).due_at == output.sim.now + timedelta(seconds=60)


def test_secrets_are_masked_before_anything_is_stored(
    sim: Simulation, kestrel: TenantContext, output: PlayedOutput
) -> None:
    lease = sim.create_lease(kestrel, offering(), env={"WANDB_API_KEY": "w-123456", "MODE": "train"})
    output.write("login with w-123456 in mode train")
    output.collect(lease)
    assert program_texts(lease) == ["login with *** in mode train"]
    with tenant_scope(lease.tenant_id):
        assert not LeaseLogChunk.objects.filter(body__contains="w-123456").exists()


def test_a_secret_split_by_colours_is_masked_before_it_is_stored(
    sim: Simulation, kestrel: TenantContext, output: PlayedOutput
) -> None:
    word = "w-123456"
    lease = sim.create_lease(kestrel, offering(), env={"DATABASE_URL": f"postgres://app:{word}@db/x"})
    output.write("login with w-\x1b[31m123456\x1b[0m", "dXNlcjp3LTEyMzQ1Ng==", "", "done")
    output.collect(lease)
    assert program_texts(lease) == ["login with ***", "dXNlcj***", "", "done"]


def test_nothing_is_read_while_secrets_cannot_be_masked(
    lease: Lease, output: PlayedOutput, monkeypatch: pytest.MonkeyPatch
) -> None:
    unreadable = "the secret of HF_TOKEN was deleted"
    missing = (SecretVariable("HF_TOKEN", "sec_1", 1, None),)
    monkeypatch.setattr("broker.services.leases.provision_specs.read_secrets", lambda _: (missing, unreadable))
    output.write("hello")
    output.collect(lease)
    assert unreadable in log_of(lease).fault
    assert output.reads == []


def test_a_cluster_that_does_not_respond_loses_nothing(lease: Lease, output: PlayedOutput) -> None:
    output.write("hello")
    output.failure = ClusterUnreachable("timed out")
    output.collect(lease)
    assert log_of(lease).fault == "The cluster does not respond: timed out"
    output.failure = None
    output.collect(lease)
    assert (program_texts(lease), log_of(lease).fault) == (["hello"], "")


def test_a_fault_of_the_cluster_is_kept_with_what_was_read(lease: Lease, output: PlayedOutput) -> None:
    output.write("hello")
    output.fault = "the cluster does not let the broker read logs"
    output.collect(lease)
    assert (program_texts(lease), log_of(lease).fault) == (["hello"], output.fault)


def test_more_than_one_read_is_collected_in_one_go(lease: Lease, output: PlayedOutput) -> None:
    output.per_read = 2
    output.write(*"abcdef")
    output.collect(lease)
    assert program_texts(lease) == list("abcdef")


def test_a_flood_is_cut_with_a_line_that_says_so(lease: Lease, output: PlayedOutput) -> None:
    output.per_read = 2
    output.write(*(str(number) for number in range(100)))
    output.collect(lease)
    in_order = 2 * (log_collection.MAX_READS - 1)
    assert program_texts(lease) == [*(str(number) for number in range(in_order)), "98", "99"]
    assert SKIPPED_TEXT in [each.line.text for each in stored_lines(lease)]
    assert output.collect(lease) == 0


def test_the_oldest_lines_are_deleted_beyond_the_bound(lease: Lease, output: PlayedOutput, settings: Any) -> None:
    settings.LOG_MAX_BYTES = 100_000
    for number in range(40):
        output.write(f"{number} " + "x" * 3900)
        output.collect(lease)
    log = log_of(lease)
    assert log.size_bytes <= settings.LOG_MAX_BYTES
    kept = stored_lines(lease)
    assert kept[0].number == log.first_line > 1
    assert kept[-1].number == log.next_line - 1
    assert kept[-1].line.text.startswith("39 ")
    with tenant_scope(lease.tenant_id):
        assert sum(LeaseLogChunk.objects.values_list("size_bytes", flat=True)) == log.size_bytes


def test_small_reads_share_a_chunk(lease: Lease, output: PlayedOutput) -> None:
    for number in range(10):
        output.write(f"line {number}")
        output.collect(lease)
    with tenant_scope(lease.tenant_id):
        assert LeaseLogChunk.objects.count() == 1


def test_a_log_is_collected_by_one_process_at_a_time(lease: Lease, sim: Simulation, output: PlayedOutput) -> None:
    output.write("hello")
    sim.run(60)
    output.before_answer = lambda: again.append(log_collection.collect_log(lease.pk, lease.tenant_id, now=sim.now))
    again: list[int] = []
    assert output.collect(lease) > 0
    assert again == [0]


def test_what_was_read_under_a_lost_claim_is_not_stored_twice(
    lease: Lease, sim: Simulation, output: PlayedOutput
) -> None:
    output.write("hello")

    def take_over() -> None:
        output.before_answer = lambda: None
        with tenant_scope(lease.tenant_id):
            spec = load_provision_spec(reload_lease(lease))
        log_collection.collect_last_output(reload_lease(lease), spec, log_of(lease), now=sim.now)

    output.before_answer = take_over
    assert output.collect(lease) == 0
    assert program_texts(lease) == ["hello"]


def test_reads_become_rarer_while_nothing_is_written_and_frequent_again_after_a_line(
    lease: Lease, sim: Simulation, output: PlayedOutput
) -> None:
    def wait_s() -> float:
        due = log_of(lease).due_at
        assert due is not None
        return (due - sim.now).total_seconds()

    waits = []
    for _ in range(16):
        waits.append(wait_s())
        output.collect(lease, wait_s())
    assert 5 < waits[0] <= 10, "it has written nothing yet"
    assert waits[1:] == sorted(waits[1:])
    assert (waits[1], wait_s()) == (10, 60)
    output.write("hello")
    output.collect(lease, wait_s())
    assert wait_s() == 10


def test_a_followed_log_is_read_every_second(lease: Lease, sim: Simulation, output: PlayedOutput) -> None:
    for _ in range(16):
        output.collect(lease, 60)
    with tenant_scope(lease.tenant_id):
        log_pages.follow_log(lease, now=sim.now)
    assert output.collect(lease, 1) == 0
    assert log_of(lease).due_at == sim.now + timedelta(seconds=1)
    output.collect(lease, 30)
    assert log_of(lease).due_at == sim.now + timedelta(minutes=1), "nobody has asked again"


def test_a_lease_that_ran_before_an_upgrade_gets_its_log(lease: Lease, sim: Simulation, output: PlayedOutput) -> None:
    with tenant_scope(lease.tenant_id):
        LeaseLog.objects.all().delete()
    assert output.collect(lease) == 0
    assert log_collection.begin_missing_logs(now=sim.now) == 1
    output.write("hello")
    output.collect(lease)
    assert program_texts(lease) == ["hello"]
    assert log_collection.begin_missing_logs(now=sim.now) == 0


def test_old_logs_are_deleted_with_their_lines(
    lease: Lease, sim: Simulation, output: PlayedOutput, settings: Any
) -> None:
    output.write("hello")
    sim.release_lease(lease)
    sim.run(30)
    output.collect(lease)
    kept_until = sim.now + timedelta(days=settings.LOG_RETENTION_DAYS)
    assert log_retention.delete_old_logs(now=kept_until) == 0
    assert log_retention.delete_old_logs(now=kept_until + timedelta(seconds=1)) == 1
    with tenant_scope(lease.tenant_id):
        assert not LeaseLog.objects.exists()
        assert not LeaseLogChunk.objects.exists()
        assert log_pages.read_log_state(lease) == log_pages.LogState()


def test_another_tenant_sees_no_line(lease: Lease, output: PlayedOutput) -> None:
    output.write("hello")
    output.collect(lease)
    with tenant_scope(create_tenant("Other").tenant.pk):
        assert list(log_pages.iterate_lines(lease)) == []
        assert not LeaseLog.objects.exists()


def test_pages_filters_and_counts(lease: Lease, sim: Simulation, output: PlayedOutput) -> None:
    output.write("ERROR out of memory", "WARNING slow", "step 1", "step 2", "Step 3")
    output.collect(lease)
    with tenant_scope(lease.tenant_id):
        log = log_pages.read_log_state(lease)
        first = log_pages.read_lines_after(lease, 0, limit=3)
        rest = log_pages.read_lines_after(lease, first.next_after, limit=100)
        assert [len(first.lines), first.has_more, rest.has_more] == [3, True, False]
        assert len(first.lines) + len(rest.lines) == log.line_count == log.next_line - 1
        steps = log_pages.LineFilter(search="STEP")
        found = log_pages.read_lines_after(lease, 0, limit=2, wanted=steps)
        assert [each.line.text for each in found.lines] == ["step 1", "step 2"]
        last = log_pages.read_last_lines(lease, limit=1, wanted=steps)
        assert ([each.line.text for each in last.lines], last.next_after) == (["Step 3"], log.next_line - 1)
        errors = log_pages.read_last_lines(lease, limit=9, wanted=log_pages.LineFilter(level="error"))
        assert [each.line.text for each in errors.lines] == ["ERROR out of memory"]
        platform = log_pages.read_last_lines(lease, limit=99, wanted=log_pages.LineFilter(source="platform"))
        assert len(platform.lines) == log.line_count - 5


def test_last_lines_reach_over_chunks(lease: Lease, output: PlayedOutput) -> None:
    for number in range(30):
        output.write(f"{number} " + "x" * 3900)
        output.collect(lease)
    with tenant_scope(lease.tenant_id):
        assert LeaseLogChunk.objects.count() > 2
        last = log_pages.read_last_lines(lease, limit=20)
        assert [each.line.text.split()[0] for each in last.lines] == [str(number) for number in range(10, 30)]
        earlier = log_pages.read_last_lines(lease, limit=5, before=last.lines[0].number)
        assert [each.line.text.split()[0] for each in earlier.lines] == ["5", "6", "7", "8", "9"]
        assert earlier.has_more
        middle = log_pages.read_lines_after(lease, last.lines[4].number, limit=3)
        assert [each.line.text.split()[0] for each in middle.lines] == ["15", "16", "17"]


def test_of_two_that_loaded_the_same_log_one_stores(lease: Lease, sim: Simulation) -> None:
    with tenant_scope(lease.tenant_id):
        first, second = log_of(lease), log_of(lease)
        progress = LogProgress(generation=lease.generation)
        assert log_storage.store_lines(first, [LogLine(sim.now, "x")], progress)
        assert not log_storage.store_lines(second, [LogLine(sim.now, "x")], progress)
        assert not log_storage.store_lines(second, [], progress)
        assert log_storage.store_lines(log_of(lease), [], progress)
    assert program_texts(lease) == ["x"]
    assert (log_of(lease).due_at, log_of(lease).claimed_until) == (None, None)


def test_last_output_is_stored_once_although_another_process_stored_meanwhile(
    lease: Lease, sim: Simulation, output: PlayedOutput
) -> None:
    output.write("hello")
    sim.run(60)
    known = log_of(lease)

    def collect_meanwhile() -> None:
        output.before_answer = lambda: None
        assert log_collection.collect_log(lease.pk, lease.tenant_id, now=sim.now) > 0
        output.write("last words")

    output.before_answer = collect_meanwhile
    with tenant_scope(lease.tenant_id):
        spec = load_provision_spec(reload_lease(lease))
    assert log_collection.collect_last_output(reload_lease(lease), spec, known, now=sim.now) == 1
    assert program_texts(lease) == ["hello", "last words"]


def test_nothing_is_stored_for_a_lease_that_ends_without_new_output(
    lease: Lease, sim: Simulation, output: PlayedOutput
) -> None:
    output.write("hello")
    output.collect(lease)
    current, before = reload_lease(lease), log_of(lease)
    with tenant_scope(lease.tenant_id):
        spec = load_provision_spec(current)
    with CaptureQueriesContext(connection) as queries:
        assert log_collection.collect_last_output(current, spec, before, now=sim.now) == 0
    assert len(queries) == 0


@pytest.mark.parametrize("state", [LeaseState.STOPPED, LeaseState.RELEASED])
def test_the_end_of_a_quiet_lease_is_due_at_once(
    kestrel: TenantContext, sim: Simulation, output: PlayedOutput, state: LeaseState
) -> None:
    lease = sim.create_lease(kestrel, offering(), volume=sim.create_volume(kestrel).pk)
    for _ in range(12):
        output.collect(lease)
    if state == LeaseState.STOPPED:
        sim.stop_lease(lease, kestrel)
    else:
        sim.release_lease(lease)
    sim.run(5)
    assert reload_lease(lease).state == state
    due = log_of(lease).due_at
    assert due is not None
    assert due <= sim.now
    log_collection.collect_log(lease.pk, lease.tenant_id, now=sim.now)
    assert stored_lines(lease)[-1].line.text.startswith(f"lease {state}")
