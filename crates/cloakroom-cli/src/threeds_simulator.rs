//! `cloakroom threeds-simulator`: card networks and an issuer on this machine, for tests of 3-D Secure.

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

const DIRECTORY_PORT: u16 = 8493;
const ACS_PORT: u16 = 8494;

#[derive(Args)]
pub(crate) struct ThreedsSimulatorArguments {
    /// Where the directory server listens, with mutual TLS; loopback addresses only
    #[arg(long, value_name = "ADDRESS", default_value_t = local(DIRECTORY_PORT))]
    listen: SocketAddr,
    /// Where the issuer's pages and the control endpoints are; loopback addresses only
    #[arg(long, value_name = "ADDRESS", default_value_t = local(ACS_PORT))]
    acs_listen: SocketAddr,
    /// Where the certificates are kept; they are made if they are not there
    #[arg(long, value_name = "FOLDER")]
    folder: PathBuf,
    /// Serve the issuer's pages without TLS, for a browser that does not know the test authority
    #[arg(long)]
    acs_plain: bool,
    /// After how many seconds decoupled authentications are decided
    #[arg(long, value_name = "SECONDS", default_value_t = DECOUPLED_DELAY.as_secs())]
    decoupled_delay: u64,
    /// Stop when the standard input ends, for a program that runs it
    #[arg(long)]
    attached: bool,
    /// Print one JSON line when ready, for programs
    #[arg(long)]
    json: bool,
}

fn local(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// What a program needs to use the simulator; people get the same as text.
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
    announce(&ready(&simulator), arguments.json)?;
    let (owner_left, ended) = oneshot::channel::<()>();
    let _kept_open = match arguments.attached {
        true => {
            wait_for_end_of_input(owner_left);
            None
        }
        false => Some(owner_left),
    };
    tokio::select! {
        () = stop => {}
        _ = ended => {}
    }
    simulator.stop().await;
    Ok(())
}

/// A thread of its own: nothing waits for it when the simulator stops for another reason.
fn wait_for_end_of_input(owner_left: oneshot::Sender<()>) {
    std::thread::spawn(move || {
        // Whatever ends the input, its owner is gone.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        drop(owner_left);
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

/// All that is printed. The vault's settings for it are named here and nowhere else.
fn announce(ready: &Ready, json: bool) -> anyhow::Result<()> {
    if json {
        say!("{}", serde_json::to_string(ready)?);
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
    say!(
        "\
Simulated card networks and a simulated issuer are running, for tests only. Stop them with Ctrl-C.

  issuer's pages        {acs_url}
  control               {acs_url}/control/messages
  test cards            {test_cards}, see docs/operate/threeds-simulator.md; every code is 1234
  key of the pages      {acs_spki_sha256}  (SHA-256, for a browser's list of keys to allow)

What a vault needs to use them: in its configuration

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
        say!(
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
