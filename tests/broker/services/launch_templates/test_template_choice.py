"""Leases launched with a saved template: what they get, and what they keep."""

import pytest

from broker.domain.workloads.templates import build_program
from broker.models import Cluster, LaunchTemplate, Lease
from broker.provisioners.kubernetes.render.spec import LeaseSpec
from broker.provisioners.kubernetes.spec_conversion import lease_spec
from broker.services.launch_templates import template_store
from broker.services.launch_templates.template_choice import launchable_templates
from broker.services.leases import lease_arrays
from broker.services.leases.lease_connections import LeaseConnection, lease_connections_of
from broker.services.leases.lease_requests import LeaseRequest, request_lease
from broker.services.leases.provision_specs import access_token, load_provision_spec
from broker.services.leases.schedules import schedule_records
from tenants.services.errors import InvalidValue, ObjectNotFound
from tenants.services.rls import tenant_scope
from tests.broker.services.launch_templates.saved_templates import (
    WEB,
    change_template,
    save_login,
    save_operator_template,
    save_template,
)
from tests.simulation import NOW, Simulation, TenantContext, create_tenant, offering, reload_lease


def rendered_spec(lease: Lease) -> LeaseSpec:
    with tenant_scope(lease.tenant_id):
        return lease_spec(load_provision_spec(reload_lease(lease), with_secrets=True))


def connections(lease: Lease) -> list[LeaseConnection]:
    Cluster.objects.update(
        provisioner="kubernetes", domain="leases.example", ingress="ingress/public", bastion="in.example"
    )
    with tenant_scope(lease.tenant_id):
        return lease_connections_of(Lease.objects.get(pk=lease.pk))


def test_a_lease_runs_what_its_template_says(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(
        kestrel, offering(), template_id=save_template(kestrel).pk, command="--lowvram", env={"MODE": "slow", "A": "b"}
    )
    spec = rendered_spec(lease)
    program = build_program(spec.workload)
    assert (lease.workload, lease.image) == ("own", "ghcr.io/acme/comfy:1")
    assert (program.command, program.arguments) == (("python", "-u"), ("main.py", "--listen", "--lowvram"))
    assert program.env == (("A", "b"), ("MODE", "slow"))
    assert program.template.home == "/workspace"


def test_a_changed_or_deleted_template_changes_no_lease(sim: Simulation, kestrel: TenantContext) -> None:
    template = save_template(kestrel)
    lease = sim.create_lease(kestrel, offering(), template_id=template.pk)
    before = rendered_spec(lease).workload
    change_template(kestrel, template, image="ghcr.io/acme/comfy:2", ports=[WEB], command="other.py")
    with tenant_scope(kestrel.tenant.pk):
        template_store.delete_template(LaunchTemplate.objects.get(), actor=kestrel.actor, now=NOW)
    assert rendered_spec(lease).workload == before
    assert reload_lease(lease).launch_template["version"] == 1


def test_a_batch_template_runs_its_command_unless_the_lease_has_one(sim: Simulation, kestrel: TenantContext) -> None:
    template = save_template(kestrel, shape="batch", command="python train.py && ls", ports=[], readiness_path="")
    default = sim.create_lease(kestrel, offering(), template_id=template.pk)
    own = sim.create_lease(kestrel, offering(), template_id=template.pk, command="python test.py")
    assert (default.workload, default.command) == ("batch", "python train.py && ls")
    assert build_program(rendered_spec(own).workload).command == ("/bin/sh", "-c", "python test.py")


def test_a_template_of_another_project_or_tenant_does_not_exist(sim: Simulation, kestrel: TenantContext) -> None:
    beside = save_template(kestrel, project=kestrel.create_project("team"))
    foreign = save_template(create_tenant("Swift"))
    for template_id in (beside.pk, foreign.pk, "tpl_0"):
        with pytest.raises(ObjectNotFound, match="The template does not exist in this project"):
            sim.request_lease(kestrel, offering(), template_id=template_id)


def test_operators_templates_can_be_launched_in_every_project(sim: Simulation, kestrel: TenantContext) -> None:
    shared, own = save_operator_template(name="Shared"), save_template(kestrel)
    lease = sim.create_lease(kestrel, offering(), template_id=shared.pk)
    assert lease.launch_template["name"] == "Shared"
    with tenant_scope(kestrel.tenant.pk):
        assert launchable_templates(kestrel.project) == [own, shared]


def test_a_template_that_needs_a_volume_is_not_launched_without_one(sim: Simulation, kestrel: TenantContext) -> None:
    template = save_template(kestrel, needs_volume=True)
    with pytest.raises(InvalidValue, match="keeps its files on a volume; none was chosen"):
        sim.request_lease(kestrel, offering(), template_id=template.pk)
    volume = sim.create_volume(kestrel)
    lease = sim.create_lease(kestrel, offering(), template_id=template.pk, volume=volume.pk)
    assert [each.path for each in rendered_spec(lease).volumes] == ["/workspace"]


def test_a_workload_and_a_template_exclude_each_other(sim: Simulation, kestrel: TenantContext) -> None:
    with pytest.raises(InvalidValue, match="Both a workload and a saved template"):
        sim.request_lease(kestrel, offering(), template_id=save_template(kestrel).pk, workload="jupyter")


def test_each_http_port_has_a_link_and_each_other_port_a_tunnel(sim: Simulation, kestrel: TenantContext) -> None:
    lease = sim.create_lease(kestrel, offering(), template_id=save_template(kestrel).pk)
    tail, project, token = lease.pk.removeprefix("lse_"), lease.project_id.removeprefix("prj_"), access_token(lease.pk)
    assert connections(lease) == [
        LeaseConnection("ComfyUI web", f"https://{tail}.leases.example/", is_link=True, secret=token),
        LeaseConnection("ComfyUI metrics", f"https://{tail}-metrics.leases.example/", is_link=True, secret=token),
        LeaseConnection(
            "ComfyUI db",
            f"ssh -N -L 5432:l-{tail}-g{lease.generation}.gt-{project}.svc:5432 gpubroker@in.example",
        ),
    ]


def test_a_link_without_an_access_token_is_marked_as_open(sim: Simulation, kestrel: TenantContext) -> None:
    template = save_template(kestrel, token_variable="", ports=[WEB])
    (link,) = connections(sim.create_lease(kestrel, offering(), template_id=template.pk))
    assert (link.label, link.secret, link.is_open) == ("ComfyUI", "", True)


def test_the_templates_login_pulls_its_image_and_no_other(sim: Simulation, kestrel: TenantContext) -> None:
    login = save_login(kestrel)
    template = save_template(kestrel, pull_secret=login.pk)
    lease = sim.create_lease(kestrel, offering(), template_id=template.pk)
    other = sim.create_lease(kestrel, offering(), template_id=template.pk, image="acme/comfy:3")
    assert (lease.pull_secret, other.pull_secret) == ({"secret": login.pk, "version": 1}, {})


def test_a_schedule_uses_its_template_as_it_is_when_due(sim: Simulation, kestrel: TenantContext) -> None:
    template = save_template(
        kestrel, shape="batch", command="python a.py", ports=[], readiness_path="", needs_volume=True
    )
    volume = sim.create_volume(kestrel)
    wanted = LeaseRequest(
        offering_id=offering().pk,
        name="nightly",
        max_duration_s=600,
        template_id=template.pk,
        volume=volume.pk,
        retries=2,
    )
    with tenant_scope(kestrel.tenant.pk):
        schedule = schedule_records.create_schedule(
            wanted, cron="0 * * * *", time_zone="UTC", project=kestrel.project, actor=kestrel.actor, now=sim.now
        )
        assert schedule_records.request_of(schedule).template_id == template.pk
    change_template(kestrel, template, command="python b.py")
    with tenant_scope(kestrel.tenant.pk):
        lease = request_lease(wanted, project=kestrel.project, actor=kestrel.actor, now=sim.now)
    assert (lease.command, lease.launch_template["version"], lease.retries) == ("python b.py", 2, 2)


def test_only_a_batch_template_is_run_again(sim: Simulation, kestrel: TenantContext) -> None:
    with pytest.raises(InvalidValue, match="Only a batch command is run again"):
        sim.request_lease(kestrel, offering(), template_id=save_template(kestrel).pk, retries=1)


def test_an_array_of_a_batch_template_has_its_copy_on_each_lease(sim: Simulation, kestrel: TenantContext) -> None:
    template = save_template(kestrel, shape="batch", command="train", ports=[], readiness_path="")
    wanted = LeaseRequest(offering_id=offering().pk, name="sweep", max_duration_s=600, template_id=template.pk)
    with tenant_scope(kestrel.tenant.pk):
        array = lease_arrays.request_array(wanted, size=2, project=kestrel.project, actor=kestrel.actor, now=sim.now)
        copies = list(Lease.objects.filter(array=array).values_list("launch_template__id", flat=True))
    assert copies == [template.pk, template.pk]
