//! Configuration of HAProxy in front of several nodes.

/// Path that the proxy itself responds to.
pub const READY: &str = "/proxy-is-ready";

/// Balances requests round robin. Connections stay open on both sides, and a request may use any open connection to a
/// node.
pub fn configuration(address: &str, nodes: &[&str]) -> String {
    let servers = nodes.iter().enumerate();
    let servers: String = servers
        .map(|(at, node)| format!("    server node{} {node}\n", at + 1))
        .collect();
    format!(
        "\
global
    maxconn 1000

defaults
    mode http
    option http-keep-alive
    timeout connect 5s
    timeout client 60s
    timeout server 60s

frontend clients
    bind {address}
    monitor-uri {READY}
    default_backend nodes

backend nodes
    balance roundrobin
    http-reuse always
{servers}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_is_a_server() {
        let text = configuration("127.0.0.1:1", &["127.0.0.1:2", "127.0.0.1:3"]);

        assert!(text.contains("    bind 127.0.0.1:1\n"), "{text}");
        let servers = "    server node1 127.0.0.1:2\n    server node2 127.0.0.1:3\n";
        assert!(text.ends_with(servers), "{text}");
    }
}
