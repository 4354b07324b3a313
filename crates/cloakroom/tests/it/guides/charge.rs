//! docs/guides/charge-with-*.md against a simulator of each processor.

use cloakroom::access::ApplicationKind;
use cloakroom::access::Permission::{ProxyCreate, TokenCreate, TokenUse};
use cloakroom::config::{Ports, StaticAddresses};
use cloakroom_processor_simulator::{
    Charge, DECLINED_NUMBER, HOSTS, Simulator, adyen, braintree, checkout, stripe,
};
use cloakroom_testkit::{TestDatabase, TestVault, grants};
use serde_json::json;
use tempfile::NamedTempFile;

use super::page::{Page, contains};

/// A guide, and what its commands need.
struct Guide {
    page: Page,
    processor: &'static str,
    host: &'static str,
    /// The variable with the URL of the processor.
    url_variable: &'static str,
    currency: &'static str,
    credentials: &'static [(&'static str, &'static str)],
}

/// The guide of each processor.
fn guides() -> [Guide; 4] {
    [
        Guide {
            page: Page::read("charge-with-stripe.md"),
            processor: "stripe",
            host: stripe::HOST,
            url_variable: "STRIPE_URL",
            currency: "usd",
            credentials: &[("STRIPE_SECRET_KEY", stripe::SECRET_KEY)],
        },
        Guide {
            page: Page::read("charge-with-adyen.md"),
            processor: "adyen",
            host: adyen::HOST,
            url_variable: "ADYEN_URL",
            currency: "eur",
            credentials: &[
                ("ADYEN_API_KEY", adyen::API_KEY),
                ("ADYEN_MERCHANT_ACCOUNT", adyen::MERCHANT_ACCOUNT),
            ],
        },
        Guide {
            page: Page::read("charge-with-checkout.md"),
            processor: "checkout",
            host: checkout::HOST,
            url_variable: "CHECKOUT_URL",
            currency: "gbp",
            credentials: &[("CHECKOUT_SECRET_KEY", checkout::SECRET_KEY)],
        },
        Guide {
            page: Page::read("charge-with-braintree.md"),
            processor: "braintree",
            host: braintree::HOST,
            url_variable: "BRAINTREE_URL",
            currency: "usd",
            credentials: &[
                ("BRAINTREE_PUBLIC_KEY", braintree::PUBLIC_KEY),
                ("BRAINTREE_PRIVATE_KEY", braintree::PRIVATE_KEY),
            ],
        },
    ]
}

/// A vault that may send to the simulator, with the keys that the guides use.
struct Merchant {
    vault: TestVault,
    simulator: Simulator,
    public_key: String,
    private_key: String,
    management_key: String,
    _ca_file: NamedTempFile,
}

impl Merchant {
    async fn new() -> Self {
        let simulator = Simulator::start().await.unwrap();
        let ca_file = NamedTempFile::new().unwrap();
        std::fs::write(ca_file.path(), &simulator.ca_certificate).unwrap();
        let vault = TestVault::start_with(TestDatabase::create().await, |config| {
            let address = simulator.address;
            let hosts = HOSTS.map(|host| (host.to_owned(), address.ip()));
            config.egress.static_addresses = StaticAddresses::new(hosts.into());
            config.egress.ports = Ports::new(vec![address.port()]);
            config.egress.allow_private_networks = "127.0.0.1/32".parse().unwrap();
            config.egress.ca_file = Some(ca_file.path().to_owned());
        })
        .await;
        let tenant = vault.tenant().await;
        let public = grants(&[TokenCreate]);
        let public = vault.holder(&tenant, ApplicationKind::Public, public).await;
        let private = grants(&[TokenUse]);
        let private = vault
            .holder(&tenant, ApplicationKind::Private, private)
            .await;
        let management = ApplicationKind::Management;
        let manages = grants(&[ProxyCreate]);
        let management = vault.holder(&tenant, management, manages).await;
        Self {
            vault,
            simulator,
            management_key: management.key,
            public_key: public.key,
            private_key: private.key,
            _ca_file: ca_file,
        }
    }

    async fn run(&self, guide: &Guide, page: &Page) -> serde_json::Value {
        let url = format!("https://{}:{}", guide.host, self.simulator.address.port());
        let mut variables = vec![
            (guide.url_variable, url.as_str()),
            ("BASE_URL", self.vault.base_url.as_str()),
            ("PUBLIC_KEY", &self.public_key),
            ("PRIVATE_KEY", &self.private_key),
            ("MANAGEMENT_KEY", &self.management_key),
        ];
        variables.extend(guide.credentials);
        page.run(&variables).await
    }
}

#[tokio::test]
async fn guides_charge_a_card_that_only_the_processor_receives() {
    let merchant = Merchant::new().await;

    for guide in guides() {
        let response = merchant.run(&guide, &guide.page).await;

        assert!(
            contains(&response, &guide.page.expected()),
            "{}: {response}",
            guide.processor
        );
        assert!(!response.to_string().contains("4242424242424242"));
        let charge = merchant.simulator.charges.all().pop();
        let expected = Charge {
            processor: guide.processor,
            number: "4242424242424242".to_owned(),
            expiration_month: 3,
            expiration_year: 2031,
            security_code: Some("123".to_owned()),
            amount: 1999,
            currency: guide.currency.to_owned(),
        };
        assert!(charge == Some(expected), "{}: {charge:?}", guide.processor);
    }
}

#[tokio::test]
async fn a_decline_is_returned_as_the_processor_sent_it() {
    let merchant = Merchant::new().await;
    let declines = [
        json!({"error": {"type": "card_error", "code": "card_declined"}}),
        json!({"resultCode": "Refused", "refusalReason": "Refused"}),
        json!({"approved": false, "status": "Declined"}),
        json!({"data": {"chargePaymentMethod": {"transaction": {"status": "PROCESSOR_DECLINED"}}}}),
    ];

    for (guide, expected) in guides().iter().zip(declines) {
        let page = guide.page.replace("4242424242424242", DECLINED_NUMBER);
        let response = merchant.run(guide, &page).await;
        assert!(
            contains(&response, &expected),
            "{}: {response}",
            guide.processor
        );
    }
}
