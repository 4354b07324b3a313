//! `cloakroom threeds-simulator`: simulated card networks and a simulated issuer for 3-D Secure tests.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use cloakroom_threeds_simulator::{
    CREQ_TIMEOUT, DECOUPLED_DELAY, NETWORKS, Options, Simulator, test_cards,
};
use serde::Serialize;
use tokio::sync::oneshot;

use crate::node::stop_signal;
use crate::output::is_json;

const DIRECTORY_PORT: u16 = 8493;
const ACS_PORT: u16 = 8494;

#[derive(Args)]
pub(crate) struct ThreedsSimulatorArguments {
    /// Address of the directory servers, with mutual TLS; loopback addresses only
    #[arg(long, value_name = "ADDRESS", default_value_t = local(DIRECTORY_PORT))]
    listen: SocketAddr,
    /// Address of the issuer's pages and the control endpoints; loopback addresses only
    #[arg(long, value_name = "ADDRESS", default_value_t = local(ACS_PORT))]
    acs_listen: SocketAddr,
    /// Directory of the certificates, which are created if missing
    #[arg(long, value_name = "FOLDER")]
    folder: PathBuf,
    /// Serve the issuer's pages without TLS, for browsers that do not trust the test CA
    #[arg(long)]
    acs_plain: bool,
    /// Seconds until a decoupled authentication completes
    #[arg(long, value_name = "SECONDS", default_value_t = DECOUPLED_DELAY.as_secs())]
    decoupled_delay: u64,
    /// Stop when standard input closes, for use as a child process
    #[arg(long)]
    attached: bool,
    /// Print one JSON line when ready, for scripts
    #[arg(long)]
    json: bool,
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// The JSON output when the simulator is ready.
#[derive(Serialize)]
struct Ready {
    directory_urls: Vec<DirectoryUrl>,
    acs_url: String,
    ca_file: PathBuf,
    certificate_file: PathBuf,
    key_file: PathBuf,
    acs_spki_sha256: String,
    test_cards: usize,
}

#[derive(Serialize)]
struct DirectoryUrl {
    network: &'static str,
    url: String,
}

pub(crate) async fn run(arguments: ThreedsSimulatorArguments) -> anyhow::Result<()> {
    let stop = stop_signal()?;
    let simulator = Simulator::start(Options {
        listen: arguments.listen,
        acs_listen: arguments.acs_listen,
        acs_plain: arguments.acs_plain,
        folder: arguments.folder,
        decoupled_delay: Duration::from_secs(arguments.decoupled_delay),
        creq_timeout: CREQ_TIMEOUT,
    })
    .await?;
    announce(&ready(&simulator), arguments.json || is_json())?;
    let (parent_exited, wait_parent_exited) = oneshot::channel::<()>();
    let _open_sender = match arguments.attached {
        true => {
            wait_for_end_of_input(parent_exited);
            None
        }
        false => Some(parent_exited),
    };
    tokio::select! {
        () = stop => {}
        _ = wait_parent_exited => {}
    }
    simulator.stop().await;
    Ok(())
}

/// Uses a separate thread, so that a blocked read does not delay the shutdown.
fn wait_for_end_of_input(parent_exited: oneshot::Sender<()>) {
    std::thread::spawn(move || {
        // Any end of the input means that the parent process is gone.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        drop(parent_exited);
    });
}

fn ready(simulator: &Simulator) -> Ready {
    let urls = NETWORKS.iter().map(|network| DirectoryUrl {
        network,
        url: simulator.directory_url(network),
    });
    let certificates = simulator.certificates();
    Ready {
        directory_urls: urls.collect(),
        acs_url: simulator.acs_url(),
        ca_file: certificates.ca(),
        certificate_file: certificates.server_certificate(),
        key_file: certificates.server_key(),
        acs_spki_sha256: certificates.acs_spki_sha256(),
        test_cards: test_cards().len(),
    }
}

/// Prints all output, including the settings that a vault needs.
fn announce(ready: &Ready, json: bool) -> anyhow::Result<()> {
    if json {
        print_line!("{}", serde_json::to_string(ready)?);
        return Ok(());
    }
    let Ready {
        directory_urls,
        acs_url,
        ca_file,
        certificate_file,
        key_file,
        acs_spki_sha256,
        test_cards,
    } = ready;
    print_line!(
        "\
Simulated card networks and a simulated issuer are running, for tests only. Press Ctrl-C to stop.

  issuer's pages        {acs_url}
  control               {acs_url}/control/messages
    test cards            {test_cards}, see docs/operate/threeds-simulator.md; every challenge code is 1234
    public key hash       {acs_spki_sha256}  (SHA-256 of the SPKI, to allow the certificate in a browser)

To use them, add to the configuration of the vault

[threeds]
networks_file = \"networks.toml\"
results_listen = \"127.0.0.1:8495\"
results_url = \"https://127.0.0.1:8495\"
results_cert_file = \"{certificate}\"
results_key_file = \"{key}\"

[quotas]
threeds = true

and in networks.toml, for each network:
",
        certificate = certificate_file.display(),
        key = key_file.display(),
    );
    for DirectoryUrl { network, url } in directory_urls {
        print_line!(
            "\
[[directory]]
network = \"{network}\"
tenants = \"test\"
urls = [\"{url}\"]
cert_file = \"{certificate}\"
key_file = \"{key}\"
ca_file = \"{ca}\"
",
            ca = ca_file.display(),
            certificate = certificate_file.display(),
            key = key_file.display(),
        );
    }
    Ok(())
}
