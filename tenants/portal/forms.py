"""Shapes of the portal's forms; whether something is allowed is the service's word."""

from typing import Any

from django import forms

from tenants.domain import limits, zones
from tenants.domain.roles import EVERYTHING, IN_WORDS, SCOPES, Role
from tenants.domain.text import NAME_LENGTH, has_control
from tenants.models import Project, QuotaKind

ROLES = [(role.value, f"{role.value}: {IN_WORDS[role]}") for role in Role]
DAYS = [("7", "7 days"), ("30", "30 days"), ("90", "90 days"), ("365", "a year")]
WHOLE_TENANT = "The whole tenant"


def visible(text: str) -> None:
    """Refuse control and other invisible characters."""
    if has_control(text):
        raise forms.ValidationError("May hold no control or invisible characters.")


def name(label: str = "Name", *, required: bool = True) -> forms.CharField:
    return forms.CharField(
        label=label, max_length=NAME_LENGTH, required=required, validators=[visible], strip=True
    )


LISTED = 100  # projects in one list to choose from; more are named
PROPOSED = 500  # names that a browser is given to propose


class OnProject(forms.Form):
    """A form with a choice of project, by the names that the visitor can see: a list, or where that is long, typed."""

    def __init__(self, *args: Any, projects: list[Project], whole: str = WHOLE_TENANT, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        indent = min((len(p.path) for p in projects), default=0)
        nodes = [(p.pk, f"{'– ' * (len(p.path) - indent)}{p.name}") for p in projects]
        choices = [("", whole), *nodes] if whole else nodes
        self.fields["project"] = forms.ChoiceField(label="Project", choices=choices, required=not whole)
        if len(projects) > LISTED:
            self.fields["project"] = forms.CharField(
                label="Project",
                required=not whole,
                max_length=NAME_LENGTH,
                help_text=f"Its name, or its id. Empty: {whole[:1].lower()}{whole[1:]}."
                if whole
                else "Its name, or its id.",
                widget=forms.TextInput(attrs={"list": "project-names", "autocomplete": "off"}),
            )
        self.projects = {p.pk: p for p in projects}

    @property
    def project(self) -> Project | None:
        return self.projects.get(self.cleaned_data["project"])

    @property
    def names(self) -> list[str]:
        """What is proposed while a name is typed: nothing where all are listed."""
        if len(self.projects) <= LISTED:
            return []
        return sorted({p.name for p in self.projects.values()})[:PROPOSED]

    def clean_project(self) -> str:
        """Return the id of the project that was chosen or named."""
        said = str(self.cleaned_data["project"])
        if not said or said in self.projects:
            return said
        named = [p for p in self.projects.values() if p.name.casefold() == said.casefold()]
        if len(named) != 1:
            wrong = (
                f"{len(named)} projects are called so. Write the id of one."
                if named
                else "There is no such project."
            )
            raise forms.ValidationError(wrong)
        return named[0].pk


class InviteForm(OnProject):
    email = forms.EmailField(label="E-mail", max_length=254)
    role = forms.ChoiceField(label="Role", choices=ROLES, initial="member")


class MachineForm(OnProject):
    name = name()
    role = forms.ChoiceField(label="Role", choices=ROLES, initial="member")


class RoleForm(forms.Form):
    role = forms.ChoiceField(label="Role", choices=ROLES)


class TokenForm(OnProject):
    name = name("What it is for")
    scopes = forms.MultipleChoiceField(
        label="May do",
        choices=[(s, s) for s in sorted(SCOPES)],
        widget=forms.CheckboxSelectMultiple,
        initial=["leases:write", "offerings:read", "projects:read"],
    )
    days = forms.ChoiceField(label="Ends in", choices=DAYS, initial="90")

    def __init__(self, *args: Any, accounts: list[tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, whole="Wherever its bearer may", **kwargs)
        if accounts:
            self.fields["bearer"] = forms.ChoiceField(
                label="For", choices=[("", "Myself"), *accounts], required=False
            )
        self.order_fields(["name", "bearer", "project", "days", "scopes"])

    @property
    def nouns(self) -> list[tuple[str, list[tuple[str, str, bool]]]]:
        """The scopes as they are drawn: a line per noun, each with what may be ticked on it."""
        given = self["scopes"].value() or ()
        lines: dict[str, list[tuple[str, str, bool]]] = {}
        for scope in (EVERYTHING, *sorted(SCOPES - {EVERYTHING})):
            noun, _, verb = scope.partition(":") if scope != EVERYTHING else ("all its bearer may", "", "yes")
            lines.setdefault(noun, []).append((scope, verb, scope in given))
        return list(lines.items())


class ProjectForm(OnProject):
    name = name()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, whole="", **kwargs)
        self.fields["project"].label = "Below"


class NameForm(forms.Form):
    name = name()


class TenantForm(forms.Form):
    name = name()
    time_zone = forms.ChoiceField(
        label="Time zone",
        initial=zones.UTC,
        error_messages={
            "invalid_choice": "%(value)s is the name of no city's clock; months are billed by the clock of"
            " a place: use the nearest city, such as Europe/Berlin, or UTC."
        },
    )

    def __init__(self, *args: Any, lives_in: str = zones.UTC, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        known = sorted({*zones.places(), lives_in})  # nobody moves by giving another name
        self.fields["time_zone"].choices = [(zone, zone) for zone in known]  # type: ignore[attr-defined]


class LimitForm(forms.Form):
    kind = forms.ChoiceField(choices=QuotaKind.choices)
    limit = forms.DecimalField(label="Limit", min_value=0, max_value=10**9, decimal_places=3)

    def clean(self) -> dict[str, Any]:
        """Turn what a person gave into the quota's own count."""
        given: dict[str, Any] = super().clean() or {}
        if {"kind", "limit"} <= given.keys():
            try:
                given["limit"] = limits.kept(given["kind"], given["limit"])
            except ValueError as wrong:
                self.add_error("limit", str(wrong))
        return given


class WhyForm(forms.Form):
    why = forms.CharField(label="Why", max_length=300, validators=[visible])
