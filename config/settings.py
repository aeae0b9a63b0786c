"""Django's settings, wired from `config.env`. Nothing here is read from the environment."""

from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from billing.domain.ledger import AccountType
from broker.domain.lifecycle.states import EndReason, LeaseState
from broker.domain.logs.log_lines import LineSource
from config import queues
from config.broker_url import parse_broker_url
from config.database_url import django_database
from config.env import env
from config.json_logs import LOGGING as LOGGING
from config.mail_url import parse_mail_url

BASE_DIR = Path(__file__).resolve().parent.parent

SECRET_KEY = env.secret_key.get_secret_value()
CREDENTIAL_ENCRYPTION_KEYS = env.credential_encryption_keys.get_secret_value()
DEBUG = env.debug
ALLOWED_HOSTS = list(env.allowed_hosts)
PUBLIC_URL, EVENTS_URL = env.public_url, env.events_url or env.public_url
EVENTS_UPSTREAM = env.events_upstream
TERMINALS_URL = EVENTS_URL.replace("http", "ws", 1)  # of the same process, over WebSocket
TOKEN_ENVIRONMENT = env.token_environment

DATABASES = {
    "default": django_database(
        env.database_url.get_secret_value(),
        # A request waits at most this long for a lock or a statement; then it gets a 503.
        session="-c lock_timeout=5s -c statement_timeout=30s -c timezone=UTC -c jit=off",
        prepare_threshold=5,
        server_side_binding=True,
    )
}
if env.owner_database_url:
    DATABASES["owner"] = django_database(
        env.owner_database_url.get_secret_value(), session="-c lock_timeout=2s -c timezone=UTC"
    )
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ, TIME_ZONE = True, "UTC"
# No LocaleMiddleware: pages are in English until a German catalogue ships (docs/decisions/0042).
USE_I18N, LANGUAGE_CODE, LANGUAGES = True, "en", [("en", "English"), ("de", "German")]

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
    "web",
]
AUTH_USER_MODEL = "tenants.User"

MIDDLEWARE = [
    "config.metrics.RequestMetricsMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "web.http.middleware.CompressionMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "web.http.middleware.RequestIdMiddleware",
    "web.http.middleware.OptionsMiddleware",
    "web.http.middleware.CanonicalHostMiddleware",
    "csp.middleware.CSPMiddleware",
    "web.http.rate_limits.RateLimitMiddleware",
    "web.http.middleware.BodyLimitMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "web.http.middleware.TenantTransactionMiddleware",
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
    "web.ui.template_loader.Loader",
    "django.template.loaders.filesystem.Loader",
    "django.template.loaders.app_directories.Loader",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "OPTIONS": {
            "loaders": _loaders if DEBUG else [("django.template.loaders.cached.Loader", _loaders)],
            "builtins": [
                "django_cotton.templatetags.cotton",
                "django.templatetags.i18n",
                "web.templatetags.portal_tags",
            ],
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "web.portal.layout.navigation.layout_context",
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
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
]
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "allauth.account.auth_backends.AuthenticationBackend",
]
LOGIN_URL, LOGIN_REDIRECT_URL, LOGOUT_REDIRECT_URL = "/sign-in/", "/", "/sign-in/"
SESSION_ENGINE = "tenants.services.sessions"
SESSION_COOKIE_AGE = 12 * 3600
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = env.secure_cookies
SESSION_COOKIE_SAMESITE = CSRF_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_HTTPONLY = True
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL]
CSRF_FAILURE_VIEW = "web.http.errors.csrf_failure"
SECURE_SSL_REDIRECT = False  # the ingress ends TLS and redirects
SECURE_HSTS_SECONDS = 31_536_000 if env.secure_cookies else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = env.secure_cookies
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"
SILENCED_SYSTEM_CHECKS = ["security.W008"]  # see SECURE_SSL_REDIRECT
BODY_LIMIT_BYTES = DATA_UPLOAD_MAX_MEMORY_SIZE = 1_000_000

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": ["'self'"],
        "connect-src": ["'self'", EVENTS_URL, TERMINALS_URL],
        "img-src": ["'self'"],
        "object-src": ["'none'"],
        "base-uri": ["'none'"],
        "form-action": ["'self'"],
        "frame-ancestors": ["'none'"],
    }
}

RATE_LIMITS = {  # name: requests, seconds
    "address": (env.address_requests_per_minute, 60),
    "token": (env.token_requests_per_minute, 60),
    "user": (env.token_requests_per_minute, 60),
    "tenant": (env.tenant_requests_per_minute, 60),
    "sign-in": (env.sign_in_attempts_per_minute, 60),
    "invitations": (env.invitations_per_hour, 3600),
    "coupons": (env.coupon_attempts_per_hour, 3600),
}
EVENT_STREAMS_PER_TENANT = env.event_streams_per_tenant
METRICS_TOKEN = env.metrics_token.get_secret_value() if env.metrics_token else ""
OPERATORS_REQUIRE_MFA = env.operators_require_mfa
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*"]
ACCOUNT_FORMS = {"signup": "web.portal.account.sign_up.SignUpForm"}
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_UNIQUE_EMAIL = True
# Sign-up responds the same for known and new addresses; only the e-mail differs (docs/decisions/0007).
ACCOUNT_EMAIL_VERIFICATION = "mandatory"
ACCOUNT_PREVENT_ENUMERATION = True
ACCOUNT_LOGIN_ON_EMAIL_CONFIRMATION = True  # in the browser that signed up
SOCIALACCOUNT_EMAIL_VERIFICATION = "mandatory"  # for addresses that the company has not verified
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_LOGOUT_ON_GET = False
ACCOUNT_ADAPTER = "web.portal.account.allauth_overrides.AccountAdapter"
# Else all clients behind a proxy share one address and one rate limit.
ALLAUTH_TRUSTED_PROXY_COUNT = env.trusted_proxy_count
ACCOUNT_RATE_LIMITS = {"login_failed": "10/m/ip,5/5m/key"}
MFA_ADAPTER = "web.portal.account.mfa_adapter.MfaAdapter"
MFA_SUPPORTED_TYPES = ["totp", "recovery_codes", "webauthn"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = not env.secure_cookies
MFA_TOTP_ISSUER = "gpubroker"
SOCIALACCOUNT_ADAPTER = "web.portal.account.oidc_sign_in.CompanyAdapter"
SOCIALACCOUNT_PROVIDERS: dict[str, Any] = {}
if env.oidc_client_id:
    # The sign-in form redirects to the company's own server.
    _company = urlsplit(env.oidc_server_url)
    CONTENT_SECURITY_POLICY["DIRECTIVES"]["form-action"].append(f"{_company.scheme}://{_company.netloc}")
    SOCIALACCOUNT_PROVIDERS["openid_connect"] = {
        "APPS": [
            {
                "provider_id": "company",
                "name": env.oidc_name or "your company",
                "client_id": env.oidc_client_id,
                "secret": env.oidc_client_secret.get_secret_value(),
                "settings": {"server_url": env.oidc_server_url},
            }
        ]
    }
MAIL_IS_CONFIGURED = bool(env.mail_url)
LOCAL_MAIL = env.local_mail
STYLE_GUIDE = DEBUG or LOCAL_MAIL  # the page of all components, in development only
EMAIL_BACKEND = "ports.local_mail.LocalMailBackend" if LOCAL_MAIL else "ports.local_mail.UnsentBackend"
DEFAULT_FROM_EMAIL = SERVER_EMAIL = env.mail_from or "gpubroker@localhost"
if env.mail_url:
    _mail = parse_mail_url(env.mail_url)
    EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    EMAIL_HOST, EMAIL_PORT = _mail.host, _mail.port
    EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = _mail.user, _mail.password
    EMAIL_USE_TLS, EMAIL_USE_SSL, EMAIL_TIMEOUT = _mail.starttls, _mail.tls, 10

CACHES = {"default": {"BACKEND": "django.core.cache.backends.db.DatabaseCache", "LOCATION": "cache"}}

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "web.http.authentication.TokenAuthentication",
        "web.http.authentication.PortalAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["web.http.authentication.TenantPermission"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["web.api.serializer_fields.StrictJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "web.http.schema.ApiSchema",
    "DEFAULT_PAGINATION_CLASS": "web.http.pagination.CursorPagePagination",
    "EXCEPTION_HANDLER": "web.http.errors.exception_handler",
    "UNAUTHENTICATED_USER": None,
    "URL_FORMAT_OVERRIDE": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "gpubroker",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "DESCRIPTION": (
        "Rent GPU slices by the second. Errors are problem+json and tell what to do next; /problems/ explains every"
        " type. Times without a time zone, in queries and bodies, are read in the tenant's time zone, and in operators'"
        " operations in UTC. Query parameters that an operation does not name are refused. Amounts have six decimals,"
        " prices per hour nine. Requests are limited by token, tenant and address: `RateLimit` tells what remains."
    ),
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    "COMPONENT_SPLIT_REQUEST": True,
    "ENUM_NAME_OVERRIDES": {
        "LeaseState": [state.value for state in LeaseState],
        "EndReason": [reason.value for reason in EndReason],
        "LineSource": [source.value for source in LineSource],
        "ApprovalKind": "billing.models.approvals.ApprovalKind",
        "ApprovalState": "billing.models.approvals.ApprovalState",
        "GrantSource": "billing.models.grants.GrantSource",
        "SecretKind": "broker.models.secrets.SecretKind",
        "QuotaKind": "tenants.models.quotas.QuotaKind.choices",
        "NodeState": "broker.models.inventory.NodeState",
        "GpuHealth": "broker.models.inventory.GpuHealth",
        "TaxCategory": "billing.models.taxes.TaxCategory",
        "OfferingState": "broker.models.offerings.OfferingState",
        "InvoiceStatus": "billing.models.invoices.InvoiceStatus",
        "LineKind": "billing.models.invoices.LineKind",
        "MonthKind": "billing.models.adjustments.AdjustmentKind",
        "DisputeStatus": "billing.models.disputes.DisputeStatus",
        "PaymentStatus": "billing.models.payments.PaymentStatus",
        "TransferKind": "billing.models.ledger.TransferKind",
        "AccountType": [each.value for each in AccountType],
    },
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "web.http.openapi.add_problem_responses",
    ],
}

_broker = parse_broker_url(env.broker_url)
CELERY_BROKER_URL, CELERY_BROKER_USE_SSL = _broker.url, _broker.tls
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": queues.VISIBILITY_TIMEOUT_S,
    "unacked_restore_interval": 5,
    "unacked_restore_throttle": 1,
    "socket_timeout": 5,  # else a publish may wait for ever
}
CELERY_TASK_ROUTES = (queues.route_task,)
CELERY_TASK_ANNOTATIONS = queues.time_limits()
URGENT_TASKS = sorted(queues.LIFECYCLE.tasks)  # the relay sends them before others
CELERY_TASK_ACKS_LATE = CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_DB_REUSE_MAX = 10_000  # tasks on one connection; the outbox replaces a broken one
CELERY_TASK_IGNORE_RESULT, CELERY_RESULT_BACKEND = True, None  # a task's outcome is in its row
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TIMEZONE = "UTC"
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BEAT_SCHEDULER = "config.beat:HeartbeatScheduler"
CELERY_BEAT_SCHEDULE = {
    "sweep": {"task": "broker.sweep", "schedule": 5.0, "options": {"expires": 5}},
    "probe-clusters": {"task": "broker.probe_clusters", "schedule": 15.0, "options": {"expires": 15}},
    "check-lease-ends": {"task": "broker.check_lease_ends", "schedule": 15.0, "options": {"expires": 15}},
    "run-schedules": {"task": "broker.run_schedules", "schedule": 15.0, "options": {"expires": 15}},
    "sweep-all": {"task": "broker.sweep_all", "schedule": 240.0, "options": {"expires": 240}},
    "delete-old-logs": {"task": "broker.delete_old_logs", "schedule": 3600.0, "options": {"expires": 3600}},
    "sample-simulated-gpus": {"task": "broker.sample_simulated_gpus", "schedule": 10.0, "options": {"expires": 10}},
    "roll-up-samples": {"task": "broker.roll_up_samples", "schedule": 60.0, "options": {"expires": 60}},
    "keep-telemetry-partitions": {
        "task": "broker.keep_telemetry_partitions",
        "schedule": 3600.0,
        "options": {"expires": 3600},
    },
    "rate": {"task": "billing.rate", "schedule": 30.0, "options": {"expires": 30}},
    "delete-expired-rows": {"task": "tenants.delete_expired_rows", "schedule": 3600.0, "options": {"expires": 3600}},
    "collect-due": {"task": "billing.collect_due", "schedule": 30.0, "options": {"expires": 30}},
    "reconcile-stripe": {"task": "billing.reconcile_stripe", "schedule": 600.0, "options": {"expires": 600}},
    "post-and-seal-ledger": {"task": "billing.post_and_seal_ledger", "schedule": 600.0, "options": {"expires": 600}},
    "check-budgets": {"task": "billing.check_budgets", "schedule": 60.0, "options": {"expires": 60}},
    "stop-budgets": {"task": "billing.stop_budgets", "schedule": 60.0, "options": {"expires": 60}},
    "queue-lease-emails": {"task": "billing.queue_lease_emails", "schedule": 15.0, "options": {"expires": 15}},
    "send-due-emails": {"task": "billing.send_due_emails", "schedule": 30.0, "options": {"expires": 30}},
    "expire-approvals": {"task": "billing.expire_approvals", "schedule": 60.0, "options": {"expires": 60}},
    "run-dunning": {"task": "billing.run_dunning", "schedule": 600.0, "options": {"expires": 600}},
    "check-integrity": {"task": "billing.check_integrity", "schedule": 60.0, "options": {"expires": 60}},
    "close-due": {"task": "billing.close_due", "schedule": 600.0, "options": {"expires": 600}},
}

PROVISIONER = env.provisioner
PROVISIONERS = {  # by Cluster.provisioner; each is made with the cluster's id
    "kubernetes": "broker.provisioners.kubernetes.provisioner.KubernetesProvisioner"
}
SIMULATED_SPEED = env.simulated_speed
EXTRA_GPU_MODELS = env.extra_gpu_models
SIMULATED_PARTITION_S = env.simulated_partition_s
SIMULATED_DESTROY_S = env.simulated_destroy_s
SIMULATED_PROGRESS_S = 0.7  # how often a simulated pod that starts is observed
LEASE_GATES = env.lease_gates
PAYMENT_GATEWAY = env.payment_gateway
STRIPE_SECRET_KEY = env.stripe_secret_key.get_secret_value()
STRIPE_WEBHOOK_SECRETS = env.stripe_webhook_secrets.get_secret_value()
STRIPE_ACCOUNT, STRIPE_CALLS_PER_S = env.stripe_account, env.stripe_calls_per_s
ALLOW_SHARED_GPUS = env.allow_shared_gpus
DEFAULT_TENANT_QUOTA_UNITS = env.default_tenant_quota_units
DEFAULT_TENANT_STORAGE_GIB = env.default_tenant_storage_gib
SIGN_UP, SIGN_UP_DOMAINS = env.sign_up, env.sign_up_domains
RELEASE_NEW_TENANTS = env.release_new_tenants
NEW_TENANT_QUOTA_UNITS, NEW_TENANT_UNIT_HOURS = env.new_tenant_quota_units, env.new_tenant_unit_hours
NEW_TENANTS_PER_PERSON, NEW_TENANTS_PER_NETWORK = env.new_tenants_per_person, env.new_tenants_per_network
NEW_TENANT_UNITS_PER_PERSON = env.new_tenant_units_per_person
NEW_TENANT_UNITS_PER_NETWORK = env.new_tenant_units_per_network
TRIAL_CREDIT, TRIAL_CREDIT_DAYS = env.trial_credit, env.trial_credit_days
APPROVAL_TTL_HOURS = env.approval_ttl_hours
APPROVAL_REQUESTER = "billing.services.approvals.approval_requests.request_scheduled_launch"  # for schedules
MAX_LEASE_HOURS = env.max_lease_hours
QUOTE_TTL_S = env.quote_ttl_s
SPOT_FREE_INTERRUPTION_S = env.spot_free_interruption_s
SPOT_NOTICE_S, SPOT_MIN_RUNTIME_S = env.spot_notice_s, env.spot_min_runtime_s
PROVISION_TIMEOUT_S = env.provision_timeout_s
NODE_UNREACHABLE_TIMEOUT_S = env.node_unreachable_timeout_s
LEASE_END_NOTICES_S = env.lease_end_notices_s
LOG_MAX_BYTES = env.log_max_bytes
LOG_RETENTION_DAYS = env.log_retention_days
# Of samples, minutes and hours.
TELEMETRY_RETENTION_DAYS = (env.telemetry_sample_days, env.telemetry_minute_days, env.telemetry_hour_days)
RELOCATION_NOTICE_S = env.relocation_notice_s
CURRENCY = env.currency
SUPPLIER = {
    "name": env.supplier_name,
    "street": env.supplier_street,
    "address_line_2": env.supplier_address_line_2,
    "postcode": env.supplier_postcode,
    "city": env.supplier_city,
    "country": env.supplier_country,
    "vat_id": env.supplier_vat_id,
    "email": env.supplier_email,
    "phone": env.supplier_phone,
}
SUPPLIER_BANK = {
    "holder": env.supplier_account_holder or env.supplier_name,
    "iban": env.supplier_iban,
    "bic": env.supplier_bic,
    "bank": env.supplier_bank_name,
}
PAYMENT_TERM_DAYS = env.payment_term_days
DEFAULT_PAYMENT_TERMS = env.default_payment_terms
INVOICE_REVIEW_HOURS = env.invoice_review_hours
MONTH_CLOSE_UNOBSERVED_HOURS = env.month_close_unobserved_hours
ZERO_INVOICES = env.zero_invoices
DUNNING_STEPS = env.dunning_steps
DISPUTE_WINDOW_DAYS = env.dispute_window_days
CORRECTION_APPROVAL_THRESHOLD = env.correction_approval_threshold
INVOICE_FONT_DIR = env.invoice_font_dir
DATA_DIR = env.data_dir
