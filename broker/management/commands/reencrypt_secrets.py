"""`manage.py reencrypt_secrets`: encrypt all stored secrets with the newest key.

Afterwards older keys can be removed from GPUBROKER_CREDENTIAL_ENCRYPTION_KEYS.
"""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from broker.services.clusters.registration import key_rotation
from broker.services.secrets.variable_encryption import VariableUnreadable
from ports.crypto import CredentialKeyError


class Command(BaseCommand):
    help = "Encrypt cluster credentials, saved secrets and second factors with the newest key."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            done = key_rotation.reencrypt_all()
        except (CredentialKeyError, VariableUnreadable) as error:
            raise CommandError(str(error)) from None
        counts = (
            f"{done.cluster_credentials} cluster credentials, {done.secret_values} values of secrets,"
            f" variables of {done.variables} leases and schedules, {done.second_factors} second factors"
        )
        self.stdout.write(f"Encrypted with the newest key: {counts}.")
