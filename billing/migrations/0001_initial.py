"""Create the tables of prices, charges, the ledger, invoices and payments."""

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import ArrayField, DateRangeField, DateTimeRangeField
from django.contrib.postgres.indexes import BrinIndex
from django.db import migrations, models
from django.db.models import F, Q
from django.db.models.functions import Now

from billing.models import budgets, default_ids
from ports.initial_migration import InitialMigration


class Migration(InitialMigration):
    dependencies = [("broker", "0001_initial"), ("tenants", "0001_initial")]

    operations = [
        migrations.CreateModel(
            name="BillingPeriod",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("label", models.CharField(max_length=7)),
                ("span", DateTimeRangeField()),
                ("time_zone", models.CharField(max_length=60)),
                ("status", models.CharField(default="open", max_length=6)),
                ("closed_at", models.DateTimeField(null=True)),
                ("blocked_reason", models.CharField(blank=True, db_default="", default="", max_length=300)),
            ],
            options={
                "constraints": [
                    ExclusionConstraint(expressions=[(F("tenant"), "="), ("span", "&&")], name="periods_never_overlap"),
                    models.UniqueConstraint(fields=("tenant", "label"), name="period_once"),
                    models.CheckConstraint(condition=Q(status__in=["open", "closed"]), name="period_status_known"),
                ]
            },
        ),
        migrations.CreateModel(
            name="Budget",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("id", models.CharField(default=default_ids.budget_id, max_length=40, primary_key=True, serialize=False)),
                ("project", models.ForeignKey(on_delete=models.CASCADE, related_name="+", to="tenants.project")),
                ("currency", models.CharField(max_length=3)),
                ("limit_minor", models.BigIntegerField()),
                ("version", models.PositiveIntegerField(default=1)),
                ("made_at", models.DateTimeField()),
                (
                    "thresholds",
                    ArrayField(
                        base_field=models.PositiveSmallIntegerField(),
                        db_default=[50, 80, 100],
                        default=budgets.default_thresholds,
                        size=None,
                    ),
                ),
                (
                    "forecast_thresholds",
                    ArrayField(
                        base_field=models.PositiveSmallIntegerField(),
                        db_default=[80, 100],
                        default=budgets.default_forecast_thresholds,
                        size=None,
                    ),
                ),
                ("stop_new_at", models.PositiveSmallIntegerField(db_default=100, default=100, null=True)),
                ("stop_idle_at", models.PositiveSmallIntegerField(null=True)),
                ("stop_all_at", models.PositiveSmallIntegerField(null=True)),
                ("grace_minutes", models.PositiveSmallIntegerField(db_default=60, default=60)),
                ("checked_at", models.DateTimeField(null=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "project"), name="budget_once_per_node"),
                    models.CheckConstraint(condition=Q(limit_minor__gte=0), name="budget_not_negative"),
                ]
            },
        ),
        migrations.CreateModel(
            name="BudgetMonth",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("budget", models.ForeignKey(on_delete=models.CASCADE, related_name="months", to="billing.budget")),
                ("period", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="billing.billingperiod")),
                ("base_num", models.DecimalField(decimal_places=0, default=0, max_digits=38)),
                ("taken_num", models.DecimalField(decimal_places=0, default=0, max_digits=38)),
                ("spent_num", models.DecimalField(decimal_places=0, default=0, max_digits=38)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "budget", "period"), name="budget_month_once"),
                    models.CheckConstraint(
                        condition=Q(
                            ("base_num__gte", 0), ("spent_num__gte", F("base_num")), ("taken_num__gte", F("spent_num"))
                        ),
                        name="budget_month_adds_up",
                    ),
                ]
            },
        ),
        migrations.CreateModel(
            name="Hold",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("id", models.CharField(default=default_ids.hold_id, max_length=40, primary_key=True, serialize=False)),
                ("lease", models.OneToOneField(on_delete=models.PROTECT, related_name="+", to="broker.lease")),
                ("currency", models.CharField(max_length=3)),
                ("opened_at", models.DateTimeField()),
                ("checked_at", models.DateTimeField()),
                ("seq", models.PositiveIntegerField(default=0)),
                ("settled_at", models.DateTimeField(null=True)),
                ("covers_until", models.DateTimeField(null=True)),
            ],
            options={
                "indexes": [models.Index(condition=Q(settled_at__isnull=True), fields=["checked_at"], name="hold_open")]
            },
        ),
        migrations.CreateModel(
            name="HoldPart",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("hold", models.ForeignKey(on_delete=models.PROTECT, related_name="parts", to="billing.hold")),
                ("month", models.ForeignKey(on_delete=models.CASCADE, related_name="parts", to="billing.budgetmonth")),
                ("num", models.DecimalField(decimal_places=0, max_digits=38)),
                ("spent_num", models.DecimalField(decimal_places=0, default=0, max_digits=38)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "hold", "month"), name="hold_part_once"),
                    models.CheckConstraint(
                        condition=Q(("num__gte", F("spent_num")), ("spent_num__gte", 0)), name="hold_part_covers"
                    ),
                ]
            },
        ),
        migrations.CreateModel(
            name="BudgetAlert",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("id", models.CharField(default=default_ids.budget_alert_id, max_length=40, primary_key=True, serialize=False)),
                ("budget", models.ForeignKey(on_delete=models.CASCADE, related_name="alerts", to="billing.budget")),
                ("period", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="billing.billingperiod")),
                ("measure", models.CharField(max_length=8)),
                ("percent", models.PositiveSmallIntegerField()),
                ("minor", models.BigIntegerField()),
                ("limit_minor", models.BigIntegerField()),
                ("at", models.DateTimeField()),
                ("lifted_at", models.DateTimeField(null=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=Q(lifted_at__isnull=True),
                        fields=("tenant", "budget", "period", "measure", "percent"),
                        name="budget_alert_once",
                    ),
                    models.CheckConstraint(condition=Q(measure__in=["spent", "forecast"]), name="budget_alert_known"),
                ]
            },
        ),
        migrations.CreateModel(
            name="BudgetStop",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("id", models.CharField(default=default_ids.budget_stop_id, max_length=40, primary_key=True, serialize=False)),
                ("budget", models.ForeignKey(on_delete=models.CASCADE, related_name="stops", to="billing.budget")),
                ("period", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="billing.billingperiod")),
                ("what", models.CharField(max_length=4)),
                ("percent", models.PositiveSmallIntegerField()),
                ("minor", models.BigIntegerField()),
                ("limit_minor", models.BigIntegerField()),
                ("notified_at", models.DateTimeField()),
                ("due_at", models.DateTimeField()),
                ("done_at", models.DateTimeField(null=True)),
                ("ended", models.PositiveIntegerField(default=0)),
                ("lifted_at", models.DateTimeField(null=True)),
                ("checked_at", models.DateTimeField(null=True)),
                ("last_error", models.CharField(blank=True, db_default="", default="", max_length=300)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=Q(("done_at__isnull", True), ("lifted_at__isnull", True)),
                        fields=["due_at"],
                        name="budget_stop_due",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=Q(lifted_at__isnull=True),
                        fields=("tenant", "budget", "period", "what"),
                        name="budget_stop_once",
                    ),
                    models.CheckConstraint(condition=Q(what__in=["idle", "all"]), name="budget_stop_known"),
                    models.CheckConstraint(condition=Q(due_at__gte=F("notified_at")), name="budget_stop_told_first"),
                ],
            },
        ),
        migrations.CreateModel(
            name="TokenCap",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                (
                    "token",
                    models.OneToOneField(
                        on_delete=models.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="tenants.apitoken",
                    ),
                ),
                ("currency", models.CharField(max_length=3)),
                ("daily_minor", models.BigIntegerField(null=True)),
                ("total_minor", models.BigIntegerField(null=True)),
                ("offerings", ArrayField(base_field=models.CharField(max_length=40), default=list, size=None)),
                ("set_at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=Q(
                            Q(("daily_minor__isnull", True), ("daily_minor__gte", 0), _connector="OR"),
                            Q(("total_minor__isnull", True), ("total_minor__gte", 0), _connector="OR"),
                        ),
                        name="token_cap_not_negative",
                    )
                ]
            },
        ),
        migrations.CreateModel(
            name="TokenCapDay",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("cap", models.ForeignKey(on_delete=models.CASCADE, related_name="days", to="billing.tokencap")),
                ("day", models.DateField()),
                ("taken_num", models.DecimalField(decimal_places=0, default=0, max_digits=38)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "cap", "day"), name="token_day_once"),
                    models.CheckConstraint(condition=Q(taken_num__gte=0), name="token_day_not_negative"),
                ]
            },
        ),
        migrations.CreateModel(
            name="TokenCapLease",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("cap", models.ForeignKey(on_delete=models.CASCADE, related_name="leases", to="billing.tokencap")),
                ("lease", models.OneToOneField(on_delete=models.PROTECT, related_name="+", to="broker.lease")),
            ],
        ),
        migrations.CreateModel(
            name="TokenCapPart",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("of", models.ForeignKey(on_delete=models.CASCADE, related_name="parts", to="billing.tokencaplease")),
                ("day", models.ForeignKey(on_delete=models.CASCADE, related_name="parts", to="billing.tokencapday")),
                ("num", models.DecimalField(decimal_places=0, max_digits=38)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "of", "day"), name="token_part_once"),
                    models.CheckConstraint(condition=Q(num__gte=0), name="token_part_not_negative"),
                ]
            },
        ),
        migrations.CreateModel(
            name="BillingRun",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("label", models.CharField(max_length=80, unique=True)),
                ("started_at", models.DateTimeField()),
                ("finished_at", models.DateTimeField(null=True)),
                ("tzdata_version", models.CharField(blank=True, default="", max_length=20)),
            ],
        ),
        migrations.CreateModel(
            name="RatingWatermark",
            fields=[
                (
                    "tenant",
                    models.OneToOneField(
                        on_delete=models.PROTECT,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="tenants.tenant",
                    ),
                ),
                ("xid", models.BigIntegerField()),
                ("storage_xid", models.BigIntegerField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="RatedCharge",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "lease_id",
                        "seq",
                        "price_version_id",
                        "period_id",
                        "meter",
                        "kind",
                        "part",
                        "correction_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("lease_id", models.CharField(max_length=40)),
                ("seq", models.PositiveIntegerField()),
                ("price_version_id", models.BigIntegerField()),
                ("period_id", models.BigIntegerField()),
                ("billed_period_id", models.BigIntegerField()),
                ("meter", models.CharField(default="slice_seconds", max_length=20)),
                (
                    "kind",
                    models.CharField(
                        choices=[("usage", "Usage"), ("adjust", "Adjust")],
                        db_default="usage",
                        default="usage",
                        max_length=8,
                    ),
                ),
                ("part", models.PositiveSmallIntegerField(db_default=0, default=0)),
                ("correction_id", models.CharField(blank=True, db_default="", default="", max_length=40)),
                ("tenant_id", models.CharField(max_length=40)),
                ("project_id", models.CharField(max_length=40)),
                ("offering_id", models.CharField(max_length=40)),
                ("s", models.DateTimeField()),
                ("e", models.DateTimeField()),
                ("unit_seconds", models.BigIntegerField()),
                ("exact_num", models.DecimalField(decimal_places=0, max_digits=38)),
                ("run_id", models.BigIntegerField()),
                ("recorded_at", models.DateTimeField(db_default=Now())),
            ],
            options={
                "indexes": [
                    models.Index(fields=["period_id"], name="charge_of_month"),
                    models.Index(
                        condition=~Q(billed_period_id=F("period_id")),
                        fields=["billed_period_id"],
                        name="charge_billed_late",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=Q(
                            Q(("correction_id", ""), ("kind", "usage"), ("unit_seconds__gt", 0)),
                            Q(
                                ("correction_id", ""),
                                ("exact_num__lte", 0),
                                ("kind", "adjust"),
                                ("unit_seconds__lt", 0),
                            ),
                            Q(
                                Q(
                                    Q(("exact_num__lte", 0), ("unit_seconds__lt", 0)),
                                    Q(("exact_num__gte", 0), ("unit_seconds__gt", 0)),
                                    _connector="OR",
                                ),
                                ~Q(correction_id=""),
                                ("kind", "adjust"),
                            ),
                            _connector="OR",
                        ),
                        name="charge_has_seconds",
                    ),
                    models.CheckConstraint(condition=Q(e__gt=F("s")), name="charge_ends_after_it_began"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Commitment",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("id", models.CharField(default=default_ids.commitment_id, max_length=40, primary_key=True, serialize=False)),
                ("offering", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="broker.offering")),
                ("units", models.PositiveIntegerField()),
                ("nano_per_hour", models.BigIntegerField()),
                ("currency", models.CharField(max_length=3)),
                ("valid", DateTimeRangeField()),
                ("agreed_by", models.CharField(max_length=254)),
                ("agreed_at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    ExclusionConstraint(
                        expressions=[(F("tenant"), "="), (F("offering"), "="), ("valid", "&&")],
                        name="one_commitment_at_a_time",
                    ),
                    models.CheckConstraint(
                        condition=Q(("nano_per_hour__gt", 0), ("units__gt", 0)), name="commitment_of_something"
                    ),
                    models.CheckConstraint(condition=Q(valid__isempty=False), name="commitment_lasts"),
                ]
            },
        ),
        migrations.CreateModel(
            name="InvoiceSeries",
            fields=[
                ("series", models.CharField(max_length=20, primary_key=True, serialize=False)),
                ("next_number", models.PositiveIntegerField(default=1)),
            ],
        ),
        migrations.CreateModel(
            name="Invoice",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("id", models.CharField(default=default_ids.invoice_id, max_length=40, primary_key=True, serialize=False)),
                ("period", models.ForeignKey(on_delete=models.PROTECT, to="billing.billingperiod")),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("draft", "Draft"),
                            ("closing", "Closing"),
                            ("finalized", "Finalized"),
                            ("paid", "Paid"),
                            ("partially_paid", "Partially Paid"),
                            ("uncollectible", "Uncollectible"),
                            ("void", "Void"),
                        ],
                        default="draft",
                        max_length=14,
                    ),
                ),
                ("series", models.CharField(max_length=20, null=True)),
                ("number", models.PositiveIntegerField(null=True)),
                ("currency", models.CharField(max_length=3)),
                ("total", models.BigIntegerField(default=0)),
                ("tax", models.BigIntegerField(db_default=0, default=0)),
                ("treatment", models.CharField(blank=True, db_default="", default="", max_length=14)),
                ("settled", models.BigIntegerField(db_default=0, default=0)),
                ("refreshed_at", models.DateTimeField()),
                ("finalized_at", models.DateTimeField(null=True)),
                ("paid_at", models.DateTimeField(null=True)),
                ("due_at", models.DateTimeField(null=True)),
                ("disputable_until", models.DateTimeField(null=True)),
                ("customer", models.JSONField(null=True)),
                ("supplier", models.JSONField(null=True)),
                ("agreed", models.TextField(null=True)),
                ("collected", models.BooleanField(default=False)),
            ],
            options={
                "indexes": [
                    models.Index(condition=Q(status="finalized"), fields=["finalized_at"], name="invoice_to_be_paid")
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=~Q(status="void"), fields=("tenant", "period"), name="one_invoice_per_period"
                    ),
                    models.UniqueConstraint(fields=("series", "number"), name="invoice_number_once"),
                    models.CheckConstraint(
                        condition=Q(
                            (
                                "status__in",
                                ["draft", "closing", "finalized", "paid", "partially_paid", "uncollectible", "void"],
                            )
                        ),
                        name="invoice_status_known",
                    ),
                    models.CheckConstraint(
                        condition=Q(("treatment__in", ["", "domestic", "destination", "reverse_charge", "outside"])),
                        name="treatment_known",
                    ),
                    models.CheckConstraint(
                        condition=Q(~Q(status="paid"), ("paid_at__isnull", False), _connector="OR"),
                        name="paid_at_a_moment",
                    ),
                    models.CheckConstraint(
                        condition=Q(
                            ("settled", 0),
                            Q(("number__isnull", False), ("settled__gt", 0), ("settled__lte", F("total"))),
                            _connector="OR",
                        ),
                        name="settled_is_a_part_of_it",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="InvoiceLine",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "invoice",
                    models.ForeignKey(
                        db_index=False, on_delete=models.CASCADE, related_name="lines", to="billing.invoice"
                    ),
                ),
                ("n", models.PositiveIntegerField()),
                ("project_id", models.CharField(max_length=40)),
                ("offering_id", models.CharField(max_length=40)),
                ("price_version_id", models.BigIntegerField()),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("usage", "Usage"),
                            ("storage", "Storage"),
                            ("shortfall", "Unused commitment"),
                            ("minimum", "Minimum spend"),
                        ],
                        db_default="usage",
                        default="usage",
                        max_length=9,
                    ),
                ),
                ("leases", models.PositiveIntegerField()),
                ("unit_seconds", models.BigIntegerField()),
                ("given_back_s", models.BigIntegerField(db_default=0, default=0)),
                ("exact_num", models.DecimalField(decimal_places=0, max_digits=38)),
                ("month_num", models.DecimalField(db_default=0, decimal_places=0, default=0, max_digits=38)),
                ("minor", models.BigIntegerField()),
                ("tax_category", models.CharField(db_default="standard", default="standard", max_length=10)),
                ("tax_minor", models.BigIntegerField(db_default=0, default=0)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("invoice", "n"), name="line_number_once"),
                    models.UniqueConstraint(
                        fields=("invoice", "project_id", "offering_id", "price_version_id"), name="line_once"
                    ),
                ]
            },
        ),
        migrations.CreateModel(
            name="CreditNote",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("id", models.CharField(default=default_ids.credit_note_id, max_length=40, primary_key=True, serialize=False)),
                (
                    "invoice",
                    models.ForeignKey(on_delete=models.PROTECT, related_name="credit_notes", to="billing.invoice"),
                ),
                ("series", models.CharField(max_length=20)),
                ("number", models.PositiveIntegerField()),
                ("currency", models.CharField(max_length=3)),
                ("total", models.BigIntegerField()),
                ("tax", models.BigIntegerField(db_default=0, default=0)),
                ("reduced_due", models.BigIntegerField()),
                ("to_grants", models.BigIntegerField(db_default=0, default=0)),
                ("reason", models.CharField(max_length=200)),
                ("correction_id", models.CharField(blank=True, db_default="", default="", max_length=40)),
                ("issued_at", models.DateTimeField()),
                ("issued_by", models.CharField(max_length=40)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("series", "number"), name="credit_note_number_once"),
                    models.UniqueConstraint(
                        condition=~Q(correction_id=""),
                        fields=("invoice", "correction_id"),
                        name="correction_credited_once",
                    ),
                    models.CheckConstraint(
                        condition=Q(("reduced_due__gte", 0), ("reduced_due__lte", F("total")), ("total__gt", 0)),
                        name="credit_of_something",
                    ),
                    models.CheckConstraint(
                        condition=Q(("to_grants__gte", 0), ("to_grants__lte", F("total") - F("reduced_due"))),
                        name="credit_to_grants_is_a_part",
                    ),
                ]
            },
        ),
        migrations.CreateModel(
            name="CreditNoteLine",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "credit_note",
                    models.ForeignKey(on_delete=models.PROTECT, related_name="lines", to="billing.creditnote"),
                ),
                ("line", models.ForeignKey(on_delete=models.PROTECT, related_name="credits", to="billing.invoiceline")),
                ("minor", models.BigIntegerField()),
                ("tax_minor", models.BigIntegerField(db_default=0, default=0)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("credit_note", "line"), name="line_credited_once_a_note"),
                    models.CheckConstraint(condition=Q(minor__gt=0), name="credit_line_of_something"),
                ]
            },
        ),
        migrations.CreateModel(
            name="BalanceDraw",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("id", models.CharField(default=default_ids.payment_draw_id, max_length=40, primary_key=True, serialize=False)),
                ("invoice", models.OneToOneField(on_delete=models.PROTECT, related_name="draw", to="billing.invoice")),
                ("minor", models.BigIntegerField()),
                ("at", models.DateTimeField()),
            ],
            options={"constraints": [models.CheckConstraint(condition=Q(minor__gt=0), name="draw_of_something")]},
        ),
        migrations.CreateModel(
            name="RateCard",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=60)),
                ("tenant_id", models.CharField(max_length=40, null=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant_id", "name"), name="rate_card_once", nulls_distinct=False)
                ]
            },
        ),
        migrations.CreateModel(
            name="PriceVersion",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("tenant_id", models.CharField(max_length=40, null=True)),
                (
                    "rate_card",
                    models.ForeignKey(on_delete=models.PROTECT, related_name="versions", to="billing.ratecard"),
                ),
                (
                    "offering",
                    models.ForeignKey(on_delete=models.PROTECT, related_name="price_versions", to="broker.offering"),
                ),
                ("currency", models.CharField(max_length=3)),
                ("valid", DateTimeRangeField()),
                ("nano_per_hour", models.BigIntegerField()),
                ("free_start_s", models.PositiveIntegerField(db_default=0, default=0)),
                (
                    "model",
                    models.CharField(
                        choices=[
                            ("flat", "Flat"),
                            ("graduated", "Graduated"),
                            ("volume", "Volume"),
                            ("package", "Package"),
                        ],
                        db_default="flat",
                        default="flat",
                        max_length=9,
                    ),
                ),
                ("tier_from_s", ArrayField(base_field=models.BigIntegerField(), null=True, size=None)),
                ("tier_nano", ArrayField(base_field=models.BigIntegerField(), null=True, size=None)),
                ("created_by", models.CharField(blank=True, default="", max_length=254)),
                ("created_at", models.DateTimeField()),
            ],
            options={
                "indexes": [models.Index(condition=~Q(model="flat"), fields=["tenant_id"], name="price_in_tiers")],
                "constraints": [
                    ExclusionConstraint(
                        expressions=[(F("rate_card"), "="), (F("offering"), "="), ("currency", "="), ("valid", "&&")],
                        name="one_price_at_a_time",
                    ),
                    models.CheckConstraint(condition=Q(nano_per_hour__gte=0), name="price_not_negative"),
                ],
            },
        ),
        migrations.CreateModel(
            name="Correction",
            fields=[
                ("id", models.CharField(default=default_ids.correction_id, max_length=40, primary_key=True, serialize=False)),
                ("kind", models.CharField(choices=[("lease", "Lease"), ("price", "Price")], max_length=5)),
                ("lease_id", models.CharField(blank=True, default="", max_length=40)),
                ("charge", models.BooleanField(default=False)),
                (
                    "price_version",
                    models.ForeignKey(null=True, on_delete=models.PROTECT, related_name="+", to="billing.priceversion"),
                ),
                ("nano_per_hour", models.BigIntegerField(null=True)),
                ("currency", models.CharField(max_length=3)),
                ("since", models.DateTimeField()),
                ("until", models.DateTimeField()),
                ("reason", models.CharField(max_length=200)),
                ("minor", models.BigIntegerField()),
                ("limit_minor", models.BigIntegerField()),
                ("seal", models.CharField(max_length=64)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("proposed", "Proposed"),
                            ("approved", "Approved"),
                            ("booked", "Booked"),
                            ("withdrawn", "Withdrawn"),
                        ],
                        default="proposed",
                        max_length=9,
                    ),
                ),
                ("author_id", models.CharField(max_length=40)),
                ("author", models.CharField(max_length=254)),
                ("proposed_at", models.DateTimeField()),
                ("approver_id", models.CharField(max_length=40, null=True)),
                ("approver", models.CharField(blank=True, default="", max_length=254)),
                ("approved_at", models.DateTimeField(null=True)),
                ("second_approver_id", models.CharField(max_length=40, null=True)),
                ("second_approver", models.CharField(blank=True, default="", max_length=254)),
                ("second_approved_at", models.DateTimeField(null=True)),
                ("closed_at", models.DateTimeField(null=True)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=Q(
                            Q(("approver_id", None), ~Q(approver_id=F("author_id")), _connector="OR"),
                            Q(
                                ("second_approver_id", None),
                                Q(~Q(second_approver_id=F("author_id")), ~Q(second_approver_id=F("approver_id"))),
                                _connector="OR",
                            ),
                        ),
                        name="correction_by_different_people",
                    ),
                    models.CheckConstraint(
                        condition=Q(
                            ~Q(status__in=["approved", "booked"]),
                            Q(
                                ("approver_id__isnull", False),
                                Q(
                                    ("minor__lt", F("limit_minor")),
                                    ("second_approver_id__isnull", False),
                                    _connector="OR",
                                ),
                            ),
                            _connector="OR",
                        ),
                        name="correction_is_approved_first",
                    ),
                    models.CheckConstraint(
                        condition=Q(("second_approver_id", None), ("approver_id__isnull", False), _connector="OR"),
                        name="correction_first_before_second",
                    ),
                    models.CheckConstraint(condition=Q(since__lt=F("until")), name="correction_of_some_time"),
                    models.CheckConstraint(
                        condition=Q(
                            Q(("kind", "lease"), ("nano_per_hour", None), ("price_version", None), ~Q(lease_id="")),
                            Q(
                                ("kind", "price"),
                                ("lease_id", ""),
                                ("nano_per_hour__gte", 0),
                                ("price_version__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="correction_of_one_thing",
                    ),
                ]
            },
        ),
        migrations.CreateModel(
            name="TenantCorrection",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "correction",
                    models.ForeignKey(on_delete=models.PROTECT, related_name="shares", to="billing.correction"),
                ),
                ("diff", models.JSONField()),
                ("seal", models.CharField(max_length=64)),
                ("minor", models.BigIntegerField()),
                (
                    "status",
                    models.CharField(
                        choices=[("waiting", "Waiting"), ("booked", "Booked"), ("outdated", "Outdated")],
                        default="waiting",
                        max_length=8,
                    ),
                ),
                ("settled_at", models.DateTimeField(null=True)),
                ("last_error", models.CharField(blank=True, default="", max_length=300)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("correction", "tenant"), name="correction_once_a_tenant"),
                    models.CheckConstraint(
                        condition=Q(
                            Q(("settled_at", None), ("status", "waiting")),
                            Q(~Q(status="waiting"), ~Q(settled_at=None)),
                            _connector="OR",
                        ),
                        name="share_settled_at_a_moment",
                    ),
                ]
            },
        ),
        migrations.CreateModel(
            name="CorrectedInterval",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "share",
                    models.ForeignKey(on_delete=models.PROTECT, related_name="parts", to="billing.tenantcorrection"),
                ),
                ("n", models.PositiveIntegerField()),
                ("lease_id", models.CharField(max_length=40)),
                ("seq", models.PositiveIntegerField()),
                ("price_version_id", models.BigIntegerField()),
                ("period_id", models.BigIntegerField()),
                ("billed_period_id", models.BigIntegerField()),
                ("project_id", models.CharField(max_length=40)),
                ("offering_id", models.CharField(max_length=40)),
                ("s", models.DateTimeField()),
                ("e", models.DateTimeField()),
                ("quantity", models.PositiveIntegerField()),
                ("nano_per_hour", models.BigIntegerField()),
                ("unit_seconds", models.BigIntegerField()),
                ("exact_num", models.DecimalField(decimal_places=0, max_digits=38)),
                ("final", models.BooleanField()),
            ],
            options={
                "indexes": [models.Index(fields=["lease_id"], name="correction_of_lease")],
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "share", "n"), name="correction_part_once"),
                    models.CheckConstraint(condition=Q(s__lt=F("e")), name="correction_part_of_some_time"),
                ],
            },
        ),
        migrations.CreateModel(
            name="BillingDetails",
            fields=[
                (
                    "tenant",
                    models.OneToOneField(
                        on_delete=models.PROTECT,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="tenants.tenant",
                    ),
                ),
                ("name", models.CharField(max_length=120)),
                ("street", models.CharField(max_length=120)),
                ("address_line_2", models.CharField(blank=True, default="", max_length=120)),
                ("postcode", models.CharField(blank=True, default="", max_length=20)),
                ("city", models.CharField(max_length=120)),
                ("country", models.CharField(max_length=2)),
                ("vat_id", models.CharField(blank=True, default="", max_length=20)),
                ("email", models.EmailField(blank=True, default="", max_length=254)),
                ("emails_enabled", models.BooleanField(db_default=True, default=True)),
                ("version", models.PositiveIntegerField(default=1)),
                ("changed_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="Campaign",
            fields=[
                ("name", models.CharField(max_length=80)),
                ("percent_bp", models.PositiveIntegerField(null=True)),
                ("minor", models.BigIntegerField(null=True)),
                ("currency", models.CharField(blank=True, default="", max_length=3)),
                ("offerings", ArrayField(base_field=models.CharField(max_length=40), default=list, size=None)),
                ("price_classes", ArrayField(base_field=models.CharField(max_length=12), default=list, size=None)),
                ("id", models.CharField(default=default_ids.campaign_id, max_length=40, primary_key=True, serialize=False)),
                ("code", models.CharField(max_length=40, unique=True)),
                ("since", models.DateTimeField()),
                ("until", models.DateTimeField(null=True)),
                ("months", models.PositiveSmallIntegerField(null=True)),
                ("most", models.PositiveIntegerField(null=True)),
                ("redeemed", models.PositiveIntegerField(default=0)),
                ("created_by", models.CharField(max_length=254)),
                ("created_at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=Q(("until__isnull", True), ("until__gt", F("since")), _connector="OR"),
                        name="campaign_lasts",
                    ),
                    models.CheckConstraint(
                        condition=Q(("months__isnull", True), ("months__gt", 0), _connector="OR"),
                        name="campaign_of_months",
                    ),
                    models.CheckConstraint(
                        condition=Q(("most__isnull", True), ("redeemed__lte", F("most")), _connector="OR"),
                        name="campaign_not_used_up_twice",
                    ),
                    models.CheckConstraint(
                        condition=Q(
                            Q(("minor__isnull", True), ("percent_bp__gt", 0), ("percent_bp__lte", 10000)),
                            Q(("minor__gt", 0), ("percent_bp__isnull", True)),
                            _connector="OR",
                        ),
                        name="campaign_of_something",
                    ),
                ]
            },
        ),
        migrations.CreateModel(
            name="Discount",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("name", models.CharField(max_length=80)),
                ("percent_bp", models.PositiveIntegerField(null=True)),
                ("minor", models.BigIntegerField(null=True)),
                ("currency", models.CharField(blank=True, default="", max_length=3)),
                ("offerings", ArrayField(base_field=models.CharField(max_length=40), default=list, size=None)),
                ("price_classes", ArrayField(base_field=models.CharField(max_length=12), default=list, size=None)),
                ("id", models.CharField(default=default_ids.discount_id, max_length=40, primary_key=True, serialize=False)),
                (
                    "campaign",
                    models.ForeignKey(
                        null=True, on_delete=models.PROTECT, related_name="discounts", to="billing.campaign"
                    ),
                ),
                ("first_month", models.CharField(max_length=7)),
                ("last_month", models.CharField(max_length=7, null=True)),
                ("given_by", models.CharField(max_length=254)),
                ("given_at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "campaign"), name="campaign_redeemed_once"),
                    models.CheckConstraint(
                        condition=Q(
                            Q(("minor__isnull", True), ("percent_bp__gt", 0), ("percent_bp__lte", 10000)),
                            Q(("minor__gt", 0), ("percent_bp__isnull", True)),
                            _connector="OR",
                        ),
                        name="discount_of_something",
                    ),
                ]
            },
        ),
        migrations.CreateModel(
            name="Dispute",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("id", models.CharField(default=default_ids.dispute_id, max_length=40, primary_key=True, serialize=False)),
                ("invoice", models.ForeignKey(on_delete=models.PROTECT, related_name="disputes", to="billing.invoice")),
                (
                    "line",
                    models.ForeignKey(on_delete=models.PROTECT, related_name="disputes", to="billing.invoiceline"),
                ),
                ("minor", models.BigIntegerField()),
                ("tax_minor", models.BigIntegerField(default=0)),
                ("currency", models.CharField(max_length=3)),
                ("reason", models.CharField(max_length=500)),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("open", "Open"),
                            ("accepted", "Accepted"),
                            ("declined", "Declined"),
                            ("withdrawn", "Withdrawn"),
                        ],
                        default="open",
                        max_length=9,
                    ),
                ),
                ("opened_at", models.DateTimeField()),
                ("opened_by", models.CharField(max_length=254)),
                ("closed_at", models.DateTimeField(null=True)),
                ("answer", models.CharField(blank=True, default="", max_length=500)),
                (
                    "credit_note",
                    models.ForeignKey(
                        null=True, on_delete=models.PROTECT, related_name="disputes", to="billing.creditnote"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=Q(status="open"), fields=("line",), name="one_open_dispute_of_a_line"
                    ),
                    models.CheckConstraint(
                        condition=Q(("minor__gt", 0), ("tax_minor__gte", 0)), name="dispute_of_something"
                    ),
                    models.CheckConstraint(
                        condition=Q(
                            Q(("closed_at__isnull", True), ("status", "open")),
                            Q(("closed_at__isnull", False), ("status__in", ["accepted", "declined", "withdrawn"])),
                            _connector="OR",
                        ),
                        name="dispute_ends_at_a_moment",
                    ),
                    models.CheckConstraint(
                        condition=Q(
                            Q(("credit_note__isnull", False), ("status", "accepted")),
                            Q(~Q(status="accepted"), ("credit_note__isnull", True)),
                            _connector="OR",
                        ),
                        name="accepted_is_given_back",
                    ),
                    models.CheckConstraint(
                        condition=Q(~Q(status="declined"), ~Q(answer=""), _connector="OR"), name="declined_for_a_reason"
                    ),
                ]
            },
        ),
        migrations.CreateModel(
            name="DisputeStep",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("dispute", models.ForeignKey(on_delete=models.PROTECT, related_name="steps", to="billing.dispute")),
                ("n", models.PositiveSmallIntegerField()),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("open", "Open"),
                            ("accepted", "Accepted"),
                            ("declined", "Declined"),
                            ("withdrawn", "Withdrawn"),
                        ],
                        max_length=9,
                    ),
                ),
                ("minor", models.BigIntegerField()),
                ("words", models.CharField(blank=True, default="", max_length=500)),
                ("by", models.CharField(max_length=254)),
                ("at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "dispute", "n"), name="dispute_step_once"),
                    models.CheckConstraint(
                        condition=Q(Q(("n", 0), ("status", "open")), Q(("n", 1), ~Q(status="open")), _connector="OR"),
                        name="dispute_has_two_steps",
                    ),
                    models.CheckConstraint(
                        condition=Q(status__in=["open", "accepted", "declined", "withdrawn"]), name="dispute_step_known"
                    ),
                ]
            },
        ),
        migrations.CreateModel(
            name="DunningStep",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "invoice",
                    models.ForeignKey(on_delete=models.PROTECT, related_name="reminders", to="billing.invoice"),
                ),
                ("n", models.PositiveSmallIntegerField()),
                ("action", models.CharField(max_length=10)),
                ("minor", models.BigIntegerField()),
                ("done_at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "invoice", "n"), name="dunning_step_once"),
                    models.CheckConstraint(condition=Q(minor__gt=0), name="dunning_of_something"),
                    models.CheckConstraint(
                        condition=Q(action__in=["remind", "suspend", "end"]), name="dunning_action_known"
                    ),
                ]
            },
        ),
        migrations.CreateModel(
            name="Grant",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("id", models.CharField(default=default_ids.grant_id, max_length=40, primary_key=True, serialize=False)),
                (
                    "project",
                    models.ForeignKey(null=True, on_delete=models.PROTECT, related_name="+", to="tenants.project"),
                ),
                (
                    "offering",
                    models.ForeignKey(null=True, on_delete=models.PROTECT, related_name="+", to="broker.offering"),
                ),
                ("currency", models.CharField(max_length=3)),
                ("minor", models.BigIntegerField()),
                ("priority", models.PositiveSmallIntegerField()),
                ("expires_at", models.DateTimeField(null=True)),
                (
                    "source",
                    models.CharField(
                        choices=[("operator", "Operator"), ("breach", "Breach"), ("coupon", "Coupon")], max_length=10
                    ),
                ),
                ("reason", models.CharField(max_length=200)),
                ("idem", models.CharField(max_length=120)),
                ("given_at", models.DateTimeField()),
                ("given_by", models.CharField(max_length=40)),
            ],
            options={
                "indexes": [models.Index(fields=["expires_at"], name="grant_ends")],
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "idem"), name="grant_given_once"),
                    models.CheckConstraint(condition=Q(minor__gt=0), name="grant_of_something"),
                    models.CheckConstraint(
                        condition=Q(("expires_at__isnull", True), ("expires_at__gt", F("given_at")), _connector="OR"),
                        name="grant_lasts_a_while",
                    ),
                    models.CheckConstraint(
                        condition=Q(source__in=["operator", "breach", "coupon"]), name="grant_source_known"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="GrantDraw",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("id", models.CharField(default=default_ids.payment_draw_id, max_length=40, primary_key=True, serialize=False)),
                ("grant", models.ForeignKey(on_delete=models.PROTECT, related_name="draws", to="billing.grant")),
                (
                    "invoice",
                    models.ForeignKey(on_delete=models.PROTECT, related_name="grant_draws", to="billing.invoice"),
                ),
                ("line", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="billing.invoiceline")),
                ("minor", models.BigIntegerField()),
                ("at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("grant", "line"), name="grant_draws_once_a_line"),
                    models.CheckConstraint(condition=Q(minor__gt=0), name="grant_draw_of_something"),
                ]
            },
        ),
        migrations.CreateModel(
            name="GrantReturn",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("id", models.CharField(default=default_ids.grant_return_id, max_length=40, primary_key=True, serialize=False)),
                (
                    "credit_note",
                    models.ForeignKey(on_delete=models.PROTECT, related_name="grant_returns", to="billing.creditnote"),
                ),
                ("grant", models.ForeignKey(on_delete=models.PROTECT, related_name="returns", to="billing.grant")),
                ("minor", models.BigIntegerField()),
                ("lapsed", models.BooleanField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("credit_note", "grant"), name="grant_returned_once_a_note"),
                    models.CheckConstraint(condition=Q(minor__gt=0), name="grant_return_of_something"),
                ]
            },
        ),
        migrations.CreateModel(
            name="GrantExpiry",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("id", models.CharField(default=default_ids.grant_expiry_id, max_length=40, primary_key=True, serialize=False)),
                ("grant", models.OneToOneField(on_delete=models.PROTECT, related_name="lapse", to="billing.grant")),
                ("minor", models.BigIntegerField()),
                ("at", models.DateTimeField()),
            ],
            options={
                "constraints": [models.CheckConstraint(condition=Q(minor__gte=0), name="grant_lapse_not_negative")]
            },
        ),
        migrations.CreateModel(
            name="LedgerAccount",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "tenant",
                    models.ForeignKey(null=True, on_delete=models.PROTECT, related_name="+", to="tenants.tenant"),
                ),
                (
                    "type",
                    models.CharField(
                        choices=[
                            ("receivable", "receivable"),
                            ("wallet_paid", "wallet_paid"),
                            ("wallet_promo", "wallet_promo"),
                            ("accrued", "accrued"),
                            ("revenue", "revenue"),
                            ("tax_payable", "tax_payable"),
                            ("slo_expense", "slo_expense"),
                            ("promotion", "promotion"),
                            ("cash", "cash"),
                            ("breakage", "breakage"),
                            ("fx", "fx"),
                        ],
                        max_length=12,
                    ),
                ),
                ("currency", models.CharField(max_length=3)),
                ("ref", models.CharField(blank=True, db_default="", default="", max_length=40)),
                ("opened_at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "type", "currency", "ref"), name="ledger_account_once", nulls_distinct=False
                    ),
                    models.CheckConstraint(
                        condition=Q(
                            Q(
                                ("tenant__isnull", False),
                                ("type__in", ["accrued", "receivable", "wallet_paid", "wallet_promo"]),
                            ),
                            Q(
                                ("tenant__isnull", True),
                                (
                                    "type__in",
                                    ["breakage", "cash", "fx", "promotion", "revenue", "slo_expense", "tax_payable"],
                                ),
                            ),
                            _connector="OR",
                        ),
                        name="ledger_account_is_somebodys",
                    ),
                ]
            },
        ),
        migrations.CreateModel(
            name="LedgerTransfer",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("tenant_id", models.CharField(max_length=40)),
                (
                    "debit_account",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=models.DO_NOTHING,
                        related_name="debits",
                        to="billing.ledgeraccount",
                    ),
                ),
                (
                    "credit_account",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=models.DO_NOTHING,
                        related_name="credits",
                        to="billing.ledgeraccount",
                    ),
                ),
                ("currency", models.CharField(max_length=3)),
                ("minor", models.BigIntegerField()),
                ("at", models.DateTimeField()),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("invoice", "Invoice"),
                            ("payment", "Payment"),
                            ("void", "Void"),
                            ("credit", "Credit"),
                            ("draw", "Draw"),
                            ("grant", "Grant"),
                            ("topup", "Topup"),
                            ("refund", "Refund"),
                            ("lapse", "Lapse"),
                        ],
                        max_length=20,
                    ),
                ),
                ("ref", models.CharField(max_length=40)),
                ("reverses_id", models.BigIntegerField(null=True)),
                ("idem", models.CharField(db_collation="C", max_length=120)),
                ("recorded_at", models.DateTimeField(db_default=Now())),
            ],
            options={
                "indexes": [BrinIndex(autosummarize=True, fields=["recorded_at"], name="transfer_recorded")],
                "constraints": [
                    models.UniqueConstraint(fields=("idem",), name="transfer_once"),
                    models.UniqueConstraint(
                        condition=Q(reverses_id__isnull=False),
                        fields=("tenant_id", "reverses_id"),
                        name="transfer_reversed_once",
                    ),
                    models.CheckConstraint(condition=Q(minor__gt=0), name="transfer_of_something"),
                    models.CheckConstraint(
                        condition=~Q(debit_account=F("credit_account")), name="transfer_between_two"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="AccountBalance",
            fields=[
                (
                    "account",
                    models.OneToOneField(
                        on_delete=models.PROTECT,
                        primary_key=True,
                        related_name="balance",
                        serialize=False,
                        to="billing.ledgeraccount",
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=models.PROTECT,
                        related_name="+",
                        to="tenants.tenant",
                    ),
                ),
                ("minor", models.BigIntegerField(default=0)),
                ("held_minor", models.BigIntegerField(db_default=0, default=0)),
                ("floor", models.BigIntegerField(null=True)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=Q(
                            ("floor__isnull", True), ("minor__gte", F("floor") + F("held_minor")), _connector="OR"
                        ),
                        name="balance_above_its_floor",
                    ),
                    models.CheckConstraint(condition=Q(held_minor__gte=0), name="balance_holds_no_less_than_nothing"),
                ]
            },
        ),
        migrations.CreateModel(
            name="LedgerSeal",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("n", models.PositiveBigIntegerField()),
                ("day", models.DateField()),
                ("transfers", ArrayField(base_field=models.BigIntegerField(), size=None)),
                ("before", models.BinaryField()),
                ("hash", models.BinaryField()),
                ("sealed_at", models.DateTimeField()),
            ],
            options={
                "indexes": [models.Index(fields=["sealed_at"], name="sealed_lately")],
                "constraints": [models.UniqueConstraint(fields=("tenant", "n"), name="seal_once")],
            },
        ),
        migrations.CreateModel(
            name="QueuedEmail",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("id", models.CharField(default=default_ids.queued_email_id, max_length=40, primary_key=True, serialize=False)),
                ("kind", models.CharField(max_length=20)),
                ("subject_id", models.CharField(max_length=40)),
                ("made_at", models.DateTimeField()),
                ("due_at", models.DateTimeField(null=True)),
                ("claimed_until", models.DateTimeField(null=True)),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                (
                    "sent_to",
                    ArrayField(base_field=models.CharField(max_length=254), db_default=[], default=list, size=None),
                ),
                ("sent_at", models.DateTimeField(null=True)),
                ("last_error", models.CharField(blank=True, default="", max_length=300)),
                (
                    "undelivered_reason",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("unwanted", "Unwanted"),
                            ("outdated", "Outdated"),
                            ("no_recipient", "No Recipient"),
                            ("given_up", "Given Up"),
                        ],
                        db_default="",
                        default="",
                        max_length=12,
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(condition=Q(due_at__isnull=False), fields=["due_at"], name="letter_due"),
                    models.Index(
                        condition=Q(undelivered_reason__in=("no_recipient", "given_up")),
                        fields=["made_at"],
                        name="letter_unsent",
                    ),
                ],
                "constraints": [models.UniqueConstraint(fields=("tenant", "kind", "subject_id"), name="letter_once")],
            },
        ),
        migrations.CreateModel(
            name="Minimum",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("id", models.CharField(default=default_ids.minimum_id, max_length=40, primary_key=True, serialize=False)),
                ("minor", models.BigIntegerField()),
                ("currency", models.CharField(max_length=3)),
                ("valid", DateTimeRangeField()),
                ("agreed_by", models.CharField(max_length=254)),
                ("agreed_at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    ExclusionConstraint(
                        expressions=[(F("tenant"), "="), ("valid", "&&")], name="one_minimum_at_a_time"
                    ),
                    models.CheckConstraint(condition=Q(minor__gt=0), name="minimum_of_something"),
                ]
            },
        ),
        migrations.CreateModel(
            name="InvoiceAdjustment",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "tenant_id",
                        "billed_period_id",
                        "kind",
                        "source",
                        "project_id",
                        "offering_id",
                        "price_version_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("tenant_id", models.CharField(max_length=40)),
                ("period_id", models.BigIntegerField()),
                ("billed_period_id", models.BigIntegerField()),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("tier", "Tier"),
                            ("commit", "Commit"),
                            ("percent", "Percent"),
                            ("amount", "Amount"),
                            ("storage", "Storage"),
                            ("shortfall", "Shortfall"),
                            ("minimum", "Minimum"),
                        ],
                        max_length=9,
                    ),
                ),
                ("source", models.CharField(max_length=40)),
                ("project_id", models.CharField(blank=True, max_length=40)),
                ("offering_id", models.CharField(max_length=40)),
                ("price_version_id", models.BigIntegerField()),
                ("n", models.PositiveIntegerField()),
                ("units", models.BigIntegerField(default=0)),
                ("meter", models.CharField(blank=True, default="", max_length=20)),
                ("base_num", models.DecimalField(decimal_places=0, max_digits=38)),
                ("exact_num", models.DecimalField(decimal_places=0, max_digits=38)),
                ("label", models.CharField(max_length=200)),
                ("terms", models.JSONField(default=dict)),
                ("recorded_at", models.DateTimeField(db_default=Now())),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=Q(
                            Q(("exact_num__lt", 0), ("kind__in", ("tier", "commit", "percent", "amount"))),
                            Q(
                                Q(("kind__in", ("tier", "commit", "percent", "amount")), _negated=True),
                                ("exact_num__gt", 0),
                            ),
                            _connector="OR",
                        ),
                        name="month_charge_has_its_sign",
                    ),
                    models.CheckConstraint(
                        condition=Q(
                            ("kind__in", ["tier", "commit", "percent", "amount", "storage", "shortfall", "minimum"])
                        ),
                        name="month_charge_kind_known",
                    ),
                ]
            },
        ),
        migrations.CreateModel(
            name="StoredDocument",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "invoice",
                    models.OneToOneField(null=True, on_delete=models.PROTECT, related_name="+", to="billing.invoice"),
                ),
                (
                    "credit_note",
                    models.OneToOneField(
                        null=True, on_delete=models.PROTECT, related_name="+", to="billing.creditnote"
                    ),
                ),
                ("content_sha256", models.CharField(max_length=64)),
                ("pdf", models.BinaryField()),
                ("pdf_sha256", models.CharField(max_length=64)),
                ("made_at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=Q(
                            Q(("credit_note__isnull", True), ("invoice__isnull", False)),
                            Q(("credit_note__isnull", False), ("invoice__isnull", True)),
                            _connector="OR",
                        ),
                        name="paper_of_one_thing",
                    )
                ]
            },
        ),
        migrations.CreateModel(
            name="Payment",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("pending", "Pending"),
                            ("stuck", "Stuck"),
                            ("succeeded", "Succeeded"),
                            ("declined", "Declined"),
                        ],
                        default="pending",
                        max_length=9,
                    ),
                ),
                ("minor", models.BigIntegerField()),
                ("currency", models.CharField(max_length=3)),
                ("gateway", models.CharField(max_length=40)),
                ("opened_at", models.DateTimeField()),
                ("settled_at", models.DateTimeField(null=True)),
                ("reference", models.CharField(blank=True, default="", max_length=120)),
                ("code", models.CharField(blank=True, default="", max_length=60)),
                ("reason", models.CharField(blank=True, default="", max_length=200)),
                ("due_at", models.DateTimeField(null=True)),
                ("claimed_until", models.DateTimeField(null=True)),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("consecutive_failures", models.PositiveIntegerField(db_default=0, default=0)),
                ("last_error", models.CharField(blank=True, default="", max_length=200)),
                ("stuck_at", models.DateTimeField(null=True)),
                ("mark_failed_reason", models.CharField(blank=True, db_default="", default="", max_length=200)),
                ("id", models.CharField(default=default_ids.payment_id, max_length=40, primary_key=True, serialize=False)),
                ("invoice", models.ForeignKey(on_delete=models.PROTECT, related_name="payments", to="billing.invoice")),
                ("automatic", models.BooleanField(default=False)),
            ],
            options={
                "indexes": [
                    models.Index(condition=Q(status="pending"), fields=["due_at"], name="payment_waits"),
                    models.Index(condition=Q(status="stuck"), fields=["stuck_at"], name="payment_stuck"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=Q(status__in=["pending", "stuck", "succeeded"]),
                        fields=("invoice",),
                        name="one_payment_per_invoice",
                    ),
                    models.CheckConstraint(condition=Q(minor__gt=0), name="payment_of_something"),
                    models.CheckConstraint(
                        condition=Q(status__in=["pending", "stuck", "succeeded", "declined"]),
                        name="payment_status_known",
                    ),
                    models.CheckConstraint(
                        condition=Q(
                            Q(("due_at__isnull", False), ("settled_at__isnull", True), ("status", "pending")),
                            Q(("due_at__isnull", True), ("settled_at__isnull", True), ("status", "stuck")),
                            Q(
                                ~Q(status__in=("pending", "stuck")),
                                ("due_at__isnull", True),
                                ("settled_at__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="payment_waits_or_is_settled",
                    ),
                    models.CheckConstraint(
                        condition=Q(
                            Q(("status", "stuck"), ("stuck_at__isnull", False)),
                            Q(~Q(status="stuck"), ("stuck_at__isnull", True)),
                            _connector="OR",
                        ),
                        name="payment_stuck_since",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Quote",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("id", models.CharField(default=default_ids.quote_id, max_length=40, primary_key=True, serialize=False)),
                ("lease", models.OneToOneField(on_delete=models.PROTECT, related_name="+", to="broker.lease")),
                ("project_id", models.CharField(max_length=40)),
                (
                    "offering",
                    models.ForeignKey(db_index=False, on_delete=models.PROTECT, related_name="+", to="broker.offering"),
                ),
                (
                    "price_version",
                    models.ForeignKey(
                        db_index=False, on_delete=models.PROTECT, related_name="+", to="billing.priceversion"
                    ),
                ),
                ("currency", models.CharField(max_length=3)),
                ("nano_per_hour", models.BigIntegerField()),
                ("quantity", models.PositiveIntegerField()),
                ("max_duration_s", models.PositiveIntegerField()),
                ("hold_minor", models.BigIntegerField()),
                ("cap_minor", models.BigIntegerField()),
                ("made_at", models.DateTimeField()),
                ("expires_at", models.DateTimeField()),
                ("cited_at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=Q(nano_per_hour__gte=0), name="quote_not_negative"),
                    models.CheckConstraint(condition=Q(quantity__gte=1), name="quote_of_something"),
                    models.CheckConstraint(condition=Q(cited_at__lt=F("expires_at")), name="quote_cited_in_time"),
                ]
            },
        ),
        migrations.CreateModel(
            name="Refund",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("pending", "Pending"),
                            ("stuck", "Stuck"),
                            ("succeeded", "Succeeded"),
                            ("declined", "Declined"),
                        ],
                        default="pending",
                        max_length=9,
                    ),
                ),
                ("minor", models.BigIntegerField()),
                ("currency", models.CharField(max_length=3)),
                ("gateway", models.CharField(max_length=40)),
                ("opened_at", models.DateTimeField()),
                ("settled_at", models.DateTimeField(null=True)),
                ("reference", models.CharField(blank=True, default="", max_length=120)),
                ("code", models.CharField(blank=True, default="", max_length=60)),
                ("reason", models.CharField(blank=True, default="", max_length=200)),
                ("due_at", models.DateTimeField(null=True)),
                ("claimed_until", models.DateTimeField(null=True)),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("consecutive_failures", models.PositiveIntegerField(db_default=0, default=0)),
                ("last_error", models.CharField(blank=True, default="", max_length=200)),
                ("stuck_at", models.DateTimeField(null=True)),
                ("mark_failed_reason", models.CharField(blank=True, db_default="", default="", max_length=200)),
                ("id", models.CharField(default=default_ids.refund_id, max_length=40, primary_key=True, serialize=False)),
                (
                    "payment",
                    models.ForeignKey(on_delete=models.PROTECT, related_name="sent_back", to="billing.payment"),
                ),
                ("why", models.CharField(max_length=200)),
                ("opened_by", models.CharField(max_length=40)),
                ("returned_at", models.DateTimeField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(condition=Q(status="pending"), fields=["due_at"], name="refund_waits"),
                    models.Index(condition=Q(status="stuck"), fields=["opened_at"], name="refund_stuck"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=Q(status__in=("pending", "stuck")), fields=("payment",), name="one_refund_at_a_time"
                    ),
                    models.CheckConstraint(condition=Q(minor__gt=0), name="refund_of_something"),
                    models.CheckConstraint(
                        condition=Q(status__in=["pending", "stuck", "succeeded", "declined"]),
                        name="refund_status_known",
                    ),
                    models.CheckConstraint(
                        condition=Q(
                            Q(("due_at__isnull", False), ("settled_at__isnull", True), ("status", "pending")),
                            Q(("due_at__isnull", True), ("settled_at__isnull", True), ("status", "stuck")),
                            Q(
                                ~Q(status__in=("pending", "stuck")),
                                ("due_at__isnull", True),
                                ("settled_at__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="refund_waits_or_is_settled",
                    ),
                    models.CheckConstraint(
                        condition=Q(("returned_at__isnull", True), ("status", "succeeded"), _connector="OR"),
                        name="refund_returned_after_success",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="SimulatedCharge",
            fields=[
                ("key", models.CharField(max_length=60, primary_key=True, serialize=False)),
                ("payer", models.CharField(max_length=60)),
                ("minor", models.BigIntegerField()),
                ("currency", models.CharField(max_length=3)),
                ("text", models.CharField(max_length=200)),
                ("declined", models.BooleanField()),
                ("made_at", models.DateTimeField()),
                ("answers_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="SimulatedPayer",
            fields=[
                ("payer", models.CharField(max_length=60, primary_key=True, serialize=False)),
                ("pending_faults", models.JSONField(default=list)),
            ],
        ),
        migrations.CreateModel(
            name="SimulatedRefund",
            fields=[
                ("key", models.CharField(max_length=60, primary_key=True, serialize=False)),
                ("charge", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="billing.simulatedcharge")),
                ("minor", models.BigIntegerField()),
                ("made_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="StripeCustomer",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("customer_id", models.CharField(blank=True, default="", max_length=120)),
                ("card_id", models.CharField(blank=True, default="", max_length=120)),
                ("brand", models.CharField(blank=True, default="", max_length=30)),
                ("last4", models.CharField(blank=True, default="", max_length=4)),
                ("ends", models.CharField(blank=True, default="", max_length=7)),
                ("added_at", models.DateTimeField(null=True)),
                ("added_by", models.CharField(blank=True, default="", max_length=200)),
            ],
            options={
                "indexes": [models.Index(fields=["customer_id"], name="stripe_customer_by_id")],
                "constraints": [models.UniqueConstraint(fields=("tenant",), name="stripe_customer_once")],
            },
        ),
        migrations.CreateModel(
            name="StripeCharge",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("id", models.CharField(max_length=60, primary_key=True, serialize=False)),
                ("minor", models.BigIntegerField()),
                ("currency", models.CharField(max_length=3)),
                ("sent_minor", models.BigIntegerField()),
                ("customer_id", models.CharField(blank=True, default="", max_length=120)),
                ("card_id", models.CharField(blank=True, default="", max_length=120)),
                ("card", models.CharField(blank=True, default="", max_length=60)),
                ("stripe_id", models.CharField(blank=True, default="", max_length=120)),
                ("round", models.PositiveIntegerField(default=0)),
                (
                    "outcome",
                    models.CharField(
                        choices=[("open", "Open"), ("succeeded", "Succeeded"), ("declined", "Declined")],
                        default="open",
                        max_length=9,
                    ),
                ),
                ("code", models.CharField(blank=True, default="", max_length=60)),
                ("reason", models.CharField(blank=True, default="", max_length=200)),
                ("made_at", models.DateTimeField()),
                ("settled_at", models.DateTimeField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["stripe_id"], name="stripe_charge_by_id"),
                    models.Index(fields=["made_at"], name="stripe_charge_by_age"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=Q(outcome__in=["open", "succeeded", "declined"]), name="stripe_outcome_known"
                    ),
                    models.CheckConstraint(
                        condition=Q(
                            Q(("outcome", "open"), ("settled_at", None)),
                            Q(~Q(outcome="open"), ~Q(settled_at=None)),
                            _connector="OR",
                        ),
                        name="stripe_charge_open_or_settled",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="StripeCommand",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("subject", models.CharField(max_length=60)),
                ("step", models.CharField(max_length=20)),
                ("round", models.PositiveIntegerField(default=0)),
                ("attempt", models.PositiveIntegerField(default=0)),
                ("params", models.TextField()),
                ("idem", models.CharField(max_length=64, unique=True)),
                (
                    "state",
                    models.CharField(
                        choices=[("new", "New"), ("unknown_outcome", "Unknown Outcome"), ("done", "Done")],
                        default="new",
                        max_length=15,
                    ),
                ),
                ("sent", models.PositiveIntegerField(default=0)),
                ("sent_at", models.DateTimeField(null=True)),
                ("answer", models.TextField(blank=True, default="")),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant", "subject", "step", "round"), name="stripe_command_once"),
                    models.CheckConstraint(
                        condition=Q(state__in=["new", "unknown_outcome", "done"]), name="stripe_command_state_known"
                    ),
                ]
            },
        ),
        migrations.CreateModel(
            name="StripeRateLimit",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("idle_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="PaymentCardForm",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("id", models.CharField(default=default_ids.payment_card_form_id, max_length=40, primary_key=True, serialize=False)),
                (
                    "state",
                    models.CharField(
                        choices=[("wanted", "Wanted"), ("open", "Open"), ("saved", "Saved"), ("failed", "Failed")],
                        default="wanted",
                        max_length=6,
                    ),
                ),
                ("asked_at", models.DateTimeField()),
                ("asked_by", models.CharField(max_length=200)),
                ("session_id", models.CharField(blank=True, default="", max_length=120)),
                ("url", models.TextField(blank=True, default="")),
                ("reason", models.CharField(blank=True, default="", max_length=200)),
                ("settled_at", models.DateTimeField(null=True)),
                ("due_at", models.DateTimeField(null=True)),
                ("attempts", models.PositiveIntegerField(default=0)),
            ],
            options={
                "indexes": [
                    models.Index(condition=Q(due_at__isnull=False), fields=["due_at"], name="card_form_waits"),
                    models.Index(fields=["session_id"], name="card_form_by_session"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=Q(state__in=["wanted", "open", "saved", "failed"]), name="card_form_state_known"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="StripeEvent",
            fields=[
                ("id", models.CharField(max_length=120, primary_key=True, serialize=False)),
                ("type", models.CharField(max_length=80)),
                ("api_version", models.CharField(max_length=40)),
                ("object_id", models.CharField(max_length=120)),
                ("created", models.DateTimeField()),
                ("received_at", models.DateTimeField()),
                ("found", models.BooleanField(default=False)),
                (
                    "state",
                    models.CharField(
                        choices=[("waiting", "Waiting"), ("done", "Done"), ("parked", "Parked")],
                        default="waiting",
                        max_length=7,
                    ),
                ),
                ("why", models.CharField(blank=True, default="", max_length=200)),
                ("due_at", models.DateTimeField(null=True)),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("unanswered_attempts", models.PositiveIntegerField(db_default=0, default=0)),
            ],
            options={
                "indexes": [
                    models.Index(condition=Q(state="waiting"), fields=["due_at"], name="stripe_event_waits"),
                    models.Index(condition=Q(state="parked"), fields=["received_at"], name="stripe_event_parked"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=Q(
                            Q(("due_at__isnull", False), ("state", "waiting")),
                            Q(~Q(state="waiting"), ("due_at", None)),
                            _connector="OR",
                        ),
                        name="stripe_event_waits_or_not",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="PaymentDispute",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("id", models.CharField(max_length=120, primary_key=True, serialize=False)),
                ("payment", models.ForeignKey(on_delete=models.PROTECT, related_name="disputes", to="billing.payment")),
                ("status", models.CharField(max_length=40)),
                ("rank", models.PositiveIntegerField()),
                ("minor", models.BigIntegerField()),
                ("reason", models.CharField(blank=True, default="", max_length=80)),
                ("opened_at", models.DateTimeField()),
                ("seen_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="PaymentRefund",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("id", models.CharField(max_length=120, primary_key=True, serialize=False)),
                ("payment", models.ForeignKey(on_delete=models.PROTECT, related_name="refunds", to="billing.payment")),
                ("status", models.CharField(max_length=40)),
                ("rank", models.PositiveIntegerField()),
                ("minor", models.BigIntegerField()),
                ("made_at", models.DateTimeField()),
                ("seen_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="StripeReconciliationDay",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("day", models.DateField(unique=True)),
                ("due_at", models.DateTimeField(null=True)),
                ("checked_at", models.DateTimeField(null=True)),
                ("charges", models.PositiveIntegerField(default=0)),
                ("invoices", models.PositiveIntegerField(default=0)),
                ("events", models.PositiveIntegerField(default=0)),
                ("differences", models.PositiveIntegerField(default=0)),
                ("last_error", models.CharField(blank=True, default="", max_length=200)),
                ("begun_at", models.DateTimeField(null=True)),
                (
                    "phase",
                    models.CharField(
                        choices=[("events", "Events"), ("theirs", "Theirs"), ("ours", "Ours")],
                        db_default="events",
                        default="events",
                        max_length=6,
                    ),
                ),
                ("after", models.CharField(blank=True, db_default="", default="", max_length=120)),
            ],
            options={"indexes": [models.Index(fields=["due_at"], name="stripe_day_waits")]},
        ),
        migrations.CreateModel(
            name="ReconciledCharge",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("day", models.ForeignKey(on_delete=models.CASCADE, related_name="seen", to="billing.stripereconciliationday")),
                ("charge", models.CharField(max_length=60)),
            ],
            options={"constraints": [models.UniqueConstraint(fields=("day", "charge"), name="stripe_seen_once")]},
        ),
        migrations.CreateModel(
            name="StripeDifference",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("day", models.ForeignKey(on_delete=models.PROTECT, related_name="found", to="billing.stripereconciliationday")),
                ("kind", models.CharField(max_length=30)),
                ("ref", models.CharField(max_length=120)),
                ("currency", models.CharField(blank=True, default="", max_length=3)),
                ("ours", models.BigIntegerField(null=True)),
                ("theirs", models.BigIntegerField(null=True)),
                ("booked", models.BigIntegerField(null=True)),
                ("back", models.BigIntegerField(null=True)),
                ("found_at", models.DateTimeField()),
                ("seen_at", models.DateTimeField()),
                ("acknowledged_at", models.DateTimeField(null=True)),
                ("acknowledged_by", models.CharField(blank=True, db_default="", default="", max_length=200)),
                ("why", models.CharField(blank=True, db_default="", default="", max_length=200)),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("day", "kind", "ref"), name="stripe_difference_once")]
            },
        ),
        migrations.CreateModel(
            name="TaxRate",
            fields=[
                ("id", models.CharField(default=default_ids.tax_rate_id, max_length=40, primary_key=True, serialize=False)),
                ("jurisdiction", models.CharField(max_length=2)),
                (
                    "category",
                    models.CharField(
                        choices=[("standard", "Standard"), ("reduced", "Reduced"), ("exempt", "Exempt")], max_length=10
                    ),
                ),
                ("rate_bp", models.PositiveIntegerField()),
                ("valid", DateRangeField()),
                ("used", models.BooleanField(db_default=False, default=False)),
                ("created_by", models.CharField(blank=True, default="", max_length=254)),
                ("created_at", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    ExclusionConstraint(
                        expressions=[("jurisdiction", "="), ("category", "="), ("valid", "&&")],
                        name="one_tax_rate_at_a_time",
                    ),
                    models.CheckConstraint(condition=Q(rate_bp__lte=10000), name="tax_takes_no_more_than_all"),
                    models.CheckConstraint(
                        condition=Q(category__in=["standard", "reduced", "exempt"]), name="tax_category_known"
                    ),
                ]
            },
        ),
        migrations.CreateModel(
            name="OfferingTaxCategory",
            fields=[
                (
                    "offering",
                    models.OneToOneField(
                        on_delete=models.PROTECT,
                        primary_key=True,
                        related_name="taxed_as",
                        serialize=False,
                        to="broker.offering",
                    ),
                ),
                (
                    "category",
                    models.CharField(
                        choices=[("standard", "Standard"), ("reduced", "Reduced"), ("exempt", "Exempt")], max_length=10
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=Q(category__in=["standard", "reduced", "exempt"]), name="taxed_as_known"
                    )
                ]
            },
        ),
        migrations.CreateModel(
            name="InvoiceTax",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "invoice",
                    models.ForeignKey(
                        db_index=False, on_delete=models.CASCADE, related_name="taxes", to="billing.invoice"
                    ),
                ),
                (
                    "category",
                    models.CharField(
                        choices=[("standard", "Standard"), ("reduced", "Reduced"), ("exempt", "Exempt")], max_length=10
                    ),
                ),
                (
                    "rate",
                    models.ForeignKey(null=True, on_delete=models.PROTECT, related_name="+", to="billing.taxrate"),
                ),
                ("rate_bp", models.PositiveIntegerField(null=True)),
                ("net", models.BigIntegerField()),
                ("tax", models.BigIntegerField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("invoice", "category"), name="one_tax_per_category"),
                    models.CheckConstraint(
                        condition=Q(category__in=["standard", "reduced", "exempt"]), name="invoice_tax_known"
                    ),
                    models.CheckConstraint(
                        condition=Q(("rate_bp__isnull", False), ("tax", 0), _connector="OR"), name="no_tax_without_rate"
                    ),
                ]
            },
        ),
        migrations.CreateModel(
            name="TopUp",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("pending", "Pending"),
                            ("stuck", "Stuck"),
                            ("succeeded", "Succeeded"),
                            ("declined", "Declined"),
                        ],
                        default="pending",
                        max_length=9,
                    ),
                ),
                ("minor", models.BigIntegerField()),
                ("currency", models.CharField(max_length=3)),
                ("gateway", models.CharField(max_length=40)),
                ("opened_at", models.DateTimeField()),
                ("settled_at", models.DateTimeField(null=True)),
                ("reference", models.CharField(blank=True, default="", max_length=120)),
                ("code", models.CharField(blank=True, default="", max_length=60)),
                ("reason", models.CharField(blank=True, default="", max_length=200)),
                ("due_at", models.DateTimeField(null=True)),
                ("claimed_until", models.DateTimeField(null=True)),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("consecutive_failures", models.PositiveIntegerField(db_default=0, default=0)),
                ("last_error", models.CharField(blank=True, default="", max_length=200)),
                ("stuck_at", models.DateTimeField(null=True)),
                ("mark_failed_reason", models.CharField(blank=True, db_default="", default="", max_length=200)),
                ("id", models.CharField(default=default_ids.topup_id, max_length=40, primary_key=True, serialize=False)),
                ("window", models.BigIntegerField(null=True)),
                ("opened_by", models.CharField(max_length=40)),
            ],
            options={
                "indexes": [
                    models.Index(condition=Q(status="pending"), fields=["due_at"], name="topup_waits"),
                    models.Index(condition=Q(status="stuck"), fields=["opened_at"], name="topup_stuck"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=Q(status__in=("pending", "stuck")), fields=("tenant",), name="one_topup_at_a_time"
                    ),
                    models.UniqueConstraint(fields=("tenant", "window"), name="one_topup_a_window"),
                    models.CheckConstraint(condition=Q(minor__gt=0), name="topup_of_something"),
                    models.CheckConstraint(
                        condition=Q(status__in=["pending", "stuck", "succeeded", "declined"]), name="topup_status_known"
                    ),
                    models.CheckConstraint(
                        condition=Q(
                            Q(("due_at__isnull", False), ("settled_at__isnull", True), ("status", "pending")),
                            Q(("due_at__isnull", True), ("settled_at__isnull", True), ("status", "stuck")),
                            Q(
                                ~Q(status__in=("pending", "stuck")),
                                ("due_at__isnull", True),
                                ("settled_at__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="topup_waits_or_is_settled",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="AutoTopUp",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("threshold_minor", models.BigIntegerField()),
                ("minor", models.BigIntegerField()),
                ("set_at", models.DateTimeField()),
                ("stopped_at", models.DateTimeField(null=True)),
                ("why", models.CharField(blank=True, default="", max_length=200)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant",), name="auto_topup_once_a_tenant"),
                    models.CheckConstraint(
                        condition=Q(("minor__gt", 0), ("threshold_minor__gt", 0)), name="auto_topup_of_something"
                    ),
                ]
            },
        ),
        migrations.CreateModel(
            name="AccountTerms",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "payment",
                    models.CharField(
                        choices=[("invoice", "Invoice"), ("prepaid", "Prepaid")], default="invoice", max_length=8
                    ),
                ),
                (
                    "account_status",
                    models.CharField(
                        choices=[("good", "Good"), ("grace", "Grace"), ("suspended", "Suspended")],
                        default="good",
                        max_length=9,
                    ),
                ),
                ("why", models.CharField(blank=True, default="", max_length=200)),
                ("since", models.DateTimeField()),
                ("version", models.PositiveIntegerField(default=1)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant",), name="terms_once_a_tenant"),
                    models.CheckConstraint(condition=Q(payment__in=["invoice", "prepaid"]), name="terms_payment_known"),
                    models.CheckConstraint(
                        condition=Q(account_status__in=["good", "grace", "suspended"]),
                        name="terms_account_status_known",
                    ),
                ]
            },
        ),
        migrations.CreateModel(
            name="Wallet",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("currency", models.CharField(max_length=3)),
                ("taken_num", models.DecimalField(decimal_places=0, default=0, max_digits=38)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("tenant",), name="wallet_once_a_tenant"),
                    models.CheckConstraint(condition=Q(taken_num__gte=0), name="wallet_adds_up"),
                ]
            },
        ),
        migrations.CreateModel(
            name="WalletPart",
            fields=[
                ("tenant", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="tenants.tenant")),
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "hold",
                    models.ForeignKey(
                        null=True, on_delete=models.PROTECT, related_name="wallet_parts", to="billing.hold"
                    ),
                ),
                ("wallet", models.ForeignKey(on_delete=models.PROTECT, related_name="parts", to="billing.wallet")),
                ("period", models.ForeignKey(on_delete=models.PROTECT, related_name="+", to="billing.billingperiod")),
                ("num", models.DecimalField(decimal_places=0, max_digits=38)),
                ("spent_num", models.DecimalField(decimal_places=0, default=0, max_digits=38)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant", "hold", "period"), name="wallet_part_once", nulls_distinct=False
                    ),
                    models.CheckConstraint(
                        condition=Q(("num__gte", F("spent_num")), ("spent_num__gte", 0)), name="wallet_part_covers"
                    ),
                ]
            },
        ),
    ]
