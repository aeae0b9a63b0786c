"""Errors of launch templates and of the workloads they start."""

from collections.abc import Sequence

from broker.domain.workloads.validation import WorkloadFault
from tenants.services.errors import Fix, InvalidValue, ProblemError


class TemplateNameTaken(ProblemError):
    code, status, title = "name-taken", 409, "This name is taken"


class TooManyTemplates(ProblemError):
    code, status, title = "too-many-templates", 409, "There are too many templates"


def refuse_faults(faults: Sequence[WorkloadFault]) -> None:
    """Raise InvalidValue for the first of some faults, with all of them."""
    refused = InvalidValue(faults[0].field, faults[0].text, fix=Fix(faults[0].fix))
    refused.extra["errors"] = [{"field": fault.field, "code": "invalid", "message": fault.text} for fault in faults]
    raise refused
