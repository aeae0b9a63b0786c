"""Row-level security on every tenant table, and an audit trail that only grows."""

from django.db import migrations

from tenants.models.walls import REFUSE_CHANGE, append_only, tenant_wall


class Migration(migrations.Migration):
    dependencies = [("tenants", "0001_initial")]
    operations = [
        REFUSE_CHANGE,
        tenant_wall("tenants_tenant", column="id", door=True),
        tenant_wall("tenants_project", door=True),
        tenant_wall("tenants_member", door=True),
        tenant_wall("tenants_serviceaccount", door=True),
        tenant_wall("tenants_invitation", door=True),
        tenant_wall("tenants_apitoken", door=True),
        tenant_wall("tenants_quota"),
        tenant_wall("tenants_storedanswer"),
        tenant_wall("tenants_auditevent"),
        append_only("tenants_auditevent"),
        # What operators do to the installation itself belongs to no tenant: anyone may add, only staff reads.
        migrations.RunSQL(
            "CREATE POLICY operators_add ON tenants_auditevent FOR INSERT WITH CHECK (tenant_id = '');",
            "DROP POLICY operators_add ON tenants_auditevent;",
        ),
    ]
