"""Kubeconfigs of unreachable clusters."""

KUBECONFIG = {
    "clusters": [{"name": "cluster", "cluster": {"server": "https://one.example"}}],
    "users": [{"name": "cluster", "user": {"token": "first"}}],
}
AGENT_KUBECONFIG = {
    "clusters": [{"name": "cluster", "cluster": {"server": "https://one.example"}}],
    "users": [{"name": "cluster", "user": {"token": "t"}}],
}
