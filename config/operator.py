"""Every value an operator may change: read once, typed, by name. `docs/settings.md` is printed from here."""

import json
from pathlib import Path

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict


def secrets_folder() -> Path | None:
    """Return the folder whose files hold secrets, one file a value, or None when there is none."""
    folder = Path("/run/secrets/gpubroker")
    return folder if folder.is_dir() else None


class Operator(BaseSettings):
    """Values come from GPUBROKER_… variables, or from files of that name in the secrets folder."""

    model_config = SettingsConfigDict(
        env_prefix="GPUBROKER_", frozen=True, extra="ignore", secrets_dir=secrets_folder()
    )

    secret_key: SecretStr = Field(description="Signs sessions. No default: a missing value stops the start.")
    credential_keys: SecretStr = Field(
        default=SecretStr(""),
        description="Fernet keys, newest first, with commas between: seal clusters' credentials at rest.",
    )
    database_url: SecretStr = Field(
        description="The application's login: neither owner of the tables nor superuser."
    )
    owner_database_url: SecretStr | None = Field(
        default=None, description="The owner's login, for migrations only; leave it out of web and worker."
    )
    broker_url: str = Field(
        default="redis://127.0.0.1:6379/0", description="Valkey; redis+socket:///path for a unix socket."
    )
    public_url: str = Field(
        default="http://localhost:8000",
        description="Where people reach the portal; a name, since browsers give passkeys to no bare address.",
    )
    events_url: str = Field(
        default="http://localhost:8001", description="Where browsers reach the live event process."
    )
    allowed_hosts: tuple[str, ...] = Field(
        default=("127.0.0.1", "localhost", "[::1]"), description="Host names this installation answers to."
    )
    proxies: int = Field(
        default=0,
        ge=0,
        description="How many proxies before us write X-Forwarded-For; 0 takes the caller for the visitor.",
    )
    data_dir: Path = Field(default=Path("build/data"), description="Where the product may keep files.")
    token_environment: str = Field(
        default="live",
        pattern="^[a-z]{1,12}$",
        description="Stands in every API token: gpb_live_…, gpb_test_…",
    )
    debug: bool = Field(default=False, description="Never in production: shows tracebacks to visitors.")
    secure_cookies: bool = Field(
        default=True, description="Cookies only over HTTPS; `make run` on a plain address turns it off."
    )
    operators_need_mfa: bool = Field(
        default=True, description="Operators must have TOTP or a passkey before they see /ops/ pages."
    )
    metrics_token: SecretStr | None = Field(
        default=None, description="Opens /metrics to other machines, as a bearer token."
    )
    log_level: str = Field(default="INFO", description="DEBUG, INFO, WARNING or ERROR.")

    provisioner: str = Field(
        default="broker.provisioners.simulated.SimulatedProvisioner",
        description="The class that makes a lease real.",
    )
    gpu_models: str = Field(
        default="",
        description="JSON of GPU models, and of profiles and places of models, that are known beside ours, as"
        " `manage.py read_cards` prints it on a node.",
    )
    simulated_speed: float = Field(
        default=1.0, description="Divides the simulated provisioner's pull and start times."
    )
    simulated_cut_s: float = Field(
        default=0.4,
        ge=0,
        description="Median seconds in which a simulated card is cut for a slice; one that is still cut takes none.",
    )
    simulated_destroy_s: float = Field(
        default=0.2,
        ge=0,
        description="Median seconds that it takes longer where something left cut is destroyed first.",
    )
    lease_gates: tuple[str, ...] = Field(
        default=(
            "broker.services.quotas.gate",
            "billing.services.burn.gate",
            "billing.services.funds.holds.gate",
        ),
        description="What a lease must pass before it may queue, in this order.",
    )
    payment_gateway: str = Field(
        default="",
        pattern=r"^([A-Za-z_]\w*(\.[A-Za-z_]\w*)+)?$",
        description="The class that collects invoices; empty collects nothing, and people pay by transfer."
        " Invoices from before it was set are never collected unasked."
        " `make run` takes `billing.gateways.simulated.SimulatedGateway`.",
    )
    stripe_secret_key: SecretStr = Field(
        default=SecretStr(""),
        description="Stripe's secret or restricted key, for the gateway"
        " `billing.gateways.stripe.gateway.StripeGateway`. A test key (`sk_test_`, `rk_test_`) takes no real money.",
    )
    stripe_webhook_secrets: SecretStr = Field(
        default=SecretStr(""),
        description="Signing secrets of Stripe's webhook to `/webhooks/stripe`, newest first, with commas"
        " between: two while one takes the other's place. Empty refuses every event.",
    )
    stripe_account: str = Field(
        default="",
        pattern=r"^(acct_\w+)?$",
        description="The account whose events are taken; empty takes those that name none.",
    )
    stripe_calls_per_s: int = Field(
        default=60,
        ge=1,
        le=1_000_000,
        description="How often a second Stripe is called at most, by all processes together. Stripe takes 100 writes,"
        " and 25 with a test key.",
    )
    share_soft_cards: bool = Field(
        default=False,
        description="Whether two tenants may share a card of class soft or none in clusters that are added from now"
        " on; operators say it of each on the page of clusters.",
    )

    new_tenant_units: int = Field(
        default=14,
        ge=0,
        description="Compute slices a new tenant may hold at once, until operators say more.",
    )
    new_tenant_storage_gib: int = Field(
        default=200,
        ge=0,
        description="GiB of volumes a tenant may have, until operators say more.",
    )
    max_lease_hours: int = Field(default=24 * 30, description="The longest a lease may be asked for.")
    quote_lasts_s: int = Field(
        default=600,
        ge=1,
        le=30 * 86400,
        description="For how long after it was made the price of a quote can be had.",
    )
    free_start_s: int = Field(
        default=120,
        ge=0,
        le=300,
        description="Spot that is taken back for others before it ran so many seconds costs nothing; of new prices.",
    )
    provision_timeout_s: int = Field(
        default=600, description="A lease not active this long after placement ends as provision_timeout."
    )
    move_notice_s: int = Field(
        default=900,
        ge=0,
        description="How long tenants are told before a lease of theirs is moved that may be.",
    )
    currency: str = Field(default="EUR", description="The currency of new tenants, an ISO 4217 code.")
    supplier_name: str = Field(
        default="",
        description="Who sells, as invoices say it; empty: they name nobody, and tax is neither charged nor spoken of.",
    )
    supplier_street: str = Field(default="", description="Street and number of whoever sells.")
    supplier_extra: str = Field(default="", description="A second line of that address.")
    supplier_postcode: str = Field(default="", description="Its postcode.")
    supplier_city: str = Field(default="", description="Its city.")
    supplier_country: str = Field(
        default="", description="Its country, as two letters such as DE: decides how tenants are taxed."
    )
    supplier_vat_id: str = Field(default="", description="Its VAT number.")
    supplier_email: str = Field(default="", description="Where people ask about invoices.")
    payment_term_days: int = Field(
        default=14, ge=0, le=365, description="Within how many days an invoice should be paid."
    )
    dunning: tuple[str, ...] = Field(
        default=("3:remind", "10:remind", "17:suspend", "30:end"),
        description="What happens so many days after an invoice should have been paid: `remind` writes, `suspend` lets"
        " nothing new begin, `end` ends what runs. Empty: nothing.",
    )
    dispute_days: int = Field(
        default=14,
        ge=0,
        le=365,
        description="For how many days after an invoice became final its lines can be disputed, in days of its tenant's"
        " time zone. 0: not at all.",
    )
    correction_limit: int = Field(
        default=500,
        ge=0,
        description="From how many units of a currency on a correction of what was charged needs a second approver.",
    )
    paper_fonts: str = Field(
        default="",
        description="A folder of fonts (TTF, OTF) for names on invoices in scripts beyond Latin, Greek, Cyrillic,"
        " Arabic and Hebrew.",
    )

    oidc_name: str = Field(default="", description="The name on the button, for example the company's.")
    oidc_client_id: str = Field(default="", description="OpenID Connect client; empty turns it off.")
    oidc_client_secret: SecretStr = Field(default=SecretStr(""), description="Its secret.")
    oidc_server_url: str = Field(
        default="",
        description="The issuer's address. Who comes with an address that it does not call verified "
        "(`email_verified`) confirms it by a letter, which needs `MAIL_URL`.",
    )
    mail_url: str = Field(default="", description="smtp://user:password@host:port; empty writes to the log.")


operator = Operator()  # type: ignore[call-arg]  # pydantic-settings fills it from the environment


def as_markdown() -> str:
    """Write every setting with its default and meaning, for docs/settings.md."""
    rows = []
    for name, field in Operator.model_fields.items():
        default = "**none, must be set**" if field.is_required() else f"`{_plain(field.default)}`"
        rows.append(f"| `GPUBROKER_{name.upper()}` | {default} | {field.description} |")
    return "\n".join(
        [
            "# Settings",
            "",
            "Read once at the start, from variables of these names or from files so named in"
            " `/run/secrets/gpubroker`. Lists are JSON.",
            "",
            "| variable | default | meaning |",
            "|---|---|---|",
            *rows,
            "",
        ]
    )


def _plain(default: object) -> str:
    if isinstance(default, SecretStr):
        return default.get_secret_value()
    if isinstance(default, tuple):
        return json.dumps(default)
    return str(default)
