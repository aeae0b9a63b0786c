"""Celery application.

A message only wakes a worker: it carries an id and may be lost or delivered twice.
"""

import os
from typing import Any

from celery import Celery

from ports import clock
from ports.task_queues import SENT_AT_HEADER

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")


class ProductCelery(Celery):  # type: ignore[misc]
    """Celery whose messages say when they were sent.

    The metrics read the age of a queue from it.
    """

    def send_task(self, name: str, *arguments: Any, **options: Any) -> Any:
        headers = {**(options.pop("headers", None) or {}), SENT_AT_HEADER: clock.milliseconds()}
        return super().send_task(name, *arguments, headers=headers, **options)


app = ProductCelery("gpubroker")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
