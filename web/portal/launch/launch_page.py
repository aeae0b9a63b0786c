"""Launch page: the launch form, beside a quote that follows every change."""

from dataclasses import dataclass, replace
from typing import Any
from zoneinfo import ZoneInfo

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from billing.services.approvals import approval_requests
from billing.services.quotes import quote_redemption
from broker.domain.workloads.templates import TEMPLATES, WorkloadShape, template_name_for
from broker.models import Lease, OverlapPolicy, SavedTemplate, Secret, SecretKind, Volume
from broker.services.launch_templates import template_choice
from broker.services.leases import lease_arrays, lease_requests
from broker.services.leases.launch_approvals import ApprovalRequired
from broker.services.leases.schedules import schedule_records
from broker.services.volumes import volume_lifecycle, volume_mounts
from ports import ids
from tenants.models import SshKey
from tenants.services import idempotency, ssh_keys
from tenants.services.errors import InvalidValue, ProblemError
from web.portal import api_examples
from web.portal.durations import format_seconds
from web.portal.launch import launch_form, launch_terms, quote_panel
from web.portal.offerings import offering_list
from web.portal.offerings.offering_list import OfferingListItem, PricedOffering
from web.portal.page_context import GET_OR_POST, PageRequest, may_in_project, require_in_project, tenant_page
from web.portal.volumes.volume_pages import parse_gib

FIELDS_WITH_ERRORS = (
    "name",
    "count",
    "lasts",
    "until",
    *launch_terms.FIELDS,
    "image",
    "command",
    "env",
    "ssh_keys",
    "secrets",
    "pull_secret",
    "volume",
)  # each field shows its own error


@tenant_page("leases.read", methods=GET_OR_POST)
def show_launch(request: PageRequest) -> HttpResponse:
    if request.method == "POST":
        require_in_project(request, "leases.write", request.project)
        return launch_response(request, request.POST, sent=True)
    return launch_response(request, prefilled_form(request))


@tenant_page("leases.read", changes_nothing=True, methods=GET_OR_POST)
def show_quote(request: PageRequest) -> HttpResponse:
    """Show the page with a quote for the form as filled in so far.

    The form is sent as a POST: a URL is too short for some of it and is kept in histories and logs.
    """
    if request.method != "POST":  # after switching the project or signing in again
        return redirect("launch")
    return launch_response(request, apply_alternative(request.POST))


def launch_response(request: PageRequest, fields: QueryDict, *, sent: bool = False) -> HttpResponse:
    """Read the form and launch if it was sent; else show it with its quote."""
    form = launch_form.parse_launch_form(request, fields)
    all_items = offering_list.offering_list_items(offering_list.priced_offerings(request))
    model = chosen_model(all_items, fields)
    chosen = pick_offering([item for item in all_items if model in ("", "all", item.offering.gpu_model_id)], form)
    if chosen is None:
        return render(request, "launch/nothing_on_sale.html")
    templates = template_choice.launchable_templates(request.project)
    form.batch_templates = {each.pk for each in templates if each.shape == WorkloadShape.BATCH}
    wanted = form.lease_request(chosen.offering, ZoneInfo(request.tenant.time_zone))
    stale_quote_reason = ""  # why the form's quote no longer holds
    key_reused = False  # after a launch somebody went back and changed the form, which still has its old key
    if sent:
        if form.offering != chosen.offering.pk:
            form.errors["offering"] = _("No offering was selected. Choose a slice from the list.")
        try:
            if not form.errors and (done := launch_lease(request, wanted, form)):
                return done
        except idempotency.IdempotencyKeyReused:
            key_reused = True
        except quote_redemption.QUOTE_ERRORS as refusal:
            stale_quote_reason = refusal.detail
    # Keys, variables and secrets are not sent with every change of the form: they are validated when it is submitted.
    quoted = wanted if sent else quotable_request(wanted)
    if form.volume == launch_form.NEW_VOLUME:  # there is none yet, which a template may need
        quoted = replace(quoted, template_id="")
    quote = quote_panel.live_quote(request, chosen, quoted, array_size=form.array_size)
    saved_secrets = list(Secret.objects.filter(project=request.project).order_by("name"))
    not_relocatable = lease_requests.never_relocated_reason(chosen.offering, wanted.quantity)
    page = LaunchPage(
        form=form,
        chosen=chosen,
        all_items=all_items,
        model=model or chosen.offering.model,
        volumes=list(volume_mounts.available_volumes(request.project).select_related("cluster")),
        saved_keys=list(ssh_keys.keys_of(request.actor)),
        secrets=secret_choices(saved_secrets, form),
        logins=[each for each in saved_secrets if each.kind == SecretKind.REGISTRY],
        templates=templates,
        quote=quote,
        general_error=assign_problem(quote, form),
        may_write=may_in_project(request, "leases.write"),
        suspended=request.tenant.suspended_at is not None,
        key_reused=key_reused,
        stale_quote_reason=stale_quote_reason,
        not_relocatable_reason=not_relocatable if form.relocatable else "",
        idempotency_key=(not key_reused and fields.get("key")) or ids.random_token(),
        body=api_body(request, chosen, form, wanted),
    )
    return render(request, "launch/launch.html", {"page": page}, status=409 if sent else 200)


@dataclass(frozen=True, slots=True)
class LaunchPage:
    """The launch form beside its quote."""

    form: launch_form.LaunchForm
    chosen: PricedOffering  # the chosen offering
    all_items: list[OfferingListItem]
    model: str
    volumes: list[Volume]
    saved_keys: list[SshKey]
    secrets: list["SecretChoice"]
    logins: list[Secret]  # of registries
    templates: list[SavedTemplate]
    quote: quote_panel.LiveQuote
    general_error: str  # of no field
    may_write: bool
    suspended: bool
    key_reused: bool
    stale_quote_reason: str
    not_relocatable_reason: str  # why the lease cannot be moved although it should be
    idempotency_key: str
    body: dict[str, Any]  # the form as the body of an API call

    workload_choices = launch_form.WORKLOAD_CHOICES

    @property
    def topology_choices(self) -> list[tuple[str, str]]:
        return [(name, _(words)) for name, words in launch_form.TOPOLOGY_CHOICES]

    @property
    def items(self) -> list[OfferingListItem]:
        """Return the offerings of the chosen model."""
        return [item for item in self.all_items if self.model in ("all", item.offering.gpu_model_id)]

    @property
    def several_regions(self) -> bool:
        return len({item.offering.region for item in self.items}) > 1

    @property
    def models(self) -> list[dict[str, Any]]:
        return model_choices(self.all_items, self.model)

    @property
    def price_classes(self) -> list[dict[str, Any]]:
        return price_class_choices(self.all_items, self.chosen)

    @property
    def has_errors(self) -> bool:
        return bool(self.general_error or self.form.errors)

    @property
    def may_launch(self) -> bool:
        return self.may_write and not self.suspended

    @property
    def _launch_call(self) -> tuple[str, dict[str, Any]]:
        """Return the address and body of the call that does what the button does."""
        if self.form.terms.cron:
            lease = {key: value for key, value in self.body.items() if key not in ("name", "project")}
            times = {"cron": self.form.terms.cron, "overlap": "allow" if self.form.terms.overlap else "skip"}
            return "/lease-schedules", {key: self.body[key] for key in ("name", "project")} | times | {"lease": lease}
        if self.form.array_size > 1:
            return "/lease-arrays", {**self.body, "array_size": self.form.array_size}
        return "/leases", self.body

    @property
    def calls(self) -> dict[str, str]:
        return {
            "launch": api_examples.curl_post(*self._launch_call),
            "offerings": api_examples.curl_get("/offerings?state=published&limit=500"),
            "quote": api_examples.curl_post("/quotes", self.body, key=False),
        }


@dataclass(frozen=True, slots=True)
class SecretChoice:
    """A secret of the project, and the variable that would receive it."""

    secret: Secret
    chosen: bool
    field: str  # name of the field with the variable
    variable: str


def quotable_request(wanted: lease_requests.LeaseRequest) -> lease_requests.LeaseRequest:
    """Return the part of a request that every change of the form sends."""
    unsent: dict[str, Any] = {"env": {}, "ssh_keys": (), "ssh_key_ids": (), "secrets": {}, "pull_secret": ""}
    # Retries would be refused without a workload.
    return replace(wanted, workload="", template_id="", retries=0, attempt_limit_s=0, **unsent)


def secret_choices(secrets: list[Secret], form: launch_form.LaunchForm) -> list[SecretChoice]:
    """Return the secrets that a lease may receive as variables."""
    return [
        SecretChoice(
            secret=each,
            chosen=each.pk in form.secrets,
            field=launch_form.SECRET_VARIABLE + each.pk,
            variable=form.secret_variables.get(each.pk, each.name),
        )
        for each in secrets
        if each.kind == SecretKind.VARIABLE
    ]


def assign_problem(quote: quote_panel.LiveQuote, form: launch_form.LaunchForm) -> str:
    """Show the quote's problem beside its field; return the text of one that has none."""
    if quote.problem is None:
        return ""
    field, text = quote_panel.field_error(quote.problem)
    if field not in FIELDS_WITH_ERRORS:
        return text
    form.errors.setdefault(field, text)
    return ""


def prefilled_form(request: PageRequest) -> QueryDict:
    """Return the form that the query string asks for.

    `prefilled_form` names a lease that the visitor can see; its terms become the form's defaults.
    """
    fields = request.GET.copy()
    like = Lease.objects.filter(tenant=request.tenant).filter(pk=fields.get("again", ""))
    lease = like.select_related("offering", "project").first()
    if lease and request.roles.may("leases.read", lease.project.path):
        runs, image = previous_software(request, lease)
        fields.setdefault("offering", lease.offering_id)
        fields.setdefault("class", lease.offering.price_class)
        fields.setdefault("count", str(lease.quantity))
        fields.setdefault("topology", lease.topology)
        fields.setdefault("lasts", format_seconds(lease.max_duration_s))
        fields.setdefault("runs", runs)
        fields.setdefault("image", "" if lease.image == image else lease.image)
        fields.setdefault("pull_secret", lease.pull_secret.get("secret", ""))
        fields.setdefault("ssh_keys", "\n".join(lease.ssh_keys))
        fields.setdefault("command", lease.command)
        there = Secret.objects.filter(project=request.project, pk__in=set(lease.secret_ids.values()))
        fields.setlistdefault("secrets", sorted(there.values_list("pk", flat=True)))
        for variable, secret_id in lease.secret_ids.items():
            fields.setdefault(launch_form.SECRET_VARIABLE + secret_id, variable)
        launch_terms.prefill_terms(fields, lease)
        for terms in ("same_node", "relocatable"):
            if getattr(lease, terms):
                fields.setdefault(terms, "on")
    return fields


def previous_software(request: PageRequest, lease: Lease) -> tuple[str, str]:
    """Return the template a lease was launched with, and its image.

    If its saved template was deleted, it is the built-in one that behaves alike.
    """
    saved_id = lease.launch_template.get("id", "")
    for template in template_choice.launchable_templates(request.project) if saved_id else ():
        if template.pk == saved_id:
            return template.pk, template.image
    runs = lease.workload or template_name_for(lease.image)
    return runs, TEMPLATES[runs].image


def apply_alternative(fields: QueryDict) -> QueryDict:
    """Return the form with the choice of an "Instead" button applied."""
    offering, _, price_class = fields.get("instead", "").partition(" ")
    if not offering:
        return fields
    changed = fields.copy()
    changed["offering"], changed["class"], changed["model"] = offering, price_class, ""
    return changed


def chosen_model(items: list[OfferingListItem], fields: QueryDict) -> str:
    """Return the GPU model to show: one on sale, `all`, or empty."""
    known = {"all", *(item.offering.gpu_model_id for item in items)}
    wanted = fields.get("model", "")
    return wanted if wanted in known else ""


def pick_offering(items: list[OfferingListItem], form: launch_form.LaunchForm) -> PricedOffering | None:
    """Return the offering and terms that the form names, else the best free slice."""
    for item in items:
        if any(sold.offering.pk == form.offering for sold in item.by_price_class.values()):
            chosen = next(s for s in item.by_price_class.values() if s.offering.pk == form.offering)
            return item.by_price_class.get(form.price_class, chosen)
    items = [item for item in items if not item.is_cpu_only] or items  # without a GPU only for who asks for that
    free = [item for item in items if item.free and item.nano_per_hour is not None]
    # Half a GPU or less suits most first tries; of equal sizes, the one with most free.
    small = sorted((item for item in free if item.size * 2 <= item.grid), key=lambda i: (-i.size, -i.free))
    best = [item for item in small if item.offering.gpu_model_id == free[0].offering.gpu_model_id]
    found = next(iter(best or small or free or items), None)
    return found.by_price_class.get(form.price_class, found.primary) if found else None


def launch_lease(
    request: PageRequest, wanted: lease_requests.LeaseRequest, form: launch_form.LaunchForm
) -> HttpResponse | None:
    """Launch the lease once, however often the form is sent; None when it is refused.

    Raises the refusal of a quote that no longer holds: the page then offers a new one.
    """
    sent = {name: texts for name, texts in request.POST.lists() if name != "csrfmiddlewaretoken"}
    keyed_request = idempotency.KeyedRequest(
        tenant_id=request.tenant.pk,
        bearer=request.actor.id,
        method="POST",
        path=request.path,
        key=request.POST.get("key", "")[:255] or ids.random_token(),
        digest=idempotency.request_digest(idempotency.blind_fields(sent, ("env",))),
    )
    if before := idempotency.find_record(keyed_request):
        return HttpResponseRedirect(before.headers["Location"])
    try:
        if form.volume == launch_form.NEW_VOLUME:
            wanted = replace(wanted, volume=create_volume(request, form).pk)
    except ProblemError as refusal:
        form.errors["volume"] = f"{refusal.detail} {refusal.fix.text}"
        return None
    try:
        if form.terms.cron:
            return save_schedule(request, wanted, form, keyed_request)
        if form.array_size > 1:
            return launch_array(request, wanted, form, keyed_request)
        lease = lease_requests.request_lease(wanted, project=request.project, actor=request.actor, now=request.now)
    except quote_redemption.QUOTE_ERRORS:
        raise
    except ApprovalRequired as needed:
        return ask_approval(request, wanted, form, needed, keyed_request)
    except ProblemError:
        return None
    where = reverse("lease", args=[lease.pk])
    idempotency.store_record(keyed_request, status=302, headers={"Location": where}, body="", now=request.now)
    messages.success(request, _("{lease_name} was requested. It is charged once active.").format(lease_name=lease.name))
    if in_clear := form.credentials_in_clear:
        messages.warning(
            request,
            _("Stored as plain variables: {names}. Save them under Secrets and choose them next time.").format(
                names=", ".join(in_clear)
            ),
        )
    return redirect(where)


def launch_array(
    request: PageRequest,
    wanted: lease_requests.LeaseRequest,
    form: launch_form.LaunchForm,
    keyed_request: idempotency.KeyedRequest,
) -> HttpResponse | None:
    """Launch an array of leases and show it; None when refused."""
    try:
        array = lease_arrays.request_array(
            replace(wanted, quote=""),
            size=form.array_size,
            project=request.project,
            actor=request.actor,
            now=request.now,
        )
    except ApprovalRequired:
        raise
    except ProblemError as refusal:
        form.errors["array_size"] = f"{refusal.detail} {refusal.fix.text}"
        return None
    where = reverse("lease-array", args=[array.pk])
    idempotency.store_record(keyed_request, status=302, headers={"Location": where}, body="", now=request.now)
    messages.success(
        request,
        _("{count} leases were requested. Each is charged once active.").format(count=array.size),
    )
    return redirect(where)


def ask_approval(
    request: PageRequest,
    wanted: lease_requests.LeaseRequest,
    form: launch_form.LaunchForm,
    needed: ApprovalRequired,
    keyed_request: idempotency.KeyedRequest,
) -> HttpResponse:
    """Request approval of the launch instead, and show the request."""
    asked = approval_requests.open_launch_request(
        wanted, needed, array_size=form.array_size, project=request.project, actor=request.actor, now=request.now
    )
    where = reverse("approval", args=[asked.pk])
    idempotency.store_record(keyed_request, status=302, headers={"Location": where}, body="", now=request.now)
    messages.success(request, _("{name} waits for approval. It is not charged before.").format(name=asked.name))
    return redirect(where)


def save_schedule(
    request: PageRequest,
    wanted: lease_requests.LeaseRequest,
    form: launch_form.LaunchForm,
    keyed_request: idempotency.KeyedRequest,
) -> HttpResponse | None:
    """Save the request as a schedule; None when refused."""
    if form.array_size > 1 or wanted.starts_at or wanted.end_date:
        form.errors["cron"] = _("A repeated request has no start, end date or array. Leave them empty.")
        return None
    try:
        schedule = schedule_records.create_schedule(
            replace(wanted, quote=""),
            cron=form.terms.cron,
            time_zone=request.tenant.time_zone,
            overlap=OverlapPolicy.ALLOW if form.terms.overlap else OverlapPolicy.SKIP,
            project=request.project,
            actor=request.actor,
            now=request.now,
        )
    except ProblemError as refusal:
        field = refusal.field if isinstance(refusal, InvalidValue) and refusal.field in FIELDS_WITH_ERRORS else "cron"
        form.errors[field] = f"{refusal.detail} {refusal.fix.text}"
        return None
    where = reverse("schedule", args=[schedule.pk])
    idempotency.store_record(keyed_request, status=302, headers={"Location": where}, body="", now=request.now)
    messages.success(request, _("{name} was saved. Its first lease starts when it is due.").format(name=schedule.name))
    return redirect(where)


def create_volume(request: PageRequest, form: launch_form.LaunchForm) -> Volume:
    """Create a volume named after the lease; a refused lease rolls it back."""
    size_gib = parse_gib(form.volume_gib)
    return volume_lifecycle.create_volume(
        project=request.project, name=form.name, size_gib=size_gib, actor=request.actor, now=request.now
    )


def model_choices(items: list[OfferingListItem], current: str) -> list[dict[str, Any]]:
    """Return one choice per GPU model on sale, and one for CPUs without a GPU."""
    known: dict[str, list[OfferingListItem]] = {}
    for item in items:
        known.setdefault(item.offering.model, []).append(item)
    found = [{"value": value, "label": listed[0].model, "current": value == current} for value, listed in known.items()]
    return [*found, {"value": "all", "label": _("All"), "current": current == "all"}]


def price_class_choices(items: list[OfferingListItem], chosen: PricedOffering) -> list[dict[str, Any]]:
    """Return the price classes in which the chosen shape is sold."""
    item = next(item for item in items if item.primary.shape == chosen.shape)
    labels = {
        "on_demand": "On-demand",
        "spot": _("Spot −{spot_saves} %").format(spot_saves=item.spot_saves),
        "reserved": _("Reserved"),
    }
    return [
        {"value": value, "label": labels[value], "current": value == chosen.offering.price_class}
        for value in labels
        if value in item.by_price_class
    ]


def api_body(
    request: PageRequest, chosen: PricedOffering, form: launch_form.LaunchForm, wanted: lease_requests.LeaseRequest
) -> dict[str, Any]:
    """Return the form as the body of an API call."""
    body: dict[str, Any] = {
        "project": request.project.pk,
        "offering": chosen.offering.pk,
        "name": form.name,
        "quantity": wanted.quantity,
        "max_duration_s": wanted.max_duration_s,
    }
    if wanted.template_id:
        body["template_id"] = wanted.template_id
    else:
        body["workload"] = wanted.workload
    if wanted.pull_secret:
        body["pull_secret"] = wanted.pull_secret
    if wanted.image:
        body["image"] = wanted.image
    if wanted.ssh_keys:
        body["ssh_keys"] = list(wanted.ssh_keys)
    if wanted.ssh_key_ids:
        body["ssh_key_ids"] = list(wanted.ssh_key_ids)
    if wanted.secrets:
        body["secrets"] = dict(wanted.secrets)
    if wanted.env:
        body["env"] = dict.fromkeys(wanted.env, "…")  # browsers store the page, and values may be secrets
    if wanted.end_date:
        body["end_date"] = wanted.end_date.isoformat()
    if wanted.starts_at:
        body["starts_at"] = wanted.starts_at.isoformat()
    optional = ("extend_by_s", "extend_limit_s", "notify_on_end", "retries", "attempt_limit_s")
    body |= {name: value for name in optional if (value := getattr(wanted, name))}
    if wanted.command:
        body["command"] = wanted.command
    if wanted.volume:
        body["volume"] = wanted.volume
    if wanted.same_node:
        body["same_node"] = True
    if wanted.topology:
        body["topology"] = wanted.topology
    if wanted.relocatable:
        body["relocatable"] = True
    if wanted.requeue_when_preempted:
        body["requeue_when_preempted"] = True
    if wanted.checkpoint_command:
        body["checkpoint_command"] = wanted.checkpoint_command
    return body
