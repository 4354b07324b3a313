//! Tests of the limits per connection, address and node.

use super::*;

fn usage() -> Arc<Usage> {
    Usage::new(Limits {
        connections_per_address: 2,
        unsent_per_connection: 10,
        unsent_per_address: 15,
        unsent: 20,
    })
}

fn client(usage: &Arc<Usage>, address: &str) -> Arc<Client> {
    Arc::new(Client {
        connection: ConnectionUsage::new(),
        address: usage.of(address.parse().unwrap()),
    })
}

#[test]
fn connections_per_address_are_limited_and_released() {
    let usage = usage();
    let connect = |address: &str| usage.of(address.parse().unwrap()).connect(false);

    let (first, second) = (connect("192.0.2.1"), connect("192.0.2.1"));
    assert!(first.is_some() && second.is_some());
    assert!(connect("192.0.2.1").is_none());
    assert!(connect("::ffff:192.0.2.1").is_none());
    assert!(usage.of([192, 0, 2, 1].into()).connect(true).is_some());
    assert!(connect("192.0.2.2").is_some());
    let network = (connect("2001:db8::1"), connect("2001:db8::2:1"));
    assert!(network.0.is_some() && network.1.is_some());
    assert!(connect("2001:db8::3").is_none());
    drop(first);
    assert!(connect("192.0.2.1").is_some());
    drop((second, network));
    assert!(usage.lock().is_empty());
}

#[tokio::test]
async fn unsent_bytes_are_limited_per_connection_address_and_node() {
    let usage = usage();
    let (first, second) = (client(&usage, "192.0.2.1"), client(&usage, "192.0.2.1"));
    let other = client(&usage, "192.0.2.2");
    let soon = Duration::from_millis(10);

    let mut held = first.charge(10);
    assert!(!first.admit(soon).await);
    assert!(second.admit(soon).await);
    let more = second.charge(5);
    assert!(!second.admit(soon).await);
    assert!(other.admit(soon).await);
    let most = other.charge(5);
    assert!(!other.admit(soon).await);
    assert!(!client(&usage, "192.0.2.3").admit(soon).await);

    let part = held.split(4);
    drop((more, most));
    assert!(!first.admit(soon).await);
    drop(part);
    assert!(first.admit(soon).await);
    drop(held.split(8));
    assert_eq!(usage.unsent.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn requests_wait_for_slow_readers() {
    let usage = usage();
    let client = client(&usage, "192.0.2.1");
    let held = client.charge(10);

    let (admitted, ()) = tokio::join!(client.admit(Duration::from_secs(60)), async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        drop(held);
    });

    assert!(admitted);
}
