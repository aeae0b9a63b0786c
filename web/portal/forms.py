"""Forms of the portal; services decide whether something is allowed."""

from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from tenants.domain import quota_limits, time_zones
from tenants.domain.roles import ADMIN_SCOPE, ROLE_DESCRIPTIONS, SCOPES, Role
from tenants.domain.single_line_text import NAME_LENGTH, has_control
from tenants.models import Project, QuotaKind

ROLES = [(role.value, f"{role.value}: {ROLE_DESCRIPTIONS[role]}") for role in Role]
EXPIRY_CHOICES = [
    ("7", gettext_lazy("7 days")),
    ("30", gettext_lazy("30 days")),
    ("90", gettext_lazy("90 days")),
    ("365", gettext_lazy("a year")),
]


def refuse_control_characters(text: str) -> None:
    """Refuse control and other invisible characters."""
    if has_control(text):
        raise forms.ValidationError(_("Must not contain control or invisible characters."))


def name_field(*, required: bool = True) -> forms.CharField:
    return forms.CharField(
        label=gettext_lazy("Name"),
        max_length=NAME_LENGTH,
        required=required,
        validators=[refuse_control_characters],
        strip=True,
    )


MAX_LISTED_PROJECTS = 100  # projects in a select; with more, the name is typed
MAX_SUGGESTED_NAMES = 500  # names offered as suggestions


class ProjectChoiceForm(forms.Form):
    """Form with a project field: a list, or a text field if there are many."""

    def __init__(self, *args: Any, projects: list[Project], whole: str | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        whole = _("The whole tenant") if whole is None else whole
        indent = min((len(p.path) for p in projects), default=0)
        nodes = [(p.pk, f"{'– ' * (len(p.path) - indent)}{p.name}") for p in projects]
        choices = [("", whole), *nodes] if whole else nodes
        self.fields["project"] = forms.ChoiceField(label=_("Project"), choices=choices, required=not whole)
        if len(projects) > MAX_LISTED_PROJECTS:
            self.fields["project"] = forms.CharField(
                label=_("Project"),
                required=not whole,
                max_length=NAME_LENGTH,
                help_text=_("Project name or id. Leave empty for {whole_lower}{whole}.").format(
                    whole_lower=whole[:1].lower(), whole=whole[1:]
                )
                if whole
                else _("Project name or id."),
                widget=forms.TextInput(attrs={"list": "project-names", "autocomplete": "off"}),
            )
        self.projects = {p.pk: p for p in projects}

    @property
    def project(self) -> Project | None:
        return self.projects.get(self.cleaned_data["project"])

    @property
    def names(self) -> list[str]:
        """Return the suggested project names; empty where all are listed."""
        if len(self.projects) <= MAX_LISTED_PROJECTS:
            return []
        return sorted({p.name for p in self.projects.values()})[:MAX_SUGGESTED_NAMES]

    def clean_project(self) -> str:
        """Return the id of the chosen or named project."""
        entered = str(self.cleaned_data["project"])
        if not entered or entered in self.projects:
            return entered
        named = [p for p in self.projects.values() if p.name.casefold() == entered.casefold()]
        if len(named) != 1:
            wrong = (
                _("{named} projects have this name. Enter the id of one.").format(named=len(named))
                if named
                else _("This project does not exist.")
            )
            raise forms.ValidationError(wrong)
        return named[0].pk


class InviteForm(ProjectChoiceForm):
    email = forms.EmailField(label=gettext_lazy("E-mail"), max_length=254)
    role = forms.ChoiceField(label=gettext_lazy("Role"), choices=ROLES, initial="member")


class ServiceAccountForm(ProjectChoiceForm):
    name = name_field()
    role = forms.ChoiceField(label=gettext_lazy("Role"), choices=ROLES, initial="member")


class RoleForm(forms.Form):
    role = forms.ChoiceField(label=gettext_lazy("Role"), choices=ROLES)


class TokenForm(ProjectChoiceForm):
    name = name_field()
    scopes = forms.MultipleChoiceField(
        label=gettext_lazy("Scopes"),
        choices=[(s, s) for s in sorted(SCOPES)],
        widget=forms.CheckboxSelectMultiple,
        initial=["leases:write", "offerings:read", "projects:read"],
    )
    days = forms.ChoiceField(label=gettext_lazy("Expires in"), choices=EXPIRY_CHOICES, initial="90")

    def __init__(self, *args: Any, accounts: list[tuple[str, str]], **kwargs: Any) -> None:
        super().__init__(*args, whole=_("All my projects"), **kwargs)
        if accounts:
            self.fields["bearer"] = forms.ChoiceField(
                label=_("Owner"), choices=[("", _("Myself")), *accounts], required=False
            )
        self.order_fields(["name", "bearer", "project", "days", "scopes"])

    @property
    def nouns(self) -> list[tuple[str, list[tuple[str, str, bool]]]]:
        """Return the scopes as drawn: a line per noun, with its checkboxes."""
        given = self["scopes"].value() or ()
        lines: dict[str, list[tuple[str, str, bool]]] = {}
        for scope in (ADMIN_SCOPE, *sorted(SCOPES - {ADMIN_SCOPE})):
            noun, _colon, verb = scope.partition(":") if scope != ADMIN_SCOPE else (_("full access"), "", _("yes"))
            lines.setdefault(noun, []).append((scope, verb, scope in given))
        return list(lines.items())


class ProjectForm(ProjectChoiceForm):
    name = name_field()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, whole="", **kwargs)
        self.fields["project"].label = _("Below")


class NameForm(forms.Form):
    name = name_field()


class TenantForm(forms.Form):
    name = name_field()
    time_zone = forms.ChoiceField(
        label=gettext_lazy("Time zone"),
        initial=time_zones.UTC,
        error_messages={
            "invalid_choice": gettext_lazy(
                "%(value)s is not a region's time zone, which billing needs. Use the nearest city,"
                " such as Europe/Berlin, or UTC."
            )
        },
    )

    def __init__(self, *args: Any, lives_in: str = time_zones.UTC, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        known = sorted(
            {*time_zones.permitted_zones(), lives_in}
        )  # keeps the present zone when only the name is changed
        self.fields["time_zone"].choices = [(zone, zone) for zone in known]  # type: ignore[attr-defined]


class QuotaLimitForm(forms.Form):
    """A quota to set; without a limit it is lifted."""

    kind = forms.ChoiceField(choices=QuotaKind.choices)
    limit = forms.DecimalField(
        label=gettext_lazy("Limit"), min_value=0, max_value=10**9, decimal_places=3, required=False
    )

    def clean(self) -> dict[str, Any]:
        """Convert the typed limit to the quota's own unit."""
        given: dict[str, Any] = super().clean() or {}
        if {"kind", "limit"} <= given.keys() and given["limit"] is not None:
            try:
                given["limit"] = quota_limits.to_stored(given["kind"], given["limit"])
            except ValueError as wrong:
                self.add_error("limit", str(wrong))
        return given


class ReasonForm(forms.Form):
    why = forms.CharField(label=gettext_lazy("Why"), max_length=300, validators=[refuse_control_characters])
