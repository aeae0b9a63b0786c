"""Members, service accounts and invitations, each with a role on a tenant or project."""

from django.db import models
from django.db.models import Q

from tenants.domain.roles import Role as Role
from tenants.models.default_ids import ID_LENGTH, invitation_id, member_id, service_account_id
from tenants.models.projects import Project
from tenants.models.tenants import TenantOwned
from tenants.models.users import User

ROLE_CHOICES = [(role.value, role.value.capitalize()) for role in Role]


def role_check_constraint(name: str) -> models.CheckConstraint:
    return models.CheckConstraint(condition=Q(role__in=[role.value for role in Role]), name=name)


class Member(TenantOwned):
    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=member_id)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    project = models.ForeignKey(Project, null=True, on_delete=models.CASCADE)  # None: the whole tenant
    role = models.CharField(max_length=10, choices=ROLE_CHOICES)
    created_at = models.DateTimeField()
    version = models.PositiveIntegerField(default=1)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "user", "project"], name="member_once", nulls_distinct=False),
            role_check_constraint("member_role_known"),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} {self.role}"


class ServiceAccount(TenantOwned):
    """Non-human member, which authenticates with tokens only."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=service_account_id)
    project = models.ForeignKey(Project, null=True, on_delete=models.CASCADE)
    name = models.CharField(max_length=120)
    role = models.CharField(max_length=10, choices=ROLE_CHOICES)
    created_at = models.DateTimeField()
    # An actor's id, as in the audit log.
    made_by = models.CharField(max_length=ID_LENGTH, blank=True, default="", db_default="")
    made_by_label = models.CharField(max_length=254, blank=True, default="", db_default="")
    closed_at = models.DateTimeField(null=True)  # its tokens stop working
    version = models.PositiveIntegerField(default=1)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["tenant", "name"], name="service_account_name_once"),
            role_check_constraint("service_account_role_known"),
        ]

    def __str__(self) -> str:
        return self.name


class Invitation(TenantOwned):
    """Invitation by e-mail, single use; only the hash of its secret is stored."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=invitation_id)
    project = models.ForeignKey(Project, null=True, on_delete=models.CASCADE)
    email = models.EmailField()
    role = models.CharField(max_length=10, choices=ROLE_CHOICES)
    digest = models.CharField(max_length=64, unique=True)
    invited_by = models.ForeignKey(User, null=True, on_delete=models.SET_NULL, related_name="+")
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [role_check_constraint("invitation_role_known")]

    def __str__(self) -> str:
        return self.email
