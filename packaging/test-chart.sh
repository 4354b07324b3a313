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
# Another provider of the root key, with files that settings name, and all that is optional.
cat >"$rendered/values" <<'EOF'
serviceAccountName: vault
rootKey: { secretName: "" }
settings:
  CLOAKROOM__ROOT_KEY__PROVIDER: transit
  CLOAKROOM__ROOT_KEY__TRANSIT_TOKEN_FILE: /etc/cloakroom/transit/token
extraVolumes: [{ name: transit, secret: { secretName: transit, defaultMode: 0440 } }]
extraVolumeMounts: [{ name: transit, mountPath: /etc/cloakroom/transit, readOnly: true }]
erasures: { claimName: ledger }
database: { peers: [{ ipBlock: { cidr: 10.1.0.0/24 } }] }
redis: { peers: [{ ipBlock: { cidr: 10.2.0.0/24 } }] }
networkPolicy: { metricsClients: [{ namespaceSelector: {} }], egress: [{ ports: [{ port: 443 }] }] }
EOF
helm template vault . --values "$rendered/values" >"$rendered/transit.yaml"
kubernetes-validate --strict --quiet "$rendered"/*.yaml
# There is no schema of this custom resource: its selector and port must be those of a Service, and its job that of the alerts.
monitored=(--set serviceMonitor.enabled=true --set serviceMonitor.labels.release=prometheus --set 'networkPolicy.metricsClients[0].podSelector.matchLabels.app=prometheus')
helm lint --strict --quiet "${monitored[@]}" .
helm template vault . "${monitored[@]}" >"$rendered/monitored"
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
assert monitor["metadata"]["labels"]["release"] == "prometheus"
print("chart: the ServiceMonitor selects one Service, by its port")
EOF

python3 - "$rendered"/*.yaml <<'EOF'
import sys, yaml


def selects(selector, labels):
    wanted = selector.get("matchLabels", {}).items() <= labels.items()
    return wanted and all(labels.get(it["key"]) in it["values"] for it in selector.get("matchExpressions", []))


checked = 0
for name in sys.argv[1:]:
    resources = [it for it in yaml.safe_load_all(open(name)) if it]
    policies = [it["spec"] for it in resources if it["kind"] == "NetworkPolicy"]
    for resource in resources:
        if resource["kind"] not in ("CronJob", "Deployment", "Job"):
            continue
        is_scheduled = resource["kind"] == "CronJob"
        spec = resource["spec"]["jobTemplate"]["spec"] if is_scheduled else resource["spec"]
        template = spec["template"]
        pod = template["spec"]
        where = f"{name}: {resource['kind']} {resource['metadata']['name']}"
        assert pod["automountServiceAccountToken"] is False, where
        assert pod["securityContext"]["runAsNonRoot"] is True, where
        assert pod["securityContext"]["seccompProfile"]["type"] == "RuntimeDefault", where
        # No other image sees a secret.
        assert "initContainers" not in pod, where
        [container] = pod["containers"]
        security = container["securityContext"]
        assert security["allowPrivilegeEscalation"] is False, where
        assert security["readOnlyRootFilesystem"] is True, where
        assert security["capabilities"] == {"drop": ["ALL"]}, where
        assert "memory" in container["resources"]["limits"], where
        volumes = {volume["name"]: volume for volume in pod["volumes"]}
        assert {mount["name"] for mount in container["volumeMounts"]} == set(volumes), where
        for volume in volumes.values():
            # Readable by the group of the node, which fsGroup sets, and by no other user.
            assert volume.get("secret", {}).get("defaultMode", 0o440) == 0o440, where
        # Settings name only files that exist.
        paths = [mount["mountPath"] for mount in container["volumeMounts"]]
        is_migration = resource["metadata"]["name"].endswith("-migrate")
        for variable in container["env"]:
            value = variable.get("value", "")
            is_mounted = any(value.startswith(f"{path}/") for path in paths)
            # The migration reads the settings, and uses those of the database.
            assert is_mounted or is_migration or not value.startswith("/"), f"{where}: {variable}"
        owner = volumes["database"]["secret"]["secretName"] == "cloakroom-database-owner"
        assert owner == is_migration, f"{where}: the owner of the tables"
        assert not (owner and "root-key" in volumes), f"{where}: the owner of the tables has the root key"
        if policies:
            labels = template["metadata"]["labels"]
            selected = [it for it in policies if selects(it["podSelector"], labels)]
            assert len(selected) == 1, f"{where}: {len(selected)} network policies"
        checked += 1
print(f"chart: {checked} containers meet the restricted pod security standard, with one network policy each")
EOF

rejected=0
for values in replicas=0 baseUrl=http://vault.example.com environment=staging rootKey.secretName=_ serviceMonitor.enabled=true unknown=1 \
    image.digest=sha256:1 settings.HTTP_LISTEN=1 database.port=0; do
    if helm template vault . --set "$values" >/dev/null 2>&1; then echo "chart: $values was accepted" >&2 && exit 1; fi
    rejected=$((rejected + 1))
done
echo "chart: $rejected invalid values are rejected"
