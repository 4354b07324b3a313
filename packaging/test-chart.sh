#!/usr/bin/env bash
# Lints the Helm chart, validates what it renders against the schemas of Kubernetes and the restricted pod security
# standard, and checks that invalid values are rejected.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../deploy/helm/cloakroom"

rendered=$(mktemp -d)
trap 'rm -rf "$rendered"' EXIT
helm lint --strict --quiet .
helm template vault . >"$rendered/default.yaml"
helm template vault . --set replicas=1 --set redis.secretName= --set networkPolicy.enabled=false >"$rendered/single.yaml"
helm template vault . --set 'networkPolicy.clients[0].podSelector.matchLabels.app=shop' --set 'trustedProxies={10.0.0.0/8}' \
    --set-string settings.CLOAKROOM__LIMITS__ENABLED=false >"$rendered/clients.yaml"
kubernetes-validate --strict --quiet "$rendered"/*.yaml
# There is no schema of this custom resource: its selector and port must be those of a Service, and its job that of the alerts.
helm lint --strict --quiet --set serviceMonitor.enabled=true .
helm template vault . --set serviceMonitor.enabled=true >"$rendered/monitored"
python3 - "$rendered/monitored" <<'EOF'
import sys, yaml

resources = [it for it in yaml.safe_load_all(open(sys.argv[1])) if it]
[monitor] = [it for it in resources if it["kind"] == "ServiceMonitor"]
assert set(monitor["spec"]) == {"jobLabel", "selector", "endpoints"}, monitor
wanted = monitor["spec"]["selector"]["matchLabels"].items()
selected = [it for it in resources if it["kind"] == "Service" and wanted <= it["metadata"]["labels"].items()]
[service] = selected
ports = {port["name"] for port in service["spec"]["ports"]}
for endpoint in monitor["spec"]["endpoints"]:
    assert set(endpoint) == {"port", "path", "interval"} and endpoint["port"] in ports, endpoint
assert service["metadata"]["labels"][monitor["spec"]["jobLabel"]] == "cloakroom"
print("chart: the ServiceMonitor selects one Service, by its port")
EOF

python3 - "$rendered"/*.yaml <<'EOF'
import sys, yaml

checked = 0
for name in sys.argv[1:]:
    for resource in yaml.safe_load_all(open(name)):
        if not resource or resource["kind"] not in ("CronJob", "Deployment", "Job"):
            continue
        is_scheduled = resource["kind"] == "CronJob"
        spec = resource["spec"]["jobTemplate"]["spec"] if is_scheduled else resource["spec"]
        pod = spec["template"]["spec"]
        where = f"{name}: {resource['kind']}"
        assert pod["automountServiceAccountToken"] is False, where
        assert pod["securityContext"]["runAsNonRoot"] is True, where
        assert pod["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault", where
        volumes = {volume["name"] for volume in pod["volumes"]}
        for container in pod["initContainers"] + pod["containers"]:
            security = container["securityContext"]
            assert security["allowPrivilegeEscalation"] is False, where
            assert security["readOnlyRootFilesystem"] is True, where
            assert security["capabilities"] == {"drop": ["ALL"]}, where
            assert {mount["name"] for mount in container["volumeMounts"]} <= volumes, where
            assert "memory" in container["resources"]["limits"], where
            checked += 1
        owner = "database-owner" in volumes
        assert owner == (resource["metadata"]["name"].endswith("-migrate")), f"{where}: the owner of the tables"
print(f"chart: {checked} containers meet the restricted pod security standard")
EOF

rejected=0
for values in replicas=0 baseUrl=http://vault.example.com environment=staging rootKey.secretName= unknown=1 \
    image.digest=sha256:1 settings.HTTP_LISTEN=1 database.port=0; do
    if helm template vault . --set "$values" >/dev/null 2>&1; then echo "chart: $values was accepted" >&2 && exit 1; fi
    rejected=$((rejected + 1))
done
echo "chart: $rejected invalid values are rejected"
