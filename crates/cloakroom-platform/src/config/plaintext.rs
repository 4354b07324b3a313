//! Plaintext connections, which are rejected in production unless a setting allows them.

use std::net::IpAddr;

use tokio_postgres::config::Host;

use super::finding::Finding;

/// A plaintext connection to another host in production.
pub(super) struct PlaintextConnection {
    /// The setting that enables TLS.
    pub(super) tls_setting: &'static str,
    /// The setting that allows plaintext.
    pub(super) waiver: &'static str,
    pub(super) is_allowed: bool,
    /// The condition under which plaintext is safe.
    pub(super) condition: &'static str,
}

impl PlaintextConnection {
    /// An error, or a warning if the connection is allowed.
    pub(super) fn finding(&self) -> Finding {
        let (waiver, condition) = (self.waiver, self.condition);
        if self.is_allowed {
            let message = format!(
                "production uses a connection without TLS; this is safe only if {condition}"
            );
            return Finding::warning(waiver, message);
        }
        let message = format!(
            "required in production for connections to other hosts, unless {waiver} is true"
        );
        Finding::error(self.tls_setting, message)
    }
}

/// Whether every server of a PostgreSQL URL is on this host. Invalid URLs are rejected elsewhere.
pub(super) fn is_local_postgres(url: &str) -> bool {
    let Ok(config) = url.parse::<tokio_postgres::Config>() else {
        return true;
    };
    let addresses = config.get_hostaddrs();
    if !addresses.is_empty() {
        return addresses.iter().all(IpAddr::is_loopback);
    }
    config.get_hosts().iter().all(|host| match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => is_local_name(name),
    })
}

/// Whether the server of a Redis URL is on this host.
pub(super) fn is_local_redis(url: &str) -> bool {
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = authority.split(['/', '?']).next().unwrap_or_default();
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    is_local_name(name)
}

/// Whether a name or an address, which may be in brackets, is this host.
pub(super) fn is_local_name(name: &str) -> bool {
    let name = name.trim_start_matches('[').trim_end_matches(']');
    let address = name.parse::<IpAddr>();
    name == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_servers_are_recognized() {
        let cases = [
            ("postgres://u:p@127.0.0.1:5432/x", true),
            ("postgres://u:p@localhost/x", true),
            ("postgres://u:p@[::1]/x", true),
            ("postgres://u:p@%2Frun%2Fpostgresql/x", true),
            ("postgres:///x?host=/run/postgresql", true),
            ("postgres://u:p@db.internal/x", false),
            ("postgres://u:p@db.internal/x?hostaddr=127.0.0.1", true),
            ("postgres://u:p@localhost/x?hostaddr=10.0.0.1", false),
            ("postgres://u:p@localhost,db2/x", false),
            ("postgres://u:p@10.0.0.1/x", false),
        ];
        for (url, expected) in cases {
            assert_eq!(is_local_postgres(url), expected, "{url}");
        }
        let cases = [
            ("redis://127.0.0.1:6379/0", true),
            ("redis://u:p%40x@localhost", true),
            ("redis://[::1]:6379", true),
            ("redis://:p@127.0.0.1@cache:6379/0", false),
            ("redis://cache", false),
            ("redis://10.0.0.1:6379", false),
        ];
        for (url, expected) in cases {
            assert_eq!(is_local_redis(url), expected, "{url}");
        }
    }
}
