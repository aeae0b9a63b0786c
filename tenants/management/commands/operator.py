"""Command `manage.py operator appoint|dismiss <address>`: grant or remove operator status."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from ports import clock
from tenants.services import operators
from tenants.services.errors import ProblemError

VERBS = {"appoint": operators.appoint, "dismiss": operators.dismiss}


class Command(BaseCommand):
    help = "Grant or remove the operator status of a person who has signed up."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("verb", choices=sorted(VERBS))
        parser.add_argument("email", help="e-mail address they sign in with")

    def handle(self, *args: Any, verb: str, email: str, **options: Any) -> None:
        try:
            changed = VERBS[verb](email, now=clock.now())
        except ProblemError as refused:
            raise CommandError(f"{refused.detail} {refused.fix.text}") from None
        what = "an operator" if verb == "appoint" else "not an operator"
        self.stdout.write(f"{email} is {what}{'' if changed else ', unchanged'}.")
