"""Settings an operator may change: typed, and read once from the environment.

`docs/reference/settings.md` is generated from here.
"""

import json
import os
import re
from email.utils import parseaddr
from pathlib import Path
from typing import Literal, Self
from urllib.parse import urlsplit

from cryptography.fernet import Fernet
from pydantic import Field, PositiveInt, SecretStr, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from billing.domain.countries import COUNTRY_NAMES
from billing.domain.money import EXPONENTS, parse_amount
from config.broker_url import parse_broker_url
from config.database_url import parse_database_url
from config.mail_url import parse_mail_url
from config.setting_names import PREFIX, check_setting_names

LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")


def secrets_directory() -> Path | None:
    """Return the directory of secret files, one file per value, or None without one."""
    folder = Path("/run/secrets/gpubroker")
    return folder if folder.is_dir() else None


class EnvironmentSettings(BaseSettings):
    """Settings read from GPUBROKER_… variables, or from files of that name in the secrets directory."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX,
        frozen=True,
        extra="ignore",
        secrets_dir=secrets_directory(),
        hide_input_in_errors=True,  # URLs contain passwords
    )

    secret_key: SecretStr = Field(min_length=1, description="Signs sessions. No default: nothing starts without it.")
    credential_encryption_keys: SecretStr = Field(
        default=SecretStr(""),
        description="Fernet keys that encrypt what is secret in the database; newest first, with commas.",
    )
    database_url: SecretStr = Field(
        description="PostgreSQL URL with the application's login, which is neither table owner nor superuser. It takes"
        " every option of libpq, for example `?sslmode=verify-full&sslrootcert=/ca.pem`, and several hosts."
    )
    owner_database_url: SecretStr | None = Field(
        default=None,
        description="PostgreSQL URL with the table owner's login, for migrations only; not for web and worker.",
    )
    broker_url: str = Field(
        default="redis://127.0.0.1:6379/0",
        description="URL of Valkey; `rediss://` for TLS, with `?ssl_ca_certs=/ca.pem` for a CA of your own (and"
        " `ssl_certfile`, `ssl_keyfile` for a client certificate); `redis+socket:///path` for a unix socket.",
    )
    public_url: str = Field(
        default="http://localhost:8000",
        description="URL of the portal; with a host name, since browsers allow no passkeys on an IP address.",
    )
    events_url: str = Field(
        default="",
        description="URL of live events for browsers, where it is not `PUBLIC_URL`, on which they are by default.",
    )
    events_upstream: str = Field(
        default="",
        pattern=r"^([^:/\s]+|\[[0-9a-f:.]+\]):\d{1,5}$|^$",
        description="Address of the events process, such as `events:8001`, to which the web processes pass on live"
        " connections (events, logs, terminals). Empty: a proxy in front routes these.",
    )
    allowed_hosts: tuple[str, ...] = Field(
        default=("127.0.0.1", "localhost", "[::1]"), description="Host names that requests may use."
    )
    trusted_proxy_count: int = Field(
        default=0,
        ge=0,
        description="Number of proxies in front that set X-Forwarded-For; 0: the client is the connection's peer.",
    )
    token_requests_per_minute: int = Field(
        default=6000,
        ge=0,
        description="Most requests of one token, and of one user's sessions, per minute, at all web processes together;"
        " more get 429. 0: no limit.",
    )
    tenant_requests_per_minute: int = Field(
        default=20_000, ge=0, description="Most requests of one tenant per minute; 0: no limit."
    )
    address_requests_per_minute: int = Field(
        default=20_000,
        ge=0,
        description="Most requests from one network address (IPv6: /64 network) per minute; 0: no limit. Behind proxies"
        " set `TRUSTED_PROXY_COUNT`: otherwise all clients share the address of the proxy.",
    )
    sign_in_attempts_per_minute: int = Field(
        default=60,
        ge=0,
        description="Most forms for sign-in, sign-up, reset of a password and invitations that one network address may"
        " send per minute; 0: no limit.",
    )
    invitations_per_hour: int = Field(
        default=200, ge=0, description="Most invitations that one tenant may send per hour; 0: no limit."
    )
    coupon_attempts_per_hour: int = Field(
        default=30, ge=0, description="Most discount codes that one tenant may try per hour; 0: no limit."
    )
    event_streams_per_tenant: int = Field(
        default=100,
        ge=0,
        description="Most live streams of events and logs that one tenant may have open at all events processes"
        " together; 0: no limit but that of each process.",
    )
    data_dir: Path = Field(default=Path("build/data"), description="Folder for the product's files.")
    token_environment: str = Field(
        default="live",
        pattern="^[a-z]{1,12}$",
        description="Environment name inside every API token: gpb_live_…, gpb_test_…",
    )
    debug: bool = Field(default=False, description="Shows tracebacks to visitors; never use it in production.")
    secure_cookies: bool = Field(
        default=True, description="Send cookies over HTTPS only; `make run` turns it off for an http: address."
    )
    operators_require_mfa: bool = Field(
        default=True, description="Operators need TOTP or a passkey to open /ops/ pages."
    )
    metrics_token: SecretStr | None = Field(
        default=None, description="Bearer token with which other machines may read /metrics."
    )
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] = Field(
        default="INFO", description="Lowest level that is logged: DEBUG, INFO, WARNING, ERROR or CRITICAL."
    )

    provisioner: str = Field(
        default="broker.provisioners.simulated.SimulatedProvisioner", description="Class that provisions leases."
    )
    extra_gpu_models: str = Field(
        default="",
        description="Additional GPU models, profiles and placements as JSON, in the form that `manage.py read_gpus`"
        " prints on a node.",
    )
    simulated_speed: float = Field(
        default=1.0,
        gt=0,
        allow_inf_nan=False,
        description="Factor by which the simulated provisioner pulls and starts faster.",
    )
    simulated_partition_s: float = Field(
        default=0.4,
        ge=0,
        description="Median seconds to partition a simulated GPU for a slice; none if it already has that geometry.",
    )
    simulated_destroy_s: float = Field(
        default=0.2,
        ge=0,
        description="Median seconds more if a leftover slice must be destroyed first.",
    )
    lease_gates: tuple[str, ...] = Field(
        default=(
            "broker.services.quotas.gate",
            "billing.services.quotes.burn_rate_gate.gate",
            "billing.services.new_tenants.new_tenant_gate.gate",
            "billing.services.funds.holds.budget_holds.gate",
            "billing.services.approvals.approval_gate.gate",
        ),
        description="Checks that a lease must pass before it is queued, in this order.",
    )
    payment_gateway: str = Field(
        default="",
        pattern=r"^([A-Za-z_]\w*(\.[A-Za-z_]\w*)+)?$",
        description="Class that collects payments of invoices; empty: none are collected, and tenants pay by bank"
        " transfer. Invoices issued before it was set are never collected automatically."
        " `make run` uses `billing.gateways.simulated.SimulatedGateway`.",
    )
    stripe_secret_key: SecretStr = Field(
        default=SecretStr(""),
        description="Stripe's secret or restricted key, for the gateway"
        " `billing.gateways.stripe.gateway.StripeGateway`. A test key (`sk_test_`, `rk_test_`) moves no real money.",
    )
    stripe_webhook_secrets: SecretStr = Field(
        default=SecretStr(""),
        description="Signing secrets of Stripe's webhook to `/webhooks/stripe`, newest first, separated by commas;"
        " two while a secret is rotated. Empty: every event is refused.",
    )
    stripe_account: str = Field(
        default="",
        pattern=r"^(acct_\w+)?$",
        description="Stripe account whose events are accepted; empty: events that name no account.",
    )
    stripe_calls_per_s: int = Field(
        default=60,
        ge=1,
        le=1_000_000,
        description="Most requests per second to Stripe, from all processes together. Stripe allows 100 writes, and"
        " 25 with a test key.",
    )
    allow_shared_gpus: bool = Field(
        default=False,
        description="Whether tenants may share a GPU of isolation soft or none in clusters registered from now on;"
        " operators change it for each cluster on its page.",
    )

    default_tenant_quota_units: int = Field(
        default=14, ge=0, description="Compute slices that a new tenant may hold at once, until operators set a quota."
    )
    default_tenant_storage_gib: int = Field(
        default=200, ge=0, description="GiB of volumes that a new tenant may have, until operators set a quota."
    )
    sign_up: Literal["open", "invitation", "domains"] = Field(
        default="open",
        description="Who may sign up and create a tenant: `open` (anybody), `invitation` (whoever has an invitation;"
        " operators create tenants) or `domains` (addresses of `SIGN_UP_DOMAINS`, and whoever has an invitation).",
    )
    sign_up_domains: tuple[str, ...] = Field(
        default=(), description="E-mail domains of people who may sign up, such as `uni.example`; without subdomains."
    )
    release_new_tenants: bool = Field(
        default=False,
        description="Releases tenants as people create them. Otherwise a new tenant has the limits below, and pays in"
        " advance or saves a payment card, until an operator releases it.",
    )
    new_tenant_quota_units: int = Field(
        default=7, ge=0, description="Compute slices that a tenant may hold at once until it is released."
    )
    new_tenant_unit_hours: int = Field(
        default=336, ge=0, description="Unit-hours that a tenant may request in a month until it is released."
    )
    new_tenants_per_person: int = Field(
        default=1,
        ge=0,
        description="Tenants that a person may have that are not released. A person is a mailbox:"
        " `a+1@example.com` and `A@example.com` are one.",
    )
    new_tenants_per_network: int = Field(
        default=3,
        ge=0,
        description="Tenants that may be created from one network address (IPv4 address or IPv6 /64) and are not"
        " released; behind a proxy it needs `TRUSTED_PROXY_COUNT`.",
    )
    new_tenant_units_per_person: int = Field(
        default=7,
        ge=0,
        description="Compute slices that all tenants in which a person may launch hold together, of those that are not"
        " released.",
    )
    new_tenant_units_per_network: int = Field(
        default=14,
        ge=0,
        description="Compute slices that the tenants created from one network address hold together, of those that are"
        " not released.",
    )
    trial_credit: dict[str, str] = Field(
        default={},
        description='Trial credit of new tenants by currency, once per person: `{"EUR": "25.00"}`. Empty: none.',
    )
    trial_credit_days: int = Field(default=30, ge=1, le=3650, description="Days for which trial credit can be used.")
    approval_ttl_hours: int = Field(
        default=72, ge=1, le=24 * 90, description="Hours after which a launch that waits for approval expires."
    )
    max_lease_hours: int = Field(default=24 * 30, ge=1, description="Longest duration of a lease, in hours.")
    quote_ttl_s: int = Field(default=600, ge=1, le=30 * 86400, description="Time to live of a quote, in seconds.")
    spot_free_interruption_s: int = Field(
        default=120,
        ge=0,
        le=300,
        description="A spot lease preempted before it ran this many seconds is free of charge; applies to new prices.",
    )
    spot_notice_s: int = Field(
        default=300,
        ge=0,
        le=86400,
        description="Seconds between the notice to a spot lease and its end, unless its offering has its own.",
    )
    spot_min_runtime_s: int = Field(
        default=600,
        ge=0,
        le=30 * 86400,
        description="Seconds for which a spot lease is active before it may get notice, unless its offering has its"
        " own.",
    )
    provision_timeout_s: int = Field(
        default=600,
        ge=1,
        description="A lease that is not active this many seconds after placement ends as provision_timeout.",
    )
    node_unreachable_timeout_s: int = Field(
        default=300,
        ge=30,
        le=3600,
        description="Seconds for which a node may send no heartbeats before its active leases end as device_lost. A"
        " lease whose node is back must run again within twice this time. Nothing is charged meanwhile. Kubernetes"
        " evicts pods about 340 s after the last heartbeat.",
    )
    lease_end_notices_s: tuple[PositiveInt, ...] = Field(
        default=(3600, 900),
        description="How many seconds before a lease ends its requester is notified. Empty: never.",
    )
    log_max_bytes: int = Field(
        default=4 * 1024 * 1024,
        ge=64 * 1024,
        le=256 * 1024 * 1024,
        description="Bytes of output that are kept of each lease; older lines are deleted.",
    )
    log_retention_days: int = Field(
        default=30, ge=1, le=3650, description="Days for which the log of a lease is kept after its end."
    )
    telemetry_sample_days: int = Field(
        default=7, ge=1, le=90, description="Days for which samples of GPUs (one per ten seconds) are kept."
    )
    telemetry_minute_days: int = Field(
        default=60, ge=1, le=400, description="Days for which the minutes that samples are rolled up to are kept."
    )
    telemetry_hour_days: int = Field(
        default=1095, ge=31, le=3650, description="Days for which the hours that minutes are rolled up to are kept."
    )
    relocation_notice_s: int = Field(
        default=900,
        ge=0,
        description="Seconds between the notice to a tenant and the relocation of a lease that allows it.",
    )
    currency: str = Field(default="EUR", description="Currency of new tenants, an ISO 4217 code.")
    supplier_name: str = Field(
        default="",
        description="Legal name of the supplier on invoices; empty: invoices name no supplier and carry no tax.",
    )
    supplier_street: str = Field(default="", description="Street and number of the supplier.")
    supplier_address_line_2: str = Field(default="", description="Second line of the supplier's address.")
    supplier_postcode: str = Field(default="", description="Postcode of the supplier.")
    supplier_city: str = Field(default="", description="City of the supplier.")
    supplier_country: str = Field(
        default="", description="Country of the supplier, two letters such as DE; decides how tenants are taxed."
    )
    supplier_vat_id: str = Field(default="", description="VAT number of the supplier.")
    supplier_email: str = Field(default="", description="E-mail address for questions about invoices.")
    supplier_phone: str = Field(
        default="", description="Phone number for questions about invoices; XRechnung requires one."
    )
    supplier_bank_name: str = Field(default="", description="Bank to which tenants pay by transfer.")
    supplier_iban: str = Field(
        default="", description="IBAN to which tenants pay by transfer, on invoices; empty: invoices name no account."
    )
    supplier_bic: str = Field(default="", description="BIC of that bank, for payers outside the SEPA area.")
    supplier_account_holder: str = Field(
        default="", description="Holder of that account, if it is not the supplier's name."
    )
    payment_term_days: int = Field(default=14, ge=0, le=365, description="Days until an invoice is due.")
    default_payment_terms: str = Field(
        default="invoice",
        pattern="^(invoice|showback)$",
        description="Payment terms of tenants without their own: `invoice`, or `showback` for monthly reports without"
        " payments, dunning and payment cards.",
    )
    invoice_review_hours: int = Field(
        default=0,
        ge=0,
        le=24 * 60,
        description="Hours between the end of a month and its invoice, in which operators review the draft; they can"
        " approve it earlier or hold it longer. 0: no review.",
    )
    month_close_unobserved_hours: int = Field(
        default=72,
        ge=0,
        le=24 * 60,
        description="Hours after which a month closes without leases whose node has not reported since its end; what"
        " they used is charged with a later invoice. 0: it waits for them.",
    )
    zero_invoices: bool = Field(
        default=True, description="Issue invoices of zero; false: a month that comes to zero has no invoice."
    )
    dunning_steps: tuple[str, ...] = Field(
        default=("3:remind", "10:remind", "17:suspend", "30:end"),
        description="Steps of dunning, as days after the due date and action: `remind` sends an e-mail, `suspend`"
        " allows no new leases, `end` ends running ones. Empty: none.",
    )
    dispute_window_days: int = Field(
        default=14,
        ge=0,
        le=365,
        description="Days after an invoice became final in which its lines can be disputed, counted in the tenant's"
        " time zone. 0: never.",
    )
    correction_approval_threshold: int = Field(
        default=500,
        ge=0,
        description="A correction of charges needs a second approver from this amount on, in units of its currency.",
    )
    invoice_font_dir: str = Field(
        default="",
        description="Folder of fonts (TTF, OTF) for names on invoices in scripts other than Latin, Greek, Cyrillic,"
        " Arabic and Hebrew.",
    )

    oidc_name: str = Field(default="", description="Name on the button for single sign-on, for example the company's.")
    oidc_client_id: str = Field(default="", description="OpenID Connect client id; empty: no single sign-on.")
    oidc_client_secret: SecretStr = Field(default=SecretStr(""), description="OpenID Connect client secret.")
    oidc_server_url: str = Field(
        default="",
        description="URL of the OpenID Connect issuer. A person whose address it does not report as verified "
        "(`email_verified`) confirms it by e-mail, which needs `MAIL_URL`.",
    )
    mail_url: str = Field(
        default="",
        description="Mail server: `smtp://user:password@host:587` (by STARTTLS), `smtps://user:password@host:465` (by"
        " TLS), or `smtp://host:25` for a relay without a login (plain; `?starttls=yes` or `no` chooses). Empty: no"
        " e-mail is sent.",
    )
    mail_from: str = Field(
        default="",
        description="Sender of e-mails, such as `gpubroker <no-reply@gpus.example.com>`; required with `MAIL_URL`.",
    )
    local_mail: bool = Field(
        default=False,
        description="Shows e-mails on the page `/local-mail/` to browsers on this machine instead of sending them; for"
        " development only, and refused with `MAIL_URL` or a `PUBLIC_URL` not on localhost. `make run` turns it on.",
    )

    @field_validator("database_url", "owner_database_url")
    @classmethod
    def _check_database_url(cls, url: SecretStr | None) -> SecretStr | None:
        if url:
            parse_database_url(url.get_secret_value())
        return url

    @field_validator("broker_url")
    @classmethod
    def _check_broker_url(cls, url: str) -> str:
        parse_broker_url(url)
        return url

    @field_validator("mail_url")
    @classmethod
    def _check_mail_url(cls, url: str) -> str:
        if url:
            parse_mail_url(url)
        return url

    @field_validator("log_level", mode="before")
    @classmethod
    def _read_log_level(cls, level: str) -> str:
        return level.upper()

    @field_validator("public_url", "events_url")
    @classmethod
    def _check_origin(cls, url: str) -> str:
        """Return the URL without a slash at its end, as links are made of it."""
        parts = urlsplit(url)
        more = parts.path.strip("/") or parts.query or parts.fragment or parts.username
        if url and (parts.scheme not in ("http", "https") or not parts.hostname or more):
            raise ValueError("Write it as https://gpus.example.com, without a path.")
        return url.rstrip("/")

    @field_validator("public_url")
    @classmethod
    def _check_public_url(cls, url: str) -> str:
        if not url:
            raise ValueError("Write it as https://gpus.example.com.")
        return url

    @field_validator("credential_encryption_keys")
    @classmethod
    def _check_keys(cls, keys: SecretStr) -> SecretStr:
        for key in filter(None, keys.get_secret_value().split(",")):
            try:
                Fernet(key)
            except ValueError:
                raise ValueError("One of the keys is not a Fernet key.") from None  # without repeating it
        return keys

    @field_validator("currency")
    @classmethod
    def _check_currency(cls, currency: str) -> str:
        if currency not in EXPONENTS:
            raise ValueError("Write it as an ISO 4217 code, such as EUR.")
        return currency

    @field_validator("supplier_country")
    @classmethod
    def _check_country(cls, country: str) -> str:
        if country and country not in COUNTRY_NAMES:
            raise ValueError("Write it as two letters, such as DE.")
        return country

    @field_validator("sign_up_domains")
    @classmethod
    def _check_domains(cls, domains: tuple[str, ...]) -> tuple[str, ...]:
        for domain in domains:
            if not re.fullmatch(r"[^@*\s/:]+", domain):
                raise ValueError(f"{domain!r} is not a domain: write uni.example, without @ and *.")
        return domains

    @field_validator("trial_credit")
    @classmethod
    def _check_trial_credit(cls, credits: dict[str, str]) -> dict[str, str]:
        for currency, amount in credits.items():
            parse_amount(amount, currency)
        return credits

    @field_validator("mail_from")
    @classmethod
    def _check_mail_from(cls, sender: str) -> str:
        name, address = parseaddr(sender)
        if sender and not (re.fullmatch(r"[^@\s]+@[^@\s]+", address) and "\n" not in name):
            raise ValueError("Write it as no-reply@gpus.example.com or gpubroker <no-reply@gpus.example.com>.")
        return sender

    @model_validator(mode="after")
    def _check_combinations(self) -> Self:
        if self.mail_url and not self.mail_from:
            raise ValueError("GPUBROKER_MAIL_FROM is missing: GPUBROKER_MAIL_URL needs the sender of e-mails.")
        if bool(self.oidc_client_id) != bool(self.oidc_server_url):
            raise ValueError("Single sign-on needs both GPUBROKER_OIDC_CLIENT_ID and GPUBROKER_OIDC_SERVER_URL.")
        if self.sign_up == "domains" and not self.sign_up_domains:
            raise ValueError("GPUBROKER_SIGN_UP_DOMAINS is missing: GPUBROKER_SIGN_UP=domains needs it.")
        if self.local_mail and (self.mail_url or urlsplit(self.public_url).hostname not in LOCAL_HOSTS):
            raise ValueError(
                "GPUBROKER_LOCAL_MAIL is for development only: with GPUBROKER_PUBLIC_URL on localhost and without"
                " GPUBROKER_MAIL_URL."
            )
        return self


def load_settings() -> EnvironmentSettings:
    """Return the settings; ValueError names what is missing, wrong or unknown."""
    folder = secrets_directory()
    files = [file.name for file in folder.iterdir()] if folder else []
    check_setting_names([*os.environ, *files], EnvironmentSettings.model_fields)
    try:
        return EnvironmentSettings()  # type: ignore[call-arg]  # pydantic-settings fills it from the environment
    except SettingsError as error:  # it names the field, not the variable, and not what is expected
        name = re.search(r'field "(\w+)"', str(error))
        if name is None:
            raise
        raise ValueError(
            f'{PREFIX}{name[1].upper()} must be JSON: lists as ["a", "b"], amounts as {{"EUR": "25.00"}}.'
        ) from None


env = load_settings()


def settings_markdown() -> str:
    """Return docs/reference/settings.md: every setting with its default and meaning."""
    rows = []
    for name, field in EnvironmentSettings.model_fields.items():
        default = "**none, must be set**" if field.is_required() else f"`{_default_text(field.default)}`"
        rows.append(f"| `GPUBROKER_{name.upper()}` | {default} | {field.description} |")
    return "\n".join(
        [
            "# Settings",
            "",
            "Read once at the start, from environment variables of these names or files of these names in"
            " `/run/secrets/gpubroker`. Lists are JSON.",
            "",
            "| variable | default | meaning |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )


def _default_text(default: object) -> str:
    if isinstance(default, SecretStr):
        return default.get_secret_value()
    if isinstance(default, tuple | dict):
        return json.dumps(default)
    return str(default)
