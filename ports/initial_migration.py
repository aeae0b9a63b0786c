"""Create all tables of an app in one step."""

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations import Migration
from django.db.migrations.state import ProjectState


class InitialMigration(Migration):
    """Create tables and render the models once, where Django renders all again after each table."""

    initial = True

    def apply(
        self, project_state: ProjectState, schema_editor: BaseDatabaseSchemaEditor, collect_sql: bool = False
    ) -> ProjectState:
        """Add all models to the state, then create their tables in the given order."""
        before = project_state.clone()
        project_state.__dict__.pop("apps", None)  # a cached property: the first table renders it anew
        for operation in self.operations:
            operation.state_forwards(self.app_label, project_state)
        for operation in self.operations:
            operation.database_forwards(self.app_label, schema_editor, before, project_state)
        return project_state
