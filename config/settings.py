"""Django's settings, wired from `config.operator`. Nothing here is read from the environment."""

from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from billing.domain.ledger import AccountType
from broker.domain.states import EndReason, LeaseState
from config.logs import LOGGING as LOGGING
from config.operator import operator

BASE_DIR = Path(__file__).resolve().parent.parent


def database(url: str) -> dict[str, Any]:
    """Turn postgresql://user:password@host:port/name?host=/socket into Django's form."""
    parts = urlsplit(url)
    query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
    return {
        "ENGINE": "ports.postgresql",
        "NAME": unquote(parts.path.lstrip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": query.get("host", parts.hostname or ""),
        "PORT": str(parts.port or query.get("port", "")),
        "CONN_MAX_AGE": None,
        "CONN_HEALTH_CHECKS": True,
        "DISABLE_SERVER_SIDE_CURSORS": True,
        # A door waits at most this long for a lock or a statement; then the caller gets a clear 503.
        "OPTIONS": {
            "options": "-c lock_timeout=5s -c statement_timeout=30s -c timezone=UTC -c jit=off",
            "prepare_threshold": 5,
            "server_side_binding": True,
        },
    }


SECRET_KEY = operator.secret_key.get_secret_value()
CREDENTIAL_KEYS = operator.credential_keys.get_secret_value()
DEBUG = operator.debug
ALLOWED_HOSTS = list(operator.allowed_hosts)
PUBLIC_URL, EVENTS_URL = operator.public_url, operator.events_url
TOKEN_ENVIRONMENT = operator.token_environment

DATABASES = {"default": database(operator.database_url.get_secret_value())}
if operator.owner_database_url:
    DATABASES["owner"] = database(operator.owner_database_url.get_secret_value())
    DATABASES["owner"]["OPTIONS"] = {"options": "-c lock_timeout=2s -c timezone=UTC"}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ, TIME_ZONE, USE_I18N, LANGUAGE_CODE = True, "UTC", False, "en"

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "django.contrib.humanize",
    "django_htmx",
    "django_cotton.apps.SimpleAppConfig",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "csp",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "ports",
    "tenants",
    "broker",
    "billing",
]
AUTH_USER_MODEL = "tenants.User"

MIDDLEWARE = [
    "config.metrics.Measure",
    "django.middleware.security.SecurityMiddleware",
    "config.requests.Compression",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "config.requests.RequestContext",
    "config.requests.OneName",
    "csp.middleware.CSPMiddleware",
    "config.requests.BodyLimit",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "tenants.portal.wall.TenantWall",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]
ROOT_URLCONF = "config.urls"
WSGI_APPLICATION = "config.wsgi.application"
ASGI_APPLICATION = "config.asgi.application"

_loaders: list[Any] = [
    "django_cotton.cotton_loader.Loader",
    "django.template.loaders.filesystem.Loader",
    "django.template.loaders.app_directories.Loader",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "OPTIONS": {
            "loaders": _loaders if DEBUG else [("django.template.loaders.cached.Loader", _loaders)],
            "builtins": ["django_cotton.templatetags.cotton", "config.templatetags.look"],
            "libraries": {"look": "config.templatetags.look"},
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "config.look.shell",
            ],
        },
    }
]
COTTON_DIR = "components"

STATIC_URL = "/static/"  # whitenoise serves what the finders find; nothing is collected
STATICFILES_DIRS = [BASE_DIR / "static"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
WHITENOISE_USE_FINDERS = True
WHITENOISE_MAX_AGE = 3600

PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 12},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
]
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "allauth.account.auth_backends.AuthenticationBackend",
]
LOGIN_URL, LOGIN_REDIRECT_URL, LOGOUT_REDIRECT_URL = "/sign-in/", "/", "/sign-in/"
SESSION_COOKIE_AGE = 12 * 3600
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = operator.secure_cookies
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_HTTPONLY = True
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL]
CSRF_FAILURE_VIEW = "config.problems.csrf_failure"
SECURE_SSL_REDIRECT = False  # the ingress ends TLS and redirects
SECURE_HSTS_SECONDS = 31_536_000 if operator.secure_cookies else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = operator.secure_cookies
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SILENCED_SYSTEM_CHECKS = ["security.W008"]  # see SECURE_SSL_REDIRECT
BODY_LIMIT_BYTES = DATA_UPLOAD_MAX_MEMORY_SIZE = 1_000_000

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "connect-src": ["'self'", EVENTS_URL],
        "img-src": ["'self'"],
        "object-src": ["'none'"],
        "base-uri": ["'none'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
    }
}

METRICS_TOKEN = operator.metrics_token.get_secret_value() if operator.metrics_token else ""
OPERATORS_NEED_MFA = operator.operators_need_mfa
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*"]
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_UNIQUE_EMAIL = True
# Only a letter tells whether an address was known: sign-up answers everybody alike (docs/decisions/0007).
ACCOUNT_EMAIL_VERIFICATION = "mandatory"
ACCOUNT_PREVENT_ENUMERATION = True
ACCOUNT_LOGIN_ON_EMAIL_CONFIRMATION = True  # in the browser that signed up
SOCIALACCOUNT_EMAIL_VERIFICATION = "mandatory"  # for what the company does not vouch for
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_LOGOUT_ON_GET = False
ACCOUNT_ADAPTER = "tenants.portal.accounts.Adapter"
# Behind a proxy everybody would share one address, and one guesser would lock everybody out.
ALLAUTH_TRUSTED_PROXY_COUNT = operator.proxies
ACCOUNT_RATE_LIMITS = {"login_failed": "10/m/ip,5/5m/key"}
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes", "webauthn"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = not operator.secure_cookies
MFA_TOTP_ISSUER = "gpubroker"
SOCIALACCOUNT_ADAPTER = "tenants.portal.company.CompanyAdapter"
SOCIALACCOUNT_PROVIDERS: dict[str, Any] = {}
if operator.oidc_client_id:
    # The form that begins the sign-in is answered with a redirect to the company's own server.
    _company = urlsplit(operator.oidc_server_url)
    CONTENT_SECURITY_POLICY["DIRECTIVES"]["form-action"].append(f"{_company.scheme}://{_company.netloc}")
    SOCIALACCOUNT_PROVIDERS["openid_connect"] = {
        "APPS": [
            {
                "provider_id": "company",
                "name": operator.oidc_name or "your company",
                "client_id": operator.oidc_client_id,
                "secret": operator.oidc_client_secret.get_secret_value(),
                "settings": {"server_url": operator.oidc_server_url},
            }
        ]
    }
MAIL_GOES_OUT = bool(operator.mail_url)
EMAIL_BACKEND = "django.core.mail.backends.console.EmailBackend"
if operator.mail_url:
    _mail = urlsplit(operator.mail_url)
    EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    EMAIL_HOST, EMAIL_PORT = _mail.hostname, _mail.port or 587
    EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = unquote(_mail.username or ""), unquote(_mail.password or "")
    EMAIL_USE_TLS, EMAIL_TIMEOUT = True, 10

CACHES = {"default": {"BACKEND": "django.core.cache.backends.db.DatabaseCache", "LOCATION": "cache"}}

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "tenants.api.authentication.TokenAuthentication",
        "tenants.api.authentication.PortalAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["tenants.api.permissions.InTenant"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["config.problems.StrictJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "tenants.api.schema.Described",
    "DEFAULT_PAGINATION_CLASS": "tenants.api.pages.CursorPages",
    "EXCEPTION_HANDLER": "config.problems.problem",
    "UNAUTHENTICATED_USER": None,
    "URL_FORMAT_OVERRIDE": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "gpubroker",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "DESCRIPTION": "Rent GPU slices by the second. Errors are problem+json and say what to do next.",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_NAME_OVERRIDES": {
        "LeaseState": [state.value for state in LeaseState],
        "EndReason": [reason.value for reason in EndReason],
        "QuotaKind": "tenants.models.quotas.QuotaKind.choices",
        "NodeState": "broker.models.inventory.NodeState",
        "OfferingState": "broker.models.offerings.OfferingState",
        "InvoiceStatus": "billing.models.invoices.InvoiceStatus",
        "LineKind": "billing.models.invoices.LineKind",
        "MonthKind": "billing.models.month_charges.MonthKind",
        "DisputeStatus": "billing.models.disputes.DisputeStatus",
        "PaymentStatus": "billing.models.moves.PaymentStatus",
        "TransferKind": "billing.models.ledger.TransferKind",
        "AccountType": [each.value for each in AccountType],
    },
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "config.openapi.every_answer_may_be_a_problem",
    ],
}

CELERY_BROKER_URL = operator.broker_url
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 60,  # above the longest task, else a task runs twice at once
    "unacked_restore_interval": 5,
    "unacked_restore_throttle": 1,
    "socket_timeout": 5,  # else a publish may wait for ever
}
CELERY_TASK_TIME_LIMIT = 45
CELERY_TASK_ACKS_LATE = CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_DB_REUSE_MAX = 10_000  # tasks on one connection; ports/doorbell.py has a broken one replaced
CELERY_TASK_IGNORE_RESULT, CELERY_RESULT_BACKEND = True, None  # what came of a task stands in its row
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TIMEZONE = "UTC"
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BEAT_SCHEDULER = "config.beat:Alive"
CELERY_BEAT_SCHEDULE = {
    "sweep": {"task": "broker.sweep", "schedule": 5.0, "options": {"expires": 5}},
    "knock": {"task": "broker.knock_all", "schedule": 15.0, "options": {"expires": 15}},
    "sweep-all": {"task": "broker.sweep_all", "schedule": 240.0, "options": {"expires": 240}},
    "rate": {"task": "billing.rate", "schedule": 30.0, "options": {"expires": 30}},
    "tidy": {"task": "tenants.tidy", "schedule": 3600.0, "options": {"expires": 3600}},
    "collect-due": {"task": "billing.collect_due", "schedule": 30.0, "options": {"expires": 30}},
    "reconcile-stripe": {"task": "billing.reconcile_stripe", "schedule": 600.0, "options": {"expires": 600}},
    "keep-ledger": {"task": "billing.keep_ledger", "schedule": 600.0, "options": {"expires": 600}},
    "watch-budgets": {"task": "billing.watch_budgets", "schedule": 60.0, "options": {"expires": 60}},
    "stop-budgets": {"task": "billing.stop_budgets", "schedule": 60.0, "options": {"expires": 60}},
    "deliver-due": {"task": "billing.deliver_due", "schedule": 30.0, "options": {"expires": 30}},
    "remind": {"task": "billing.remind", "schedule": 600.0, "options": {"expires": 600}},
    "close-due": {"task": "billing.close_due", "schedule": 600.0, "options": {"expires": 600}},
}

PROVISIONER = operator.provisioner
PROVISIONERS = {  # by Cluster.provisioner; each is made with the cluster's id
    "kubernetes": "broker.provisioners.kubernetes.provisioner.KubernetesProvisioner",
}
SIMULATED_SPEED = operator.simulated_speed
GPU_MODELS = operator.gpu_models
SIMULATED_CUT_S = operator.simulated_cut_s
SIMULATED_DESTROY_S = operator.simulated_destroy_s
LEASE_GATES = operator.lease_gates
PAYMENT_GATEWAY = operator.payment_gateway
STRIPE_SECRET_KEY = operator.stripe_secret_key.get_secret_value()
STRIPE_WEBHOOK_SECRETS = operator.stripe_webhook_secrets.get_secret_value()
STRIPE_ACCOUNT, STRIPE_CALLS_PER_S = operator.stripe_account, operator.stripe_calls_per_s
SHARE_SOFT_CARDS = operator.share_soft_cards
NEW_TENANT_UNITS = operator.new_tenant_units
NEW_TENANT_STORAGE_GIB = operator.new_tenant_storage_gib
MAX_LEASE_HOURS = operator.max_lease_hours
QUOTE_LASTS_S = operator.quote_lasts_s
FREE_START_S = operator.free_start_s
PROVISION_TIMEOUT_S = operator.provision_timeout_s
MOVE_NOTICE_S = operator.move_notice_s
CURRENCY = operator.currency
SUPPLIER = {
    "name": operator.supplier_name,
    "street": operator.supplier_street,
    "extra": operator.supplier_extra,
    "postcode": operator.supplier_postcode,
    "city": operator.supplier_city,
    "country": operator.supplier_country,
    "vat_id": operator.supplier_vat_id,
    "email": operator.supplier_email,
}
PAYMENT_TERM_DAYS = operator.payment_term_days
DUNNING = operator.dunning
DISPUTE_DAYS = operator.dispute_days
CORRECTION_LIMIT = operator.correction_limit
PAPER_FONTS = operator.paper_fonts
DATA_DIR = operator.data_dir
