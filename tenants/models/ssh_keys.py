"""Saved public SSH keys of users, chosen when a lease is launched."""

from django.db import models

from tenants.models.default_ids import ID_LENGTH, ssh_key_id
from tenants.models.users import User


class SshKey(models.Model):
    """A user's public key; it belongs to the user's account, not to a tenant."""

    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=ssh_key_id)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=120)
    public_key = models.CharField(max_length=8192)
    fingerprint = models.CharField(max_length=60)
    created_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "name"], name="ssh_key_named_once"),
            models.UniqueConstraint(fields=["user", "fingerprint"], name="ssh_key_saved_once"),
        ]

    def __str__(self) -> str:
        return self.name
