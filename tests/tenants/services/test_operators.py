"""Appointment of operators on the command line."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from tenants.models import AuditEvent, User
from tenants.services import rls

EMAIL = "Ada@example.org"


@pytest.fixture
def ada(db: None) -> User:
    return User.objects.create_user(EMAIL)


def run_operator_command(*words: str) -> str:
    said = StringIO()
    call_command("operator", *words, stdout=said)
    return said.getvalue().strip()


def audit_events() -> list[tuple[str, str, str]]:
    with rls.staff_scope():
        found = AuditEvent.objects.filter(action__startswith="operators.").order_by("at", "id")
        return list(found.values_list("action", "actor_kind", "subject_label"))


def test_appointing_and_dismissing_an_operator_is_audited_once(ada: User) -> None:
    assert run_operator_command("appoint", EMAIL) == f"{EMAIL} is an operator."
    assert run_operator_command("appoint", EMAIL) == f"{EMAIL} is an operator, unchanged."
    ada.refresh_from_db()
    assert ada.is_staff
    assert run_operator_command("dismiss", EMAIL) == f"{EMAIL} is not an operator."
    ada.refresh_from_db()
    assert not ada.is_staff
    assert audit_events() == [
        ("operators.appoint", "system", ada.email),
        ("operators.dismiss", "system", ada.email),
    ]


def test_appointing_an_unknown_address_asks_for_a_sign_up_first(db: None) -> None:
    with pytest.raises(CommandError, match=r"No user has the e-mail address .* Sign up in the portal first"):
        run_operator_command("appoint", "nobody@example.org")
