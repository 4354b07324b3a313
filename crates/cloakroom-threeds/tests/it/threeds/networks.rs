//! Configuration of the simulated card networks, and the listener for their results.

use std::net::SocketAddr;
use std::path::Path;

use cloakroom::server::Server;
use cloakroom::threeds::{ThreedsServer, sessions};
use cloakroom_testkit::TestVault;
use cloakroom_threeds_simulator::{NETWORKS, Simulator, VENDOR_API_KEY};
use tokio::task::JoinHandle;

#[expect(
    clippy::disallowed_methods,
    reason = "the listener ends when the test drops the checkout"
)]
pub(super) async fn listen_for_results(vault: &TestVault) -> JoinHandle<()> {
    let (config, networks) = (&vault.vault.config, &vault.vault.card_networks);
    let server = Server::bind_threeds_results(config, networks)
        .await
        .unwrap();
    let app = sessions::results_router(ThreedsServer::clone(&vault.vault));
    tokio::spawn(async {
        if let Some(server) = server {
            server.run(app, std::future::pending()).await;
        }
    })
}

pub(super) fn any_port() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// Messages contain these addresses, so they must be known before anything starts.
pub(super) fn free_address() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], cloakroom_scratch::free_port().unwrap()))
}

/// The simulator as a vendor that serves all networks, and its API key.
pub(super) fn vendor(simulator: &Simulator, folder: &Path) -> String {
    let key_file = folder.join("vendor.key");
    std::fs::write(&key_file, VENDOR_API_KEY).unwrap();
    format!(
        "[[vendor]]\ntenants = \"test\"\nurl = \"{}/vendor\"\napi_key_file = {key_file:?}\n\
         ca_file = {:?}\n",
        simulator.acs_url(),
        simulator.certificates().ca(),
    )
}

pub(super) fn networks(simulator: &Simulator, senders: &[&str]) -> String {
    let certificates = simulator.certificates();
    let directory = |network: &&str| {
        format!(
            "[[directory]]\nnetwork = {network:?}\ntenants = \"test\"\nurls = [{:?}]\n\
             operator_id = \"simulated\"\ncert_file = {:?}\nkey_file = {:?}\nca_file = {:?}\n\
             senders = {senders:?}\n",
            simulator.directory_url(network),
            certificates.server_certificate(),
            certificates.server_key(),
            certificates.ca(),
        )
    };
    NETWORKS.iter().map(directory).collect()
}
