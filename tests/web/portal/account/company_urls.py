"""URLs of the product with a company's own sign-in configured."""

from config.urls import handler400 as handler400
from config.urls import handler403 as handler403
from config.urls import handler404 as handler404
from config.urls import handler500 as handler500
from config.urls import urlpatterns as always
from web.portal.account.urls import COMPANY

urlpatterns = [*always, *COMPANY]
