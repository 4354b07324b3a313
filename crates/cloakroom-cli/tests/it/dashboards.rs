//! Every panel and alert against a Prometheus server that scrapes a loaded node.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cloakroom_devtools::packages;
use cloakroom_scratch::{Redis, RedisOptions};
use reqwest::{Client, Method};
use serde_json::Value;

use crate::observability::{collect_expressions, workspace};
use crate::support::{Deployment, Node, runtime};

/// Selectors that have no series on this node, and why.
const ABSENT: [(&str, &str); 7] = [
    (
        "cloakroom_http_requests_total{status=~\"5..\",status!=\"501\",route!~\"/proxy(/.*)?\"}",
        "no request failed",
    ),
    (
        "cloakroom_http_requests_total{instance=~\".*\",status=~\"5..\",status!=\"501\",route!~\"/proxy(/.*)?\"}",
        "no request failed",
    ),
    (
        "cloakroom_threeds_card_ranges_age_seconds{instance=~\".*\"}",
        "no directory servers are configured",
    ),
    (
        "cloakroom_root_key_request_duration_seconds_bucket{instance=~\".*\"}",
        "the root key is a file",
    ),
    (
        "cloakroom_tls_certificate_not_after_timestamp_seconds{instance=~\".*\"}",
        "the listener has no TLS",
    ),
    (
        "cloakroom_tls_certificate_not_after_timestamp_seconds",
        "the listener has no TLS",
    ),
    (
        "cloakroom_tls_certificate_reloads_total{outcome=\"failed\"}",
        "the listener has no TLS",
    ),
];
/// Panels that show nothing on this node although their series exist, and why.
const EMPTY: [(&str, &str); 3] = [
    ("Proxied requests", "only outcomes that happened are shown"),
    ("Outbound requests", "only outcomes that happened are shown"),
    ("3-D Secure", "only codes that happened are shown"),
];

/// A Prometheus server that scrapes one node each second.
struct Prometheus {
    process: Child,
    url: String,
    _folder: tempfile::TempDir,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Prometheus {
    fn start(target: &str) -> Self {
        packages::require(&[("prometheus", "prometheus")]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let config = format!(
            "global: {{ scrape_interval: 1s, scrape_timeout: 1s }}\nscrape_configs:\n  - job_name: cloakroom\n    \
             static_configs: [{{ targets: [\"{target}\"] }}]\n"
        );
        std::fs::write(folder.path().join("prometheus.yml"), config).unwrap();
        let unused = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = unused.local_addr().unwrap();
        drop(unused);
        let process = Command::new("prometheus")
            .current_dir(folder.path())
            .arg("--config.file=prometheus.yml")
            .arg("--storage.tsdb.path=data")
            .arg(format!("--web.listen-address={address}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self {
            process,
            url: format!("http://{address}"),
            _folder: folder,
        }
    }

    /// The results of a query; `None` while the server starts.
    async fn get(&self, path: &str, parameter: &str, value: &str) -> Option<Vec<Value>> {
        let value: String = value.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let url = format!("{}/api/v1/{path}?{parameter}={value}", self.url);
        let response = reqwest::get(url).await.ok()?;
        let body: Value = response.json().await.ok()?;
        assert_ne!(body["status"], "error", "{body}");
        let data = &body["data"];
        let results = data.get("result").unwrap_or(data);
        Some(results.as_array()?.clone())
    }

    async fn is_empty(&self, expression: &str) -> bool {
        let results = self.get("query", "query", expression).await;
        // A quotient of zeros shows nothing either.
        let is_number = |result: &Value| result["value"][1] != "NaN";
        !results.is_some_and(|results| results.iter().any(is_number))
    }

    async fn is_absent(&self, selector: &str) -> bool {
        let series = self.get("series", "match[]", selector).await;
        series.is_none_or(|series| series.is_empty())
    }
}

/// A panel or an alert.
struct Shown {
    title: String,
    expression: String,
    is_panel: bool,
}

#[test]
fn every_panel_and_alert_selects_series_of_a_loaded_node() {
    let (deployment, keys) =
        Deployment::with_keys(&["/ reveal token:create,token:read", "/ reveal token:read"]);
    let redis = Redis::start(RedisOptions::default()).unwrap();
    deployment.configure(&format!(
        "[limits]\nenabled = true\n[redis]\nurl = \"{}\"\n[audit]\nsink_file = \"{}\"\n",
        redis.url(),
        deployment.path("checkpoints").display()
    ));
    let node = deployment.serve();
    let target = node.admin_url.trim_start_matches("http://");
    let prometheus = Prometheus::start(target);
    let shown = read_all();
    let is_done = AtomicBool::new(false);

    let (empty, absent) = runtime().block_on(async {
        let ((), found) = tokio::join!(send_load(&node, &keys, &is_done), async {
            let found = evaluate(&prometheus, &shown).await;
            is_done.store(true, Ordering::Relaxed);
            found
        });
        found
    });

    for selector in &absent {
        assert!(is_listed(selector), "{selector} has no series");
    }
    let listed = |title: &str| EMPTY.iter().any(|(empty, _)| *empty == title);
    for shown in empty {
        let has_absent = selectors(&shown.expression)
            .iter()
            .any(|selector| absent.contains(selector));
        assert!(
            listed(&shown.title) || has_absent,
            "{} shows nothing: {}",
            shown.title,
            shown.expression
        );
    }
    println!("{} expressions", shown.len());
}

/// Sends requests that succeed, fail, use a deprecated feature and repeat an idempotency key.
async fn send_load(node: &Node, keys: &[String], is_done: &AtomicBool) {
    let client = Client::new();
    let body = r#"{"type":"token","data":"secret"}"#;
    let request = |method: Method, path: &str, key: &str| {
        let url = format!("{}{path}", node.base_url);
        let request = client.request(method, url).header("bt-api-key", key);
        request.header("content-type", "application/json")
    };
    while !is_done.load(Ordering::Relaxed) {
        let created = request(Method::POST, "/tokens", &keys[0]).body(body);
        let created: Value = created.send().await.unwrap().json().await.unwrap();
        let path = format!("/tokens/{}", created["id"].as_str().unwrap_or("missing"));
        let requests = [
            request(Method::GET, &path, &keys[0]),
            request(Method::POST, "/tokens", &keys[1]).body(body),
            request(Method::GET, "/tokens", &keys[0]),
            request(Method::GET, "/tokens", "unknown"),
            request(Method::POST, "/tokens", &keys[0])
                .header("bt-idempotency-key", "once")
                .body(body),
        ];
        for request in requests {
            request.send().await.unwrap();
        }
        // Below the rate limits of the specification.
        tokio::time::sleep(Duration::from_millis(400)).await;
    }
}

/// Waits until everything that is not listed as empty or absent shows something; returns what shows nothing.
async fn evaluate<'a>(
    prometheus: &Prometheus,
    shown: &'a [Shown],
) -> (Vec<&'a Shown>, BTreeSet<String>) {
    let deadline = Instant::now() + Duration::from_secs(90);
    loop {
        let (mut empty, mut absent) = (Vec::new(), BTreeSet::new());
        for shown in shown {
            // An alert that does not fire shows nothing.
            if shown.is_panel && prometheus.is_empty(&shown.expression).await {
                empty.push(shown);
            }
            for selector in selectors(&shown.expression) {
                if prometheus.is_absent(&selector).await {
                    absent.insert(selector);
                }
            }
        }
        let is_explained = |shown: &&Shown| {
            let listed = EMPTY.iter().any(|(title, _)| *title == shown.title);
            let mut selectors = selectors(&shown.expression).into_iter();
            listed || selectors.any(|selector| is_listed(&selector))
        };
        let is_complete =
            empty.iter().all(is_explained) && absent.iter().all(|selector| is_listed(selector));
        if is_complete || Instant::now() > deadline {
            return (empty, absent);
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
}

fn is_listed(selector: &str) -> bool {
    ABSENT.iter().any(|(absent, _)| *absent == selector)
}

/// The panels of all dashboards and the alerts, with the variables of Grafana replaced.
fn read_all() -> Vec<Shown> {
    let folder = workspace().join("deploy/observability");
    let mut shown = Vec::new();
    for file in std::fs::read_dir(folder.join("dashboards")).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let dashboard: Value = serde_json::from_str(&text).unwrap();
        for panel in dashboard["panels"].as_array().unwrap() {
            let title = panel["title"].as_str().unwrap_or_default();
            let mut expressions = Vec::new();
            collect_expressions(panel, &mut expressions);
            shown.extend(expressions.into_iter().map(|expression| {
                Shown {
                    title: title.to_owned(),
                    expression: expression
                        .replace("$__rate_interval", "1m")
                        .replace("$instance", ".*"),
                    is_panel: true,
                }
            }));
        }
    }
    shown.extend(read_alerts(&folder));
    shown
}

fn read_alerts(folder: &Path) -> Vec<Shown> {
    let rules = std::fs::read_to_string(folder.join("alerts.yaml")).unwrap();
    let rules = rules.split("- alert: ").skip(1);
    let alert = |rule: &str| {
        let expression = rule.split("expr:").nth(1).unwrap();
        let expression = expression.split("\n        for:").next().unwrap();
        let expression = expression.split("\n        labels:").next().unwrap();
        Shown {
            title: rule.lines().next().unwrap().to_owned(),
            expression: expression.trim().trim_start_matches('|').to_owned(),
            is_panel: false,
        }
    };
    rules.map(alert).collect()
}

/// The selectors of our metrics in an expression, without their ranges.
fn selectors(expression: &str) -> Vec<String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut selectors = Vec::new();
    for (at, _) in expression.match_indices("cloakroom_") {
        let rest = &expression[at..];
        let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        let mut is_quoted = false;
        let labels = rest[end..].strip_prefix('{').and_then(|labels| {
            labels.find(|c| {
                is_quoted ^= c == '"';
                c == '}' && !is_quoted
            })
        });
        let length = labels.map_or(end, |close| end + close + 2);
        selectors.push(rest[..length].to_owned());
    }
    selectors
}
