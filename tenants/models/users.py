"""Users; one user may be a member of several tenants."""

from typing import Any, ClassVar

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.db import models

from tenants.domain.mailboxes import mailbox_of
from tenants.models.default_ids import ID_LENGTH, user_id


class UserManager(BaseUserManager["User"]):
    """Manager that creates users, as Django's authentication requires."""

    def create_user(self, email: str, password: str | None = None, **fields: Any) -> "User":
        user = self.model(email=self.normalize_email(email).lower(), mailbox=mailbox_of(email), **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def get_by_natural_key(self, username: str | None) -> "User":
        return self.get(email__iexact=username)


class User(AbstractBaseUser):
    id = models.CharField(primary_key=True, max_length=ID_LENGTH, default=user_id)
    email = models.EmailField(unique=True)
    name = models.CharField(max_length=120, blank=True)
    is_active = models.BooleanField(default=True)
    is_staff = models.BooleanField(default=False)  # an operator of this installation
    joined_at = models.DateTimeField(null=True)
    # The mailbox that the account was created with, in one spelling: limits of new tenants are counted by it.
    mailbox = models.CharField(max_length=254, blank=True, default="", db_default="", db_index=True)

    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    objects = UserManager()

    def __str__(self) -> str:
        return self.email

    def get_short_name(self) -> str:
        return self.name or self.email.partition("@")[0]

    def has_perm(self, perm: str, obj: object | None = None) -> bool:
        """Django's per-model permissions are not used; roles are (tenants/models/members.py)."""
        return False

    def has_module_perms(self, app_label: str) -> bool:
        return False
