"""The Celery application. A message is a doorbell: it carries an id and may be lost or doubled."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("gpubroker")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
