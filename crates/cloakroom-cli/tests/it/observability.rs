//! Metrics of a node, and the alert rules and dashboards that use them.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use cloakroom::telemetry::{Definition, Kind, catalog};
use cloakroom_devtools::packages;
use cloakroom_scratch::{Redis, RedisOptions};
use serde_json::Value;

use crate::support::{Deployment, runtime};

/// Metrics that a node without an external root key, certificates, directory servers, time stamps and BINs does not have.
const CONDITIONAL: [&str; 7] = [
    "cloakroom_root_key_request_duration_seconds",
    "cloakroom_tls_certificate_not_after_timestamp_seconds",
    "cloakroom_tls_certificate_reloads_total",
    "cloakroom_deprecated_calls_total",
    "cloakroom_audit_time_stamp_age_seconds",
    "cloakroom_threeds_card_ranges_age_seconds",
    "cloakroom_bin_table_version",
];
/// Gauges that jobs measure, within seconds.
const JOBS_MEASURE: [&str; 7] = [
    "cloakroom_audit_sink_waiting{",
    "cloakroom_clock_skew_seconds ",
    "cloakroom_database_bytes ",
    "cloakroom_egress_requests_in_flight ",
    "cloakroom_nodes ",
    "cloakroom_redis_volatile ",
    "cloakroom_webhooks_disabled ",
];
/// Labels that Prometheus adds.
const ADDED_LABELS: [&str; 3] = ["instance", "job", "le"];

#[test]
fn every_metric_of_a_loaded_node_is_in_the_reference() {
    let text = scrape_loaded_node();

    let mut seen = BTreeSet::new();
    for sample in text.lines().filter(|line| !line.starts_with('#')) {
        let Some((name, labels)) = parse_sample(sample) else {
            continue;
        };
        let definition = find(name).unwrap_or_else(|| panic!("{name} is not in the catalog"));
        let known: BTreeSet<_> = definition.labels.iter().map(|label| label.name).collect();
        for label in labels.into_iter().filter(|label| *label != "le") {
            assert!(known.contains(label), "{name} has the label {label}");
        }
        seen.insert(definition.name);
    }
    for definition in catalog::ALL {
        let Definition { name, help, .. } = definition;
        if CONDITIONAL.contains(name) && !seen.contains(name) {
            continue;
        }
        assert!(seen.contains(name), "{name} is missing:\n{text}");
        let kind = format!("# TYPE {name} {}", definition.kind.name());
        assert!(text.lines().any(|line| line == kind), "{kind}");
        let help = format!("# HELP {name} {help}");
        assert!(text.lines().any(|line| line == help), "{help}");
    }
    promtool(&["check", "metrics"], Path::new("."), &text);
}

#[test]
fn alert_rules_fire_as_tested_and_have_runbooks() {
    let folder = workspace().join("deploy/observability");
    promtool(&["check", "rules", "alerts.yaml"], &folder, "");
    promtool(&["test", "rules", "alerts_test.yaml"], &folder, "");

    let rules = std::fs::read_to_string(folder.join("alerts.yaml")).unwrap();
    check_names(&rules, "alerts.yaml");
    let tests = std::fs::read_to_string(folder.join("alerts_test.yaml")).unwrap();
    let index = workspace().join("docs/operate/runbooks/index.md");
    let index = std::fs::read_to_string(index).unwrap();
    let mut runbooks = BTreeSet::from(["docs/operate/runbooks/index.md".to_owned()]);
    for rule in rules.split("- alert: ").skip(1) {
        let name = rule.lines().next().unwrap();
        assert!(tests.contains(name), "{name} is not tested");
        let page = rule.split("runbook_url: ").nth(1);
        let page = page.unwrap_or_else(|| panic!("{name} has no runbook"));
        let page = page.lines().next().unwrap();
        let text = std::fs::read_to_string(workspace().join(page));
        let text = text.unwrap_or_else(|_| panic!("{page} of {name} is missing"));
        for heading in ["## Impact", "## Check", "## Fix"] {
            assert!(text.contains(heading), "{page} lacks {heading}");
        }
        assert!(text.contains(name), "{page} does not name {name}");
        assert!(index.contains(name), "index.md does not list {name}");
        runbooks.insert(page.to_owned());
    }
    for file in std::fs::read_dir(workspace().join("docs/operate/runbooks")).unwrap() {
        let name = file.unwrap().file_name().into_string().unwrap();
        let page = format!("docs/operate/runbooks/{name}");
        assert!(runbooks.contains(&page), "{page} belongs to no alert");
    }
}

#[test]
fn dashboards_show_metrics_that_exist() {
    let folder = workspace().join("deploy/observability/dashboards");
    let mut rules = String::from("groups:\n  - name: dashboards\n    rules:\n");
    let mut count = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let mut expressions = Vec::new();
        collect_expressions(&serde_json::from_str(&text).unwrap(), &mut expressions);
        assert!(!expressions.is_empty(), "{}", path.display());
        for expression in expressions {
            let expression = expression.replace("$__rate_interval", "5m");
            check_names(&expression, &path.display().to_string());
            let quoted = serde_json::to_string(&expression).unwrap();
            rules.push_str(&format!(
                "      - record: panel:{count}\n        expr: {quoted}\n"
            ));
            count += 1;
        }
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("panels.yaml"), rules).unwrap();
    promtool(&["check", "rules", "panels.yaml"], folder.path(), "");
    println!("{count} expressions");
}

/// Serves requests with every part that needs no other company, and returns the metrics.
fn scrape_loaded_node() -> String {
    let (deployment, keys) = Deployment::with_keys(&["/ reveal token:create,token:read"]);
    let redis = Redis::start(RedisOptions::default()).unwrap();
    let sink = deployment.path("checkpoints");
    deployment.configure(&format!(
        "[limits]\nenabled = true\n[redis]\nurl = \"{}\"\n[audit]\nsink_file = \"{}\"\n",
        redis.url(),
        sink.display()
    ));
    let node = deployment.serve();
    runtime().block_on(async {
        let client = reqwest::Client::new();
        let request = |path: &str| {
            let url = format!("{}{path}", node.base_url);
            let body = r#"{"type":"token","data":"secret"}"#;
            let request = client.post(url).header("bt-api-key", &keys[0]);
            request
                .header("content-type", "application/json")
                .body(body)
        };
        for _ in 0..5 {
            let response = request("/tokens").send().await.unwrap();
            assert_eq!(response.status(), 201);
        }
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let url = format!("{}/metrics", node.admin_url);
            let text = client.get(url).send().await.unwrap().text().await.unwrap();
            let is_complete = JOBS_MEASURE.iter().all(|name| text.contains(name));
            if is_complete || Instant::now() > deadline {
                return text;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    })
}

/// The name of a sample and the names of its labels.
fn parse_sample(line: &str) -> Option<(&str, Vec<&str>)> {
    let end = line.find(['{', ' '])?;
    let (name, rest) = line.split_at(end);
    let labels = rest.strip_prefix('{').map_or(Vec::new(), label_names);
    Some((name, labels))
}

/// The names before each `=` outside of quotes, until the closing brace.
fn label_names(text: &str) -> Vec<&str> {
    let (mut names, mut start, mut is_quoted) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        match c {
            '"' => is_quoted = !is_quoted,
            '}' if !is_quoted => break,
            ',' if !is_quoted => start = at + 1,
            '=' | '!' if !is_quoted && start < at => {
                names.push(text[start..at].trim());
                start = text.len();
            }
            _ => {}
        }
    }
    names
}

/// Checks that every metric in the expressions of `text` is in the catalog, with the labels that it is selected by.
fn check_names(text: &str, place: &str) {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut labels: BTreeMap<&str, ()> = ADDED_LABELS.map(|label| (label, ())).into();
    for (at, _) in text.match_indices("cloakroom_") {
        let rest = &text[at..];
        let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        let definition = find(&rest[..end])
            .unwrap_or_else(|| panic!("{place}: {} does not exist", &rest[..end]));
        let known: Vec<_> = definition.labels.iter().map(|label| label.name).collect();
        let selected = rest[end..]
            .strip_prefix('{')
            .map_or(Vec::new(), label_names);
        for label in selected {
            let exists = known.contains(&label) || ADDED_LABELS.contains(&label);
            assert!(exists, "{place}: {} has no label {label}", definition.name);
        }
        labels.extend(known.into_iter().map(|label| (label, ())));
    }
    for (at, found) in text.match_indices("by (") {
        let list = text[at + found.len()..].split(')').next().unwrap();
        for label in list.split(',').map(str::trim) {
            assert!(labels.contains_key(label), "{place}: by ({label})");
        }
    }
}

/// The definition of a metric, by its name or by the name of a series of a histogram.
fn find(name: &str) -> Option<&'static Definition> {
    let series = ["_bucket", "_sum", "_count"];
    catalog::ALL.iter().copied().find(|definition| {
        let suffix = name.strip_prefix(definition.name);
        match definition.kind {
            Kind::Histogram => suffix.is_some_and(|it| series.contains(&it)),
            _ => suffix == Some(""),
        }
    })
}

pub(super) fn collect_expressions(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value.as_str() {
                    Some(text) if name == "expr" => found.push(text.to_owned()),
                    _ => collect_expressions(value, found),
                }
            }
        }
        Value::Array(values) => {
            for value in values {
                collect_expressions(value, found);
            }
        }
        _ => {}
    }
}

fn promtool(arguments: &[&str], folder: &Path, input: &str) {
    packages::require(&[("promtool", "prometheus")]).unwrap();
    let mut command = Command::new("promtool");
    command.args(arguments).current_dir(folder);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = process.stdin.take().unwrap();
    stdin.write_all(input.as_bytes()).unwrap();
    drop(stdin);
    let output = process.wait_with_output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    assert!(output.status.success(), "{arguments:?}: {text}");
}

pub(super) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
