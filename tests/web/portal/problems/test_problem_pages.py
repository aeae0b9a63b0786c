"""Every problem of the API has a type whose address explains it."""

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.test import Client
from django.urls import get_resolver

from tenants.services.errors import ProblemError
from tests.tenants import tenant_setup
from tests.tenants.tenant_setup import ApiClient, TenantWithOwner
from web.http import errors, event_stream
from web.portal.problems.problem_types import PROBLEM_GROUPS, PROBLEM_TYPES

FOLDERS = ("config", "web", "billing", "broker", "tenants")
DECLARED_CODE = re.compile(r'^    code(?:, status)?(?:, title)? = "([a-z-]+)"', re.MULTILINE)  # also of other processes
GIVEN_CODE = re.compile(r'(?:\bcode=|"code": )"([a-z-]+)"')

pytestmark = pytest.mark.django_db


@pytest.fixture
def delta() -> TenantWithOwner:
    return tenant_setup.create_tenant_with_owner("Delta")


def subclasses(kind: type[ProblemError]) -> set[type[ProblemError]]:
    return {kind}.union(*(subclasses(each) for each in kind.__subclasses__()))


def existing_problems() -> dict[str, set[int]]:
    """Return the codes of all problems, with their statuses if fixed."""
    assert get_resolver().url_patterns  # imports the views, and thereby the services
    product = [each for each in subclasses(ProblemError) if not each.__module__.startswith("tests.")]
    found: dict[str, set[int]] = {}
    for each in product:
        found.setdefault(each.code, set()).add(each.status)
    for code, *_ in (*errors.PROBLEMS_BY_EXCEPTION.values(), *errors.ERROR_PAGES.values()):
        found.setdefault(code, set())
    for code, *_ in event_stream.PROBLEMS.values():
        found.setdefault(code, set())
    for source in (path for folder in FOLDERS for path in Path(settings.BASE_DIR, folder).rglob("*.py")):
        text = source.read_text()
        given = GIVEN_CODE.findall(text) if source.parts[-2] in ("http", "config") else []
        for code in [*DECLARED_CODE.findall(text), *given]:
            found.setdefault(code, set())
    return found


def test_the_table_has_exactly_the_existing_problems() -> None:
    assert set(PROBLEM_TYPES) == set(existing_problems())
    assert sum(len(group) for group in PROBLEM_GROUPS.values()) == len(PROBLEM_TYPES)


def test_the_table_has_the_status_of_each_problem() -> None:
    wrong = {code: known for code, known in existing_problems().items() if known - {PROBLEM_TYPES[code].status}}
    assert wrong == {}


def test_every_type_has_a_page_that_explains_it() -> None:
    listed = Client().get("/problems/").content.decode()
    for code, problem in PROBLEM_TYPES.items():
        assert f'href="/problems/{code}"' in listed
        page = Client().get(errors.PROBLEM_TYPE_PREFIX + code)
        assert page.status_code == 200, code
        for text in (problem.name, problem.cause, problem.advice):
            assert text.replace("'", "&#x27;") in page.content.decode(), code


def test_an_unknown_type_has_no_page() -> None:
    assert Client().get("/problems/nonsense").status_code == 404


def test_the_type_of_a_real_problem_leads_to_its_page(delta: TenantWithOwner) -> None:
    problem = ApiClient(delta.token()).send("GET", "leases/lse_x").json()
    assert b"Not found" in Client().get(problem["type"]).content


def test_a_change_by_session_without_csrf_token_is_a_problem_of_its_own(delta: TenantWithOwner) -> None:
    for user, path in ((delta.owner, "projects"), (delta.owner, "ops/campaigns")):
        client = Client(enforce_csrf_checks=True)
        client.force_login(user)
        answer = client.post(f"/api/v1/{path}", "{}", content_type="application/json")
        problem = answer.json()
        assert (answer.status_code, problem["code"]) == (403, "csrf-failed"), path
        assert problem["title"] == "The CSRF token is missing or wrong"
        assert "X-CSRFToken" in problem["fix"]["text"]


def test_a_user_without_a_tenant_is_told_so() -> None:
    user = tenant_setup.User.objects.create_user("alone@example.org")
    client = Client()
    client.force_login(user)
    answer = client.get("/api/v1/projects")
    assert (answer.status_code, answer.json()["code"]) == (403, "no-tenant")


def test_a_form_without_csrf_token_says_that_it_expired(delta: TenantWithOwner) -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(delta.owner)
    answer = client.post("/tokens/", {})
    assert answer.status_code == 403
    assert b"The form has expired" in answer.content
    assert b"role does not allow" not in answer.content
