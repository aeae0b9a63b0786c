"""A signed-in portal user with real HTTP requests."""

import http.client
import re
from urllib.parse import urlencode

from django.test import Client as Session

from ports import clock, ids
from tenants.domain.roles import Role
from tenants.models import Member, Project, User
from tenants.services.rls import system_scope, tenant_scope

TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="(\w+)"')


class Person:
    """A member of the tenant a project belongs to."""

    def __init__(self, port: int, project: str) -> None:
        with system_scope():
            tenant = Project.objects.get(pk=project).tenant_id
        user = User.objects.create_user("mira@kestrel.example")
        with tenant_scope(tenant):
            Member.objects.create(tenant_id=tenant, user=user, role=Role.OWNER, created_at=clock.now())
        session = Session()
        session.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
        self.port = port
        self.cookies = {"sessionid": session.cookies["sessionid"].value}

    def launch(self, offering: str, *, name: str, runs: str, lasts: str = "8 h", **more: str) -> str:
        """Submit the launch page; return the new lease."""
        page = self._ask("GET", f"/launch/?offering={offering}")[1]
        found = TOKEN.search(page)
        if found is None:
            raise RuntimeError(f"no form on the launch page: {page[:500]}")
        form = {"offering": offering, "class": "on_demand", "name": name, "count": "1", "lasts": lasts}
        form |= {"runs": runs, **more, "key": ids.new("key"), "csrfmiddlewaretoken": found.group(1)}
        where, page = self._ask("POST", "/launch/", urlencode(form))
        led = re.fullmatch(r"/leases/(lse_\w+)/", where)
        if led is None:
            raise RuntimeError(f"the launch page did not lead to a lease: {page[:2000]}")
        return led.group(1)

    def _ask(self, method: str, path: str, body: str = "") -> tuple[str, str]:
        line = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        cookies = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        headers = {"Cookie": cookies, "Content-Type": "application/x-www-form-urlencoded"}
        line.request(method, path, body or None, headers)
        answer = line.getresponse()
        text = answer.read().decode()
        for cookie in answer.headers.get_all("Set-Cookie") or ():
            name, _, value = cookie.partition(";")[0].partition("=")
            self.cookies[name] = value
        line.close()
        return answer.headers.get("Location", ""), text
