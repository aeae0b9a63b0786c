-- Show and change a project's launch templates only in transactions of their tenant. Staff and the system role may read
-- them: none contains a credential.

ALTER TABLE broker_launchtemplate ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY;
CREATE POLICY tenant_wall ON broker_launchtemplate
 USING (tenant_id = (SELECT nullif(current_setting('app.tenant', true), '')))
 WITH CHECK (tenant_id = (SELECT nullif(current_setting('app.tenant', true), '')));
CREATE POLICY readers ON broker_launchtemplate FOR SELECT TO gpubroker_staff, gpubroker_system USING (true);
