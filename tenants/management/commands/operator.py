"""`manage.py operator appoint|dismiss <address>`: who may see /ops/."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from ports import clock
from tenants.services import operators
from tenants.services.refusals import Refused

VERBS = {"appoint": operators.appoint, "dismiss": operators.dismiss}


class Command(BaseCommand):
    help = "Make a person who has signed up an operator of this installation, or let them be one no longer."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("verb", choices=sorted(VERBS))
        parser.add_argument("email", help="the address they sign in with")

    def handle(self, *args: Any, verb: str, email: str, **options: Any) -> None:
        try:
            changed = VERBS[verb](email, now=clock.now())
        except Refused as refused:
            raise CommandError(f"{refused.detail} {refused.fix.text}") from None
        what = "an operator" if verb == "appoint" else "no operator"
        self.stdout.write(f"{email} is {what}{'' if changed else ', as before'}.")
