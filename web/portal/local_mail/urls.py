"""URLs of local e-mails; included for development only."""

from django.urls import path

from web.portal.local_mail import local_mail_pages

urlpatterns = [
    path("", local_mail_pages.show_local_emails, name="local-mail"),
    path("<str:email_id>/<int:number>", local_mail_pages.download_attachment, name="local-mail-attachment"),
]
