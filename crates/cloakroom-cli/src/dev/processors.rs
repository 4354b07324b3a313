//! `cloakroom dev --processors`: simulated payment processors that the proxy may send requests to.

use std::path::Path;

use cloakroom::config::{Config, Ports, StaticAddresses};
use cloakroom_processor_simulator::{HOSTS, Simulator, adyen, braintree, checkout, stripe};

const HTTPS_PORT: u16 = 443;

/// Processors that run until they are dropped.
pub(super) struct Processors(Simulator);

impl Processors {
    pub(super) async fn start(is_requested: bool) -> anyhow::Result<Option<Self>> {
        match is_requested {
            true => Ok(Some(Self(Simulator::start().await?))),
            false => Ok(None),
        }
    }

    /// Allows the vault to send requests to the processors, in addition to public hosts.
    pub(super) fn configure(&self, folder: &Path, config: &mut Config) -> anyhow::Result<()> {
        let address = self.0.address;
        let authorities = folder.join("processors-ca.pem");
        std::fs::write(&authorities, &self.0.ca_certificate)?;
        config.egress.ca_file = Some(authorities);
        let hosts = HOSTS.map(|host| (host.to_owned(), address.ip()));
        config.egress.static_addresses = StaticAddresses::new(hosts.into());
        config.egress.ports = Ports::new(vec![HTTPS_PORT, address.port()]);
        let loopback = "127.0.0.1/32".parse();
        config.egress.allow_private_networks = loopback.map_err(anyhow::Error::msg)?;
        Ok(())
    }

    /// Base URLs and credentials, with the names that the guides use.
    pub(super) fn variables(processors: Option<&Self>) -> Vec<(&'static str, String)> {
        let Some(Self(simulator)) = processors else {
            return Vec::new();
        };
        let port = simulator.address.port();
        let url = |host: &str| format!("https://{host}:{port}");
        vec![
            ("ADYEN_URL", url(adyen::HOST)),
            ("ADYEN_API_KEY", adyen::API_KEY.to_owned()),
            ("ADYEN_MERCHANT_ACCOUNT", adyen::MERCHANT_ACCOUNT.to_owned()),
            ("BRAINTREE_URL", url(braintree::HOST)),
            ("BRAINTREE_PUBLIC_KEY", braintree::PUBLIC_KEY.to_owned()),
            ("BRAINTREE_PRIVATE_KEY", braintree::PRIVATE_KEY.to_owned()),
            ("CHECKOUT_URL", url(checkout::HOST)),
            ("CHECKOUT_SECRET_KEY", checkout::SECRET_KEY.to_owned()),
            ("STRIPE_URL", url(stripe::HOST)),
            ("STRIPE_SECRET_KEY", stripe::SECRET_KEY.to_owned()),
        ]
    }
}
