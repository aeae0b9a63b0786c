"""Operators' lists have filters, a count, sums, pages and CSV.

A table of an operators' page stands in a list panel, or NO_LISTS says why it is no list that grows. What the rows of
a list have (a tenant, a time, a state, amounts) it can be filtered by and adds up, or WITHOUT says why not.
"""

import csv
import importlib
import inspect
import io
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, get_type_hints

import pytest
from django.db import models
from django.test import Client

import web.portal.operators
from broker.models import Cluster, Gpu, Node
from tests.architecture import routes
from tests.architecture.matrix import ROWS
from tests.simulation import offering
from tests.web.portal.signed_in_user import open_portal
from web.portal.operators.list_specs import OperatorList

TEMPLATES = Path(__file__).parents[2] / "templates" / "operators"
TABLE = re.compile(r"<c-table\b|<table\b")
PANEL = re.compile(r"<c-list-panel\b.*?</c-list-panel>", re.DOTALL)
CAPTION = re.compile(
    r"""caption="(?:{%[^%]*?'(?P<short>[^']*)' %}|{% blocktranslate[^%]*%}\s*(?P<long>.*?)\s*{% endblock)"""
    r"""|<caption[^>]*>\s*{% blocktranslate[^%]*%}\s*(?P<inside>.*?)\s*{% endblock"""
)
OF_ONE = "parts of the one object that the page shows; they do not grow afterwards"
SUMMED = "sums: one row for each currency, country or account type"

# Tables that are no lists: template, caption, and why.
NO_LISTS = {
    ("accounting/accounting.html", "Open invoices by age"): SUMMED,
    ("accounting/accounting.html", "VAT by country and rate"): SUMMED,
    ("accounting/journal_settings.html", "Account numbers"): "a form: one row for each account type",
    ("bank_receipts/receipt.html", "Invoices paid by this transfer"): OF_ONE,
    ("corrections/correction.html", "Changes of this correction"): OF_ONE,
    ("disputes/dispute.html", "History of this dispute"): OF_ONE,
    ("disputes/dispute.html", "Leases on this line"): OF_ONE,
    ("fleet/_gpu_slices.html", "Slices of {{ where }}"): "at most seven slices of one GPU",
    ("fleet/cluster_checks.html", "Checks: {{ outcome }}"): "one row for each check that the code has",
    ("fleet/clusters.html", "Nodes of {{ cluster_name }}"): "one list in a panel for each cluster; its head and foot "
    "stand around them",
    ("invoicing/invoice.html", "Lines of {{ invoice }}"): "lines of one invoice, with pages; its CSV is an export",
    ("invoicing/invoice.html", "Credit notes of {{ invoice }}"): OF_ONE,
    ("invoicing/month_close.html", "Checklist for closing a month"): "a fixed number of steps",
    ("layouts/layout_change.html", "Layout of each GPU before and after"): "the GPUs of one node",
    ("layouts/layouts.html", "Nodes of {{ model }} and their layouts"): "nodes of one cluster beside a plan for all of "
    "them; the list of nodes is that of clusters",
    ("ledger/ledger.html", "Trial balance by account type"): SUMMED,
    ("pricing/offering.html", "{{ month }} by tenant"): "a preview of at most twelve tenants",
    ("queue/lease.html", "State history of {{ name }}"): OF_ONE,
    ("relocations/plan.html", "Relocations of this plan in order"): OF_ONE,
    ("system/system.html", "Integrity checks and when they ran"): "one row for each check that the code has",
    ("tenants/_invoices.html", "Invoices of the tenant"): "the latest; it links to the list, filtered by the tenant",
    ("tenants/_leases.html", "Leases of the tenant"): "the latest; it links to the list, filtered by the tenant",
    ("tenants/_projects.html", "Projects of the tenant"): "a tree with forms for quotas; a project has no page",
}
# What a list lacks although its rows have it: list, filter, and why.
WITHOUT = {
    ("stripe-events", "state"): "the page shows parked events only",
    ("payments", "state"): "the page shows those that need a person only",
    ("top-ups", "state"): "the page shows those that need a person only",
    ("refunds", "state"): "the page shows those that need a person only",
    ("queue", "state"): "all of them are queued",
    ("codes", "sum"): "the amount of a code counts once for each tenant that redeems it",
    ("price-versions", "tenant"): "list prices; those of tenants are a list of their own",
    ("audit-of-tenant", "tenant"): "on the page of one tenant",
    ("members", "tenant"): "on the page of one tenant",
    ("tokens", "tenant"): "on the page of one tenant",
}
AMOUNTS = {"minor", "total", "net", "prepaid", "cost_minor"}
STATES = {"state", "status"}
MOMENTS = (models.DateField,)  # a DateTimeField is one
HIDDEN_IF_EMPTY = {"payments", "top-ups", "refunds", "e-mails", "tokens", "unpriced-usage"}


def modules(package: ModuleType) -> Iterator[ModuleType]:
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        yield importlib.import_module(found.name)


def all_lists() -> dict[str, OperatorList]:
    """Return every list that a module of the operators' pages describes, by name."""
    found: dict[str, OperatorList] = {}
    for module in modules(web.portal.operators):
        for each in vars(module).values():
            if isinstance(each, OperatorList):
                assert found.setdefault(each.name, each) is each, f"two lists are named {each.name}"
    return found


def tables_outside_panels() -> set[tuple[str, str]]:
    found = set()
    for path in sorted(TEMPLATES.rglob("*.html")):
        text = PANEL.sub("", path.read_text())
        for table in TABLE.finditer(text):
            caption = CAPTION.search(text, table.start())
            assert caption, f"{path}: a table has no caption"
            found.add((str(path.relative_to(TEMPLATES)), next(each for each in caption.groups() if each)))
    return found


def test_every_table_of_an_operators_page_is_a_list_or_says_why_not() -> None:
    found = tables_outside_panels()
    assert found - set(NO_LISTS) == set(), "put them into <c-list-panel>"
    assert set(NO_LISTS) - found == set(), "these tables are gone, or are lists now"


def row_type(spec: OperatorList) -> type:
    (name, *_) = inspect.signature(spec.cells).parameters
    found: type = get_type_hints(spec.cells)[name]
    return found


def what_rows_have(kind: type) -> set[str]:
    """Return what rows of a model or dataclass can be filtered by or added up."""
    if is_dataclass(kind):
        names = {each.name for each in fields(kind)}
        times = any("datetime" in str(each.type) for each in fields(kind))
    elif issubclass(kind, models.Model):
        columns = kind._meta.get_fields()
        names = {each.name for each in columns} | {getattr(each, "attname", "") for each in columns}
        times = any(isinstance(each, MOMENTS) for each in columns)
    else:
        return set()
    return {
        name
        for name, has in (
            ("tenant", "tenant_id" in names),
            ("days", times),
            ("state", bool(names & STATES)),
            ("sum", bool(names & AMOUNTS) and "currency" in names),
        )
        if has
    }


def test_a_list_has_a_filter_for_what_its_rows_have_and_adds_up_amounts() -> None:
    wrong, used = [], set()
    for name, spec in all_lists().items():
        offered = spec.offered | ({"sum"} if spec.sums else set())
        for missing in what_rows_have(row_type(spec)) - offered:
            used.add((name, missing))
            if (name, missing) not in WITHOUT:
                wrong.append(f"{name} has no {missing}")
        heads = spec.heads.split()
        if spec.sums and "currency" not in heads:
            wrong.append(f"{name}: its CSV has no column of the currency")
    assert wrong == []
    assert set(WITHOUT) - used == set(), "these are there now"


def addresses() -> Iterator[tuple[Client, str]]:
    """Yield the operators' pages, on a fleet with one tenant."""
    with open_portal() as portal:
        operator = Client()
        operator.force_login(portal.user)
        things = {
            "cluster": Cluster.objects.first(),
            "gpu": Gpu.objects.first(),
            "node": Node.objects.first(),
            "offering": offering("1g.10gb"),
            "tenant": portal.owner.tenant,
        }
        type(portal.user).objects.filter(pk=portal.user.pk).update(is_staff=True)
        for route, row in ROWS.items():
            if row.kind != "ops" or "GET" not in row.methods or route.endswith(("csv", "pdf/", "xrechnung/")):
                continue
            if not routes.places(route):
                yield operator, routes.address(route)
            elif thing := things.get(row.thing):
                yield operator, routes.address(route, thing.pk)


def csv_rows(operator: Client, address: str) -> list[dict[str, str]]:
    answer: Any = operator.get(address)
    assert answer.status_code == 200, f"{address}: {answer.content[:300]!r}"
    assert answer["Content-Type"].startswith("text/csv"), address
    body = b"".join(answer.streaming_content) if answer.streaming else answer.content
    return list(csv.DictReader(io.StringIO(body.decode())))


@pytest.mark.django_db
def test_every_list_is_on_a_page_with_its_filters_count_and_csv(settings: Any) -> None:
    settings.OPERATORS_REQUIRE_MFA = False
    lists, seen = all_lists(), set()
    for operator, address in addresses():
        page = operator.get(address)
        if page.status_code != 200 or not page["Content-Type"].startswith("text/html"):
            continue
        body = page.content.decode()
        here = re.findall(r'data-list="([^"]+)"', body)
        for position, name in enumerate(here):
            spec = lists[name]
            seen.add(name)
            panel = body[body.index(f'data-list="{name}"') :]
            link = re.search(r'href="([^"]*format=csv[^"]*)"', panel)
            count = re.search(r"([\d,]+) rows?<", panel)
            assert link, f"{address}: {name} has no CSV"
            assert count, f"{address}: {name} has no count"
            rows = csv_rows(operator, link[1].replace("&amp;", "&"))
            assert len(rows) == int(count[1].replace(",", "")), f"{address}: the CSV of {name} lacks rows"
            for wanted, mark in (("tenant", 'name="tenant"'), ("days", 'name="since"'), ("q", 'name="q"')):
                assert wanted not in spec.offered or mark in body, f"{address}: {name} has no filter for {wanted}"
            for query in queries(spec):
                rows = csv_rows(operator, f"{link[1].replace('&amp;', '&')}&{query}")
                assert operator.get(f"{address}?{query}").status_code == 200, f"{address}?{query}"
                assert len(rows) <= int(count[1].replace(",", "")) or "state" in query or "show" in query
            assert position or refuses_bad_days(operator, address), f"{address}: a bad day is ignored"
    assert seen | HIDDEN_IF_EMPTY >= set(lists), f"no page shows {set(lists) - seen}"


def queries(spec: OperatorList) -> Iterator[str]:
    """Yield a query for each filter of a list."""
    for name, query in (("q", "q=e"), ("tenant", "tenant=e"), ("days", "since=2026-01-01&until=2027-01-01")):
        if name in spec.offered:
            yield query
    yield from (f"{spec.state_parameter}={each.value}" for each in spec.states if each.value)


def refuses_bad_days(operator: Client, address: str) -> bool:
    """Return whether a page says that a day cannot be read, keeps it, and gives no file."""
    page, file = operator.get(f"{address}?since=soon"), operator.get(f"{address}?since=soon&format=csv")
    body = page.content.decode()
    return page.status_code == file.status_code == 400 and "“soon” is not a day." in body and 'value="soon"' in body
