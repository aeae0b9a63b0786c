"""URLs of the product with OpenID Connect sign-in configured."""

from config.urls import handler400 as handler400
from config.urls import handler403 as handler403
from config.urls import handler404 as handler404
from config.urls import handler500 as handler500
from config.urls import urlpatterns as always
from web.portal.account.urls import OIDC_URLS

urlpatterns = [*always, *OIDC_URLS]
