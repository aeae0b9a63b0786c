"""URLs of tenants, members, tokens and quotas under /api/v1/."""

from django.urls import path

from web.api.audit_events import AuditEventViewSet
from web.api.members import InvitationViewSet, MemberViewSet, RoleViewSet, ServiceAccountViewSet
from web.api.operators.tenant_people import OperatorMemberViewSet, OperatorProjectViewSet, OperatorTenantTokenViewSet
from web.api.operators.tenants import OperatorAuditEventViewSet, OperatorTenantViewSet
from web.api.operators.tokens import OperatorTokenViewSet
from web.api.projects import CurrentTenantViewSet, ProjectViewSet
from web.api.quotas import QuotaUsageViewSet, QuotaViewSet
from web.api.ssh_keys import SshKeyViewSet
from web.api.tokens import IdentityViewSet
from web.http.routers import ApiRouter

router = ApiRouter()
router.register("tenants", CurrentTenantViewSet, "api-tenant")
router.register("projects", ProjectViewSet, "api-project")
router.register("members", MemberViewSet, "api-member")
router.register("roles", RoleViewSet, "api-role")
router.register("invitations", InvitationViewSet, "api-invitation")
router.register("service-accounts", ServiceAccountViewSet, "api-service-account")
router.register("ssh-keys", SshKeyViewSet, "api-ssh-key")
router.register("quotas", QuotaViewSet, "api-quota")
router.register("quota-usage", QuotaUsageViewSet, "api-quota-usage")
router.register("audit-events", AuditEventViewSet, "api-audit-event")
router.register("ops/tenants", OperatorTenantViewSet, "api-ops-tenant")
router.register("ops/projects", OperatorProjectViewSet, "api-ops-project")
router.register("ops/members", OperatorMemberViewSet, "api-ops-member")
router.register("ops/tenant-tokens", OperatorTenantTokenViewSet, "api-ops-tenant-token")
router.register("ops/tokens", OperatorTokenViewSet, "api-ops-token")
router.register("ops/audit-events", OperatorAuditEventViewSet, "api-ops-audit-event")

urlpatterns = [path("users/me", IdentityViewSet.as_view({"get": "retrieve"}), name="api-me"), *router.urls]
