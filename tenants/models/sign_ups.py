"""Wishes of people who sign up, until their address is confirmed."""

from django.db import models

from tenants.models.users import User


class SignUp(models.Model):
    """Wanted tenant of an account whose address is not confirmed yet."""

    user = models.OneToOneField(User, on_delete=models.CASCADE, primary_key=True, related_name="+")
    organisation = models.CharField(max_length=120)
    country = models.CharField(max_length=2, blank=True, default="")
    currency = models.CharField(max_length=3)
    time_zone = models.CharField(max_length=60)
    made_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.organisation
