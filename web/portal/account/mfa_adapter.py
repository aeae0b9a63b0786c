"""allauth's adapter of second factors, which stores their seeds encrypted."""

from allauth.mfa.adapter import DefaultMFAAdapter

from tenants.services import second_factors


class MfaAdapter(DefaultMFAAdapter):  # type: ignore[misc]  # allauth has no types
    """Encrypt the seeds of authenticator apps and recovery codes."""

    def encrypt(self, text: str) -> str:
        return second_factors.encrypt_seed(text)

    def decrypt(self, encrypted_text: str) -> str:
        return second_factors.decrypt_seed(encrypted_text)
