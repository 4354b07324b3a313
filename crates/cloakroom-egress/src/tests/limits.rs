//! Limits on requests in flight.

use super::harness::{Authority, Client, Server, ServerTls, body_text, respond, tenant};
use crate::SendError;

#[tokio::test]
async fn one_tenant_leaves_room_for_others() {
    let authority = Authority::new();
    let tls = ServerTls::new(&authority.issue("psp.example"));
    let response = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let server = Server::start(tls, move |stream| respond(stream, response)).await;
    let client = Client::with(&authority, &server, |config| {
        config.egress.max_in_flight_per_destination = 8;
    });

    // A response whose body is not read is still in flight.
    let mut held = Vec::new();
    for _ in 0..6 {
        held.push(client.get_as(tenant(1)).await.unwrap());
    }
    let rejected = client.get_as(tenant(1)).await;
    assert_eq!(rejected.err(), Some(SendError::Overloaded));
    for _ in 0..2 {
        held.push(client.get_as(tenant(2)).await.unwrap());
    }
    let rejected = client.get_as(tenant(2)).await;
    assert_eq!(rejected.err(), Some(SendError::Overloaded));

    body_text(held.remove(0)).await.unwrap();
    drop(held.remove(0));
    for _ in 0..2 {
        held.push(client.get_as(tenant(3)).await.unwrap());
    }
    let rejected = client.get_as(tenant(3)).await;
    assert_eq!(rejected.err(), Some(SendError::Overloaded));
}
