"""However many rows there are, a page asks the database the same number of questions."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tenants.domain.roles import Role
from tenants.models import QuotaKind, User
from tenants.services import members, quotas, tokens, walls
from tenants.services.actors import SYSTEM
from tests.tenants import people
from tests.tenants.people import World, moment
from tests.tenants.portal.test_pages import signed_in

pytestmark = pytest.mark.django_db
PAGES = ("/team/", "/tokens/", "/audit/", "/projects/", "/account/")
API = ("projects", "members", "tokens", "quotas", "quota-usage", "audit-events", "service-accounts")
MOST_ON_A_PAGE = 20


def grow(world: World, rounds: int) -> None:
    for number in range(rounds):
        user = User.objects.create_user(f"m{number}-{rounds}-{world.tenant.pk}@example.org")
        project = world.child(f"p{number}-{rounds}")
        world.machine(f"robot {number}-{rounds}")
        with walls.as_tenant(world.tenant.pk):
            members.add(
                tenant=world.tenant,
                user=user,
                role=Role.MEMBER,
                project=project,
                actor=SYSTEM,
                now=moment(),
            )
            quotas.set_limit(project=project, kind=QuotaKind.UNITS, limit=1, actor=SYSTEM, now=moment())
            tokens.issue(
                tenant=world.tenant,
                name="t",
                scopes=["leases:read"],
                expires_at=moment() + tokens.LONGEST_LIFE,
                actor=SYSTEM,
                now=moment(),
                user_id=user.pk,
                project=project,
            )


def asked(visit: object, address: str) -> int:
    visit(address)  # what is looked up once per process is not counted
    with CaptureQueriesContext(connection) as seen:
        assert visit(address).status_code == 200
    return len(seen)


def test_pages_and_lists_ask_as_often_with_many_rows_as_with_few() -> None:
    delta = people.make("Delta")
    browser, api = signed_in(delta.owner), people.Api(delta.token())

    def counts() -> dict[str, int]:
        pages = {page: asked(browser.get, page) for page in PAGES}
        return pages | {name: asked(lambda a: api.ask("GET", a), name) for name in API}

    grow(delta, 2)
    few = counts()
    grow(delta, 10)
    assert counts() == few
    assert max(few.values()) <= MOST_ON_A_PAGE, few


def test_the_operators_list_of_tenants_asks_as_often_with_many() -> None:
    staff = User.objects.create_user("operator@example.org", is_staff=True)
    browser = signed_in(staff)
    for number in range(3):
        people.make(f"Few {number}")
    from django.conf import settings

    before, settings.OPERATORS_NEED_MFA = settings.OPERATORS_NEED_MFA, False
    try:
        few = asked(browser.get, "/ops/tenants/")
        for number in range(12):
            people.make(f"Many {number}")
        assert asked(browser.get, "/ops/tenants/") == few
    finally:
        settings.OPERATORS_NEED_MFA = before
