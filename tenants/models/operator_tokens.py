"""Tokens of operators, and stored responses to their keyed requests."""

from django.contrib.postgres.fields import ArrayField
from django.db import models

from tenants.models.default_ids import ID_LENGTH, operator_token_id
from tenants.models.users import User


class OperatorToken(models.Model):
    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=operator_token_id)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="operator_tokens")
    name = models.CharField(max_length=120)
    prefix = models.CharField(max_length=16, unique=True)
    digest = models.CharField(max_length=64)
    scopes = ArrayField(models.CharField(max_length=40))
    created_at = models.DateTimeField()
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix})"


class OperatorIdempotencyRecord(models.Model):
    """The stored response to a keyed request of an operator, who acts in no tenant."""

    id = models.BigAutoField(primary_key=True)
    bearer = models.CharField(max_length=ID_LENGTH)
    method = models.CharField(max_length=7)
    path = models.CharField(max_length=300)
    key = models.CharField(max_length=255)
    body_digest = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField()
    headers = models.JSONField(default=dict)
    body = models.TextField()
    at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["bearer", "method", "path", "key"], name="operator_answer_once_per_key")
        ]

    def __str__(self) -> str:
        return f"{self.method} {self.path} {self.key}"
