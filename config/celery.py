"""Celery application.

A message only wakes a worker: it carries an id and may be lost or delivered twice.
"""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("gpubroker")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
