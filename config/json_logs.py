"""Logging as JSON lines with the ids of request and lease.

A request's id follows its outbox messages: from the X-Request-ID of the response to every later
step of its lease.
"""

import re
from typing import Any

import structlog

from config.env import env

# Paths of e-mailed links whose last part is a secret: who reads it may use the link.
SECRET_LINKS = re.compile(r"(/join/|/account/confirm-email/|/account/password/reset/key/)[^/\s\"']+")


def hide_secret_links(_logger: Any, _method: str, event: dict[str, Any]) -> dict[str, Any]:
    """Leave out the secrets of e-mailed links, wherever an entry has their address."""
    return {name: SECRET_LINKS.sub(r"\1…", value) if isinstance(value, str) else value for name, value in event.items()}


SHARED_PROCESSORS: list[Any] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_log_level,
    structlog.stdlib.add_logger_name,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.format_exc_info,
    hide_secret_links,
]
structlog.configure(
    processors=[*SHARED_PROCESSORS, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
    logger_factory=structlog.stdlib.LoggerFactory(),
    wrapper_class=structlog.stdlib.BoundLogger,
    cache_logger_on_first_use=True,
)

LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "json": {
            "()": structlog.stdlib.ProcessorFormatter,
            "foreign_pre_chain": SHARED_PROCESSORS,
            "processors": [
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(),
            ],
        }
    },
    "handlers": {"out": {"class": "logging.StreamHandler", "formatter": "json"}},
    "root": {"handlers": ["out"], "level": env.log_level},
    "loggers": {
        "django.request": {"level": "ERROR"},
        "celery": {"level": "WARNING"},
        "waitress.queue": {"level": "ERROR"},  # else it logs every request that waits for a thread
        "stripe": {"level": "WARNING"},  # else it logs every call
        # The outbox logs a task's exception, with its lease.
        "celery.app.trace": {"level": "CRITICAL"},
    },
}
