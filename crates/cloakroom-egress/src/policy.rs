//! Which hosts, ports and addresses are allowed.

use std::net::IpAddr;

use cloakroom_platform::config::{Config, Environment, Networks, Ports};

use crate::{Denied, DestinationUrl, HostList, address};

pub(crate) struct Policy {
    allowed_hosts: Option<HostList>,
    is_production: bool,
    ports: Ports,
    exempt: Networks,
    /// The host of this vault. Requests to it could loop.
    own_host: Option<String>,
}

impl Policy {
    pub(crate) fn new(config: &Config) -> Self {
        let base_url = config.http.base_url.as_ref();
        let base_url = base_url.and_then(|url| url.as_str().parse::<http::Uri>().ok());
        Self {
            allowed_hosts: config.egress.allowed_hosts.clone(),
            is_production: config.vault.environment == Environment::Production,
            ports: config.egress.ports.clone(),
            exempt: config.egress.allow_private_networks.clone(),
            own_host: base_url.and_then(|url| url.host().map(str::to_ascii_lowercase)),
        }
    }

    pub(crate) fn check(
        &self,
        url: &DestinationUrl,
        tenant_hosts: Option<&HostList>,
    ) -> Result<(), Denied> {
        let host = url.host();
        if self.own_host.as_deref() == Some(host) {
            return Err(Denied::OwnHost);
        }
        let is_allowed = match &self.allowed_hosts {
            Some(hosts) => hosts.contains(host),
            None => !self.is_production,
        };
        if !is_allowed {
            return Err(Denied::Host);
        }
        if !tenant_hosts.is_none_or(|hosts| hosts.contains(host)) {
            return Err(Denied::TenantHost);
        }
        match self.ports.contain(url.port()) {
            true => Ok(()),
            false => Err(Denied::Port),
        }
    }

    /// Rejects a host if any of its addresses is not allowed: a mix of public and private addresses is an attack.
    pub(crate) fn check_addresses(&self, addresses: &[IpAddr]) -> Result<(), Denied> {
        let mut checks = addresses
            .iter()
            .map(|found| address::check(*found, &self.exempt));
        checks.try_for_each(|check| check.map_err(Denied::Address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(change: impl FnOnce(&mut Config)) -> Policy {
        let mut config = Config::default();
        change(&mut config);
        Policy::new(&config)
    }

    fn check(policy: &Policy, url: &str, tenant: Option<&str>) -> Result<(), Denied> {
        let hosts: Option<HostList> = tenant.map(|hosts| hosts.parse().unwrap());
        policy.check(&DestinationUrl::parse(url).unwrap(), hosts.as_ref())
    }

    #[test]
    fn production_denies_hosts_that_are_not_listed() {
        let none = policy(|config| config.vault.environment = Environment::Production);
        let listed = policy(|config| {
            config.vault.environment = Environment::Production;
            config.egress.allowed_hosts = Some("a.example,*.b.example".parse().unwrap());
        });
        let test = policy(|_| {});

        assert_eq!(check(&none, "https://a.example", None), Err(Denied::Host));
        assert_eq!(check(&test, "https://a.example", None), Ok(()));
        for (url, expected) in [
            ("https://a.example", Ok(())),
            ("https://x.b.example", Ok(())),
            ("https://b.example", Err(Denied::Host)),
            ("https://x.a.example", Err(Denied::Host)),
            ("https://a.example:8443", Err(Denied::Port)),
        ] {
            assert_eq!(check(&listed, url, None), expected, "{url}");
        }
    }

    #[test]
    fn a_tenant_restricts_the_list_of_the_operator_and_never_extends_it() {
        let policy =
            policy(|config| config.egress.allowed_hosts = Some("*.a.example".parse().unwrap()));
        let tenant = Some("x.a.example,c.example");
        for (url, expected) in [
            ("https://x.a.example", Ok(())),
            ("https://y.a.example", Err(Denied::TenantHost)),
            ("https://c.example", Err(Denied::Host)),
        ] {
            assert_eq!(check(&policy, url, tenant), expected, "{url}");
        }
    }

    #[test]
    fn the_vault_itself_is_no_destination() {
        let policy = policy(|config| {
            config.http.base_url = Some("https://Vault.example/api".parse().unwrap());
            config.egress.ports = Ports::new(vec![443, 8443]);
        });
        for url in ["https://vault.example", "https://vault.example:8443/proxy"] {
            assert_eq!(check(&policy, url, None), Err(Denied::OwnHost), "{url}");
        }
    }

    #[test]
    fn one_private_address_denies_the_host() {
        let policy = policy(|_| {});
        let public: IpAddr = [8, 8, 8, 8].into();
        let private: IpAddr = [10, 0, 0, 1].into();
        assert_eq!(policy.check_addresses(&[public]), Ok(()));
        let mixed = policy.check_addresses(&[public, private]);
        assert_eq!(mixed, Err(Denied::Address(crate::AddressClass::Private)));
    }
}
