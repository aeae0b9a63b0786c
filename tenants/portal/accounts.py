"""How people's accounts come to be: allauth's adapter with our rules."""

from allauth.account.adapter import DefaultAccountAdapter


class Adapter(DefaultAccountAdapter):  # type: ignore[misc]
    """allauth's adapter; e-mail addresses are kept in lower case."""

    def clean_email(self, email: str) -> str:
        return str(super().clean_email(email)).lower()
