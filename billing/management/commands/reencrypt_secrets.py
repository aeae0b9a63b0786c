"""`manage.py reencrypt_secrets`: encrypt all stored secrets with the newest key.

Afterwards older keys can be removed from GPUBROKER_CREDENTIAL_ENCRYPTION_KEYS.
"""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from billing.services.approvals import stored_launches
from broker.services.clusters.registration import key_rotation
from broker.services.secrets.variable_encryption import VariableUnreadable
from ports.crypto import CredentialKeyError
from tenants.services import sessions


class Command(BaseCommand):
    help = "Encrypt cluster credentials, secrets, variables, second factors and sessions with the newest key."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            done = key_rotation.reencrypt_all()
            launches = stored_launches.reencrypt_launches()
            visits = sessions.reencrypt_sessions()
        except (CredentialKeyError, VariableUnreadable) as error:
            raise CommandError(str(error)) from None
        counts = (
            f"{done.cluster_credentials} cluster credentials, {done.secret_values} values of secrets,"
            f" variables of {done.variables} leases and schedules and of {launches} launches that wait for approval,"
            f" {done.templates} templates, {done.second_factors} second factors, {visits} sessions"
        )
        self.stdout.write(f"Encrypted with the newest key: {counts}.")
