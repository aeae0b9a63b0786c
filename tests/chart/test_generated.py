"""Generated parts of the chart match the code."""

import json

import yaml

from broker.provisioners.kubernetes.render import rbac
from deploy import chart_files
from tests.broker.provisioners.kubernetes.restricted_standard import violations
from tests.chart.rendering import FULL, named, objects

MEND = "run: python -m deploy.chart_files"


def test_the_values_schema_matches_the_declared_settings() -> None:
    schema = json.loads(chart_files.SCHEMA.read_text())
    assert schema["properties"]["settings"]["properties"] == chart_files.settings(), MEND


def test_the_chart_contains_the_cluster_objects_generated_by_the_broker() -> None:
    assert {file.name: file.read_text() for file in chart_files.FILES.iterdir()} == chart_files.files(), MEND
    loaded = yaml.safe_load_all("---\n".join(chart_files.files().values()))
    everything = [item for item in loaded if isinstance(item, dict)]
    kinds = {item["kind"] for item in everything}
    assert kinds >= {
        "PriorityClass",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "CronJob",
    }
    namespaces = [item["metadata"]["name"] for item in everything if item.get("kind") == "Namespace"]
    assert namespaces == ["gpubroker-images"]  # not the release's own


def test_the_brokers_account_has_exactly_the_generated_rights() -> None:
    role = named(objects(FULL), "ClusterRole", "gpus:gpubroker-broker")
    assert yaml.safe_load(chart_files.files()["rules.yaml"]) == role["rules"]
    granted = {
        (group, kinds, verb)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for kinds in rule["resources"]
        for verb in rule["verbs"]
    }
    assert {(use.group, use.kinds, verb) for use in rbac.BROKER_RULES for verb in use.verbs} <= granted
    assert "*" not in json.dumps(role["rules"])


def test_every_role_binding_refers_to_an_existing_account() -> None:
    found = objects(FULL)
    accounts = {item["metadata"]["name"] for item in found if item["kind"] == "ServiceAccount"}
    bound = {who["name"] for item in found if item["kind"] == "ClusterRoleBinding" for who in item["subjects"]}
    assert bound <= accounts
    assert "gpubroker-broker" in bound


def test_the_reaper_runs_the_image_of_the_release_in_its_namespace() -> None:
    job = named(objects(FULL), "CronJob", "gpubroker-reaper")
    assert job["metadata"]["namespace"] == "gpus"
    pod = job["spec"]["jobTemplate"]["spec"]["template"]
    assert pod["spec"]["containers"][0]["image"] == "gpubroker@sha256:" + "0" * 64
    assert violations(pod) == []


def test_the_pod_policy_allows_hamis_scheduler_only_with_the_hami_driver() -> None:
    def policy(driver: str) -> str:
        found = objects({**FULL, "cluster": {"leases": True, "driver": driver}})
        return json.dumps(named(found, "ValidatingAdmissionPolicy", "gpub-pods"))

    assert "hami-scheduler" in policy("hami")
    assert "hami-scheduler" not in policy("device_plugin")


def test_a_secret_setting_is_not_a_plain_value() -> None:
    from config.env import EnvironmentSettings

    secret = {
        name.upper()
        for name, field in EnvironmentSettings.model_json_schema()["properties"].items()
        if chart_files.is_secret(field)
    }
    assert {"SECRET_KEY", "DATABASE_URL", "OWNER_DATABASE_URL", "METRICS_TOKEN"} <= secret
    assert not set(chart_files.settings()) & (secret | chart_files.CHARTS_OWN | chart_files.WITH_PASSWORD)


def test_settings_are_rendered_in_the_format_that_the_product_reads() -> None:
    from config.env import EnvironmentSettings

    pod = named(objects(FULL), "Deployment", "gpubroker-web")["spec"]["template"]["spec"]
    env = {item["name"]: item["value"] for item in pod["containers"][0]["env"] if "value" in item}
    fields = EnvironmentSettings.model_fields
    assert env["GPUBROKER_DEFAULT_TENANT_QUOTA_UNITS"] == "1000000"
    assert json.loads(env["GPUBROKER_LEASE_GATES"]) == ["broker.services.quotas.gate"]
    assert env["GPUBROKER_CURRENCY"] == "CHF"
    own = {name for name in env if name.startswith("GPUBROKER_")}
    assert {name.removeprefix("GPUBROKER_").lower() for name in own} <= set(fields)
