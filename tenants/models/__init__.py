from tenants.models.audit import AuditEvent
from tenants.models.idempotency import IdempotencyRecord
from tenants.models.members import Invitation, Member, Role, ServiceAccount
from tenants.models.operator_tokens import OperatorIdempotencyRecord, OperatorToken
from tenants.models.projects import Project
from tenants.models.quotas import Quota, QuotaKind
from tenants.models.sign_ups import SignUp
from tenants.models.ssh_keys import SshKey
from tenants.models.tenants import Tenant
from tenants.models.tokens import ApiToken
from tenants.models.users import User

__all__ = [
    "ApiToken",
    "AuditEvent",
    "IdempotencyRecord",
    "Invitation",
    "Member",
    "OperatorIdempotencyRecord",
    "OperatorToken",
    "Project",
    "Quota",
    "QuotaKind",
    "Role",
    "ServiceAccount",
    "SignUp",
    "SshKey",
    "Tenant",
    "User",
]
