"""Attacks on a running product, all of which it refuses.

Other tests join `make attacks` with the marker `attack`, wherever they lie.
"""

import socket
import time
from contextlib import suppress
from datetime import timedelta

import pytest

from ports import clock
from tenants.domain.roles import Role, RoleGrant, RoleGrants
from tenants.models import Member
from tenants.services import invitations, rls
from tenants.services.actors import SYSTEM
from tenants.services.errors import ProblemError
from tests.attacks.running_product import TOKEN_LIMIT, RunningProduct

pytestmark = pytest.mark.deep
HALF_REQUESTS = (
    b"",
    b"GET / HTTP/1.1\r\nHost: x\r\nX-Half: ",
    b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\na",
)
CLIENTS = 60
PROGRAMS = {
    "exec": "user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: sh, args: [-c, id]}}",
    "tokenFile": "user: {tokenFile: /etc/passwd}",
    "auth-provider": "user: {auth-provider: {name: gcp, config: {cmd-path: /bin/sh}}}",
    "client certificate of a file": "user: {client-certificate: /etc/passwd, client-key: /etc/passwd}",
}


def lease(product: RunningProduct, name: str) -> dict[str, object]:
    return {"name": name, "project": product.victim.root.pk, "offering": product.offering_id, "max_duration_s": 3600}


@pytest.mark.attack("a dry run, however it is spelled, that does the real thing")
@pytest.mark.parametrize("flag", ["true", "True", "TRUE", "1", "yes", "on", "truee", "maybe", ""])
def test_a_dry_run_launches_nothing(product: RunningProduct, flag: str) -> None:
    token = product.token("dry runs")
    answer = product.send("POST", f"/api/v1/leases?dry_run={flag}", lease(product, "dry"), token=token)
    assert answer.status in (200, 400), answer.text
    assert (answer.status == 200) == (answer.headers.get("dry-run") == "true")
    assert product.send("GET", "/api/v1/leases", token=token).body["items"] == []


@pytest.mark.attack("a misspelled dry run that launches")
@pytest.mark.parametrize("name", ["dryrun", "dry-run", "DRY_RUN"])
def test_a_misspelled_dry_run_is_refused(product: RunningProduct, name: str) -> None:
    token = product.token("dry runs")
    answer = product.send("POST", f"/api/v1/leases?{name}=true", lease(product, "dry"), token=token)
    assert answer.status == 400, answer.text
    assert product.send("GET", "/api/v1/leases", token=token).body["items"] == []


@pytest.mark.attack("a token that mints one which outlives it")
def test_a_child_token_does_not_outlive_its_parent(product: RunningProduct) -> None:
    late = (clock.now() + timedelta(days=300)).isoformat()
    wanted = {"name": "child", "scopes": ["leases:read"], "expires_at": late}
    answer = product.send("POST", "/api/v1/tokens", wanted, token=product.token("parent"))
    assert answer.status == 400, answer.text


@pytest.mark.attack("a child token used after its parent was revoked")
def test_a_child_token_dies_with_its_parent(product: RunningProduct) -> None:
    parent, soon = product.token("mortal"), (clock.now() + timedelta(hours=1)).isoformat()
    wanted = {"name": "child", "scopes": ["leases:read"], "expires_at": soon}
    child = product.send("POST", "/api/v1/tokens", wanted, token=parent).body
    assert product.send("GET", "/api/v1/leases", token=child["token"]).status == 200
    own = product.send("GET", "/api/v1/tokens/current", token=parent).body["id"]
    assert product.send("DELETE", f"/api/v1/tokens/{own}", token=product.token("revoker")).status in (200, 204)
    assert product.send("GET", "/api/v1/leases", token=child["token"]).status == 401


@pytest.mark.attack("an invitation to a privileged role, opened by somebody else")
@pytest.mark.parametrize("role", [Role.OWNER, Role.ADMIN, Role.BILLING])
def test_a_link_of_an_invitation_gives_nobody_else_a_privileged_role(product: RunningProduct, role: Role) -> None:
    tenant = product.victim.tenant
    with rls.tenant_scope(tenant.pk):
        _, secret = invitations.invite(
            tenant=tenant,
            email=f"{role.value}@example.org",
            role=role,
            project=None,
            grants=RoleGrants((RoleGrant(Role.OWNER),)),
            actor=SYSTEM,
            now=clock.now(),
        )
    answer = product.send("POST", f"/join/{secret}/", "", **product.browser_of(product.attacker))
    assert answer.status in (302, 400, 403, 404, 409), answer.text
    with rls.tenant_scope(tenant.pk):
        assert not Member.objects.filter(user=product.attacker).exists()
    with suppress(ProblemError):
        invitations.accept(secret, user=product.attacker, actor=SYSTEM, now=clock.now())
        pytest.fail("the service lets them in")


@pytest.mark.attack("sixty clients that send nothing, or half a request")
@pytest.mark.parametrize("sent", HALF_REQUESTS, ids=["silent", "half a header", "half a body"])
def test_slow_clients_keep_nobody_else_out(product: RunningProduct, sent: bytes) -> None:
    clients = [socket.create_connection(("127.0.0.1", product.port), timeout=5) for _ in range(CLIENTS)]
    try:
        for client in clients:
            client.sendall(sent)
        time.sleep(0.5)
        for _ in range(5):
            began = time.monotonic()
            assert product.send("GET", "/api/v1/projects", token=product.token("patient")).status == 200
            assert time.monotonic() - began < 3
    finally:
        for client in clients:
            client.close()


@pytest.mark.attack("sixty live streams that keep others from the site")
def test_live_streams_keep_nobody_else_out(product: RunningProduct) -> None:
    token = product.token("listener")
    head = f"GET /api/v1/events/stream HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n\r\n".encode()
    clients = [socket.create_connection(("127.0.0.1", product.port), timeout=20) for _ in range(CLIENTS)]
    try:
        for client in clients:
            client.sendall(head)
        assert all(client.recv(20).startswith(b"HTTP/1.1 200") for client in clients)
        assert product.send("GET", "/api/v1/projects", token=token).status == 200
    finally:
        for client in clients:
            client.close()


@pytest.mark.attack("a kubeconfig that runs a program or reads a file of the server")
@pytest.mark.parametrize("user", PROGRAMS.values(), ids=PROGRAMS)
def test_a_kubeconfig_runs_nothing(product: RunningProduct, user: str) -> None:
    text = (
        "apiVersion: v1\nkind: Config\ncurrent-context: a\n"
        "clusters: [{name: a, cluster: {server: 'https://192.0.2.1'}}]\n"
        "contexts: [{name: a, context: {cluster: a, user: a}}]\n"
        f"users: [{{name: a, {user}}}]\n"
    )
    body = {"name": "north", "region": "eu", "kubeconfig": text}
    answer = product.send("POST", "/api/v1/clusters", body, token=product.operator_token)
    assert (answer.status, answer.body["errors"][0]["field"]) == (400, "kubeconfig"), answer.text


@pytest.mark.attack("one token that takes the whole API for itself")
def test_a_token_is_stopped_at_its_limit(product: RunningProduct) -> None:
    token = product.token("flood")
    answers = [product.send("GET", "/api/v1/roles", token=token) for _ in range(TOKEN_LIMIT + 50)]
    refused = [answer for answer in answers if answer.status == 429]
    # A window may have ended meanwhile, and then the count began anew.
    if not refused:
        answers += [product.send("GET", "/api/v1/roles", token=token) for _ in range(TOKEN_LIMIT)]
        refused = [answer for answer in answers if answer.status == 429]
    assert refused, "nothing was refused"
    assert 1 <= int(refused[-1].headers["retry-after"]) <= 60
    assert {answer.status for answer in answers} == {200, 429}
    assert product.send("GET", "/api/v1/roles", token=product.token("bystander")).status == 200


@pytest.mark.attack("discount codes that are guessed")
def test_codes_cannot_be_guessed_for_long(product: RunningProduct) -> None:
    token = product.token("guesser")
    statuses = [
        product.send("POST", "/api/v1/discounts", {"code": f"GUESS-{n}"}, token=token).status for n in range(40)
    ]
    assert statuses[-1] == 429
    assert not {200, 201} & set(statuses)


@pytest.mark.attack("an archived project that goes on spending")
def test_an_archived_project_launches_nothing(product: RunningProduct) -> None:
    token, victim = product.token("spender"), product.victim
    made = product.send("POST", "/api/v1/projects", {"name": "old", "parent": victim.root.pk}, token=token).body
    assert product.send("POST", f"/api/v1/projects/{made['id']}/archive", token=token).status == 200
    body = lease(product, "late") | {"project": made["id"]}
    answer = product.send("POST", "/api/v1/leases", body, token=token)
    assert (answer.status, answer.body["code"]) == (409, "project-archived"), answer.text
