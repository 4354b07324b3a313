//! A payment processor behind the proxy of a node.

use cloakroom_processor_simulator::{Simulator, checkout, stripe};
use reqwest::{Client, RequestBuilder, Url};
use serde_json::json;
use tempfile::NamedTempFile;

use crate::support::Node;

pub(super) struct Processor {
    simulator: Simulator,
    ca_file: NamedTempFile,
    client: Client,
}

impl Processor {
    pub(super) async fn start() -> Self {
        let simulator = Simulator::start().await.unwrap();
        let ca_file = NamedTempFile::new().unwrap();
        std::fs::write(ca_file.path(), &simulator.ca_certificate).unwrap();
        Self {
            simulator,
            ca_file,
            client: Client::new(),
        }
    }

    /// The settings with which a node reaches the processor.
    pub(super) fn settings(&self) -> String {
        let hosts = [stripe::HOST, checkout::HOST];
        let addresses = hosts.map(|host| format!("{host}=127.0.0.1"));
        format!(
            "[egress]\nallowed_hosts = {hosts:?}\nports = [{}]\nallow_private_networks = [\"127.0.0.1/32\"]\n\
             ca_file = {:?}\nstatic_addresses = {addresses:?}\n",
            self.simulator.address.port(),
            self.ca_file.path(),
        )
    }

    /// The card numbers of all charges, in order.
    pub(super) fn received(&self) -> Vec<String> {
        let charges = self.simulator.charges.all();
        charges.into_iter().map(|charge| charge.number).collect()
    }

    /// Sends a card through the proxy in every way: in a form, in JSON, in the query and in headers, in a response, and
    /// in requests that are rejected before they are sent.
    pub(super) async fn charge(&self, node: &Node, key: &str, token: &str, number: &str) {
        let value = |name: &str| format!("{{{{ {token} | json: '$.{name}' }}}}");
        let stripe = self.request(node, key, ("POST", "/v1/payment_intents", stripe::HOST));
        let form = encoded(&[
            ("amount", "100"),
            ("currency", "usd"),
            ("confirm", "true"),
            ("payment_method_data[type]", "card"),
            ("payment_method_data[card][number]", &value("number")),
            (
                "payment_method_data[card][exp_month]",
                &value("expiration_month"),
            ),
            ("payment_method_data[card][exp_year]", "2031"),
        ]);
        let stripe = stripe
            .bearer_auth(stripe::SECRET_KEY)
            .header("content-type", "application/x-www-form-urlencoded")
            .body(form);
        assert_eq!(stripe.send().await.unwrap().status(), 200);

        let checkout = self.request(node, key, ("POST", "/payments", checkout::HOST));
        let checkout = checkout.bearer_auth(checkout::SECRET_KEY).json(&json!({
            "source": {
                "type": "card",
                "number": value("number"),
                "expiry_month": value("expiration_month"),
                "expiry_year": 2031,
            },
            "amount": 100,
            "currency": "GBP",
        }));
        assert_eq!(checkout.send().await.unwrap().status(), 201);

        let stray = format!("/v1/unknown?{}", encoded(&[("card", &value("number"))]));
        let stray = self.request(node, key, ("GET", &stray, stripe::HOST));
        let stray = stray
            .header("x-card", value("number"))
            .send()
            .await
            .unwrap();
        assert_eq!(stray.headers()["bt-proxy-destination-status"], "404");

        let issued = format!(
            "/v1/issuing/cards/ic_{}?expand[]=number",
            self.received().len()
        );
        let issued = self.request(node, key, ("GET", &issued, stripe::HOST));
        let issued = issued.bearer_auth(stripe::SECRET_KEY).send().await.unwrap();
        let issued = issued.text().await.unwrap();
        assert!(issued.contains(number), "{issued}");

        let unknown = self.request(
            node,
            key,
            ("POST", "/payments", &format!("{number}.example")),
        );
        let unknown = unknown.body(value("number")).send().await.unwrap();
        let malformed = self.request(node, key, ("POST", "/payments", checkout::HOST));
        let malformed = malformed.body(format!("{{{{ {token} | {number} }}}}"));
        for rejected in [unknown, malformed.send().await.unwrap()] {
            assert!(rejected.status().is_client_error(), "{}", rejected.status());
            let text = rejected.text().await.unwrap();
            assert!(!text.contains(number), "{text}");
        }
    }

    /// A proxied request, by method, path and host.
    fn request(
        &self,
        node: &Node,
        key: &str,
        (method, path, host): (&str, &str, &str),
    ) -> RequestBuilder {
        let url = format!("{}/proxy{path}", node.base_url);
        let destination = format!("https://{host}:{}", self.simulator.address.port());
        self.client
            .request(method.parse().unwrap(), url)
            .header("bt-api-key", key)
            .header("bt-proxy-url", destination)
    }
}

/// The names and values of a form or a query.
fn encoded(pairs: &[(&str, &str)]) -> String {
    let url = Url::parse_with_params("http://vault/", pairs).unwrap();
    url.query().unwrap().to_owned()
}
