"""Screenshots of the first day's pages, where there is a browser."""

from pathlib import Path

from django.test import Client as Session

from deploy.embedded.folders import CHECKOUT
from ports import clock
from tenants.domain.roles import Role
from tenants.models import Member, Project, User
from tenants.services.rls import system_scope, tenant_scope
from tests.browser.playing import start_chromium

FOLDER = CHECKOUT / "build" / "first-day"
WIDTHS = {"wide": 1440, "narrow": 390}


def take_screenshots(port: int, project: str, *, box: str, batch: str) -> list[str]:
    """Photograph the pages of two leases and the catalogue; return the files."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    pages = {
        "catalogue": "/catalogue/",
        "launch": "/launch/",
        "box": f"/leases/{box}/",
        "terminal": f"/leases/{box}/terminal/",
        "batch": f"/leases/{batch}/",
        "log": f"/leases/{batch}/logs/",
    }
    cookie = {"name": "sessionid", "value": _sign_in(project), "url": f"http://127.0.0.1:{port}"}
    made: list[str] = []
    with start_chromium() as browser:
        for size, width in WIDTHS.items():
            context = browser.new_context(viewport={"width": width, "height": 900})
            context.add_cookies([cookie])  # type: ignore[list-item]  # its stub wants a private type
            page = context.new_page()
            for name, path in pages.items():
                page.goto(f"http://127.0.0.1:{port}{path}")
                page.wait_for_timeout(1000)
                file = FOLDER / f"{name}-{size}.png"
                page.screenshot(path=str(file), full_page=True)
                made.append(str(Path(file).relative_to(CHECKOUT)))
            context.close()
    return made


def _sign_in(project: str) -> str:
    """Return the session of a new owner of the project's tenant."""
    with system_scope():
        tenant = Project.objects.get(pk=project).tenant_id
    user = User.objects.create_user("mira@kestrel.example")
    with tenant_scope(tenant):
        Member.objects.create(tenant_id=tenant, user=user, role=Role.OWNER, created_at=clock.now())
    session = Session()
    session.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return str(session.cookies["sessionid"].value)
