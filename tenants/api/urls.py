"""Addresses of tenants, people, tokens and limits under /api/v1/."""

from django.urls import path
from rest_framework.routers import SimpleRouter

from tenants.api.all_tenants import OpsAuditEvents, OpsTenants
from tenants.api.audit import AuditEvents
from tenants.api.people import Invitations, Members, Roles, ServiceAccounts
from tenants.api.projects import Projects, Tenants
from tenants.api.quotas import Quotas, QuotaUsage
from tenants.api.tokens import Me

router = SimpleRouter(trailing_slash=False, use_regex_path=False)
router.register("tenants", Tenants, "api-tenant")
router.register("projects", Projects, "api-project")
router.register("members", Members, "api-member")
router.register("roles", Roles, "api-role")
router.register("invitations", Invitations, "api-invitation")
router.register("service-accounts", ServiceAccounts, "api-service-account")
router.register("quotas", Quotas, "api-quota")
router.register("quota-usage", QuotaUsage, "api-quota-usage")
router.register("audit-events", AuditEvents, "api-audit-event")
router.register("ops/tenants", OpsTenants, "api-ops-tenant")
router.register("ops/audit-events", OpsAuditEvents, "api-ops-audit-event")

urlpatterns = [
    path("users/me", Me.as_view({"get": "retrieve"}), name="api-me"),
    *router.urls,
]
