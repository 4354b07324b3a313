//! A directory server (DS) and an access control server (ACS) for tests and local development. They
//! exchange EMV 3-D Secure messages over mutual TLS. The card number selects the outcome.
//!
//! [`Simulator::start`] opens two listeners, on loopback addresses only:
//!
//! | listener | clients | endpoints |
//! | --- | --- | --- |
//! | DS | the 3DS Server, with a client certificate | `POST /ds/{network}` for PReq and AReq |
//! | ACS | browsers and tests | `/acs/...` pages, `/control/...` |
//!
//! The simulator sends the RReq to the `threeDSServerURL` of the AReq, with its client certificate.
//!
//! # Outcomes by card number
//!
//! 1. [`test_cards`] lists numbers with a fixed scenario.
//! 2. For 16-digit numbers that begin with `900010`, the last four digits, `vmac`, select the
//!    outcome. The card range follows `v` and `m` if digits seven to eleven are zero; the twelfth is
//!    free, so that one of ten numbers passes the Luhn check.
//! 3. Every other number of a network authenticates frictionless. `4100000000000003` is in no range.
//!
//! | digit | 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 |
//! | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
//! | `v` version | all | 2.1.0 | 2.2.0 | 2.3.1 | | | | | | |
//! | `m` 3DS Method | completes | absent | never completes | | | | | | | |
//! | `a` ARes | Y | N | A | R | I | U | no response | challenge | decoupled | Erro |
//! | `c` of N | 01 | 02 | 03 | 04 | 05 | 06 | 07 | 08 | 09 | 10 |
//! | `c` of R | 11 | 12 | 13 | 14 | 15 | 16 | 17 | 18 | 19 | 20 |
//! | `c` of U | 13 | 14 | 19 | 20 | 21 | 22 | 23 | 24 | 25 | 26 |
//! | `c` of decoupled | approved | denied | never completes | insufficient time (N, 25) | | | | | | |
//! | `c` of Erro | 101 | 102 | 201 | 203 | 303 | 305 | 402 | 403 | 404 | 405 |
//!
//! | `c` of a challenge | outcome |
//! | --- | --- |
//! | 0, 1 | succeeds or fails without input |
//! | 2, 3 | one-time code or out of band |
//! | 4 | canceled |
//! | 5 | RReq without CRes |
//! | 6 | CRes before RReq |
//! | 7 | RReq with a wrong `dsTransID` |
//! | 8, 9 | RReq with U or R |
//!
//! 2.1.0 has no I and no reasons above 21: I becomes U with 12, and such reasons become 14. A decoupled
//! authentication that was not requested becomes U with 23 (2.1.0: 12). On the 3RI channel, a challenge
//! becomes a decoupled authentication if one was requested, otherwise U with 23 (2.1.0: 21). An app
//! challenge completes after `decoupled_delay`.
//!
//! # Effects of the amount
//!
//! | `purchaseAmount` | the response |
//! | --- | --- |
//! | 990101 | has a `cardholderInfo` |
//! | 990102 | has an unknown critical extension |
//! | 990103 | has an unknown non-critical extension |
//! | 990201 to 990212 | is delayed by 1 to 12 seconds |
//! | 991000 + code | is an Erro with that code, for example 991303 |
//!
//! Responses of `cartes-bancaires` have the extension CB-SCORE. The trust list status of the ARes is Y
//! for preference 08 and P for preference 09, whose RReq has Y or N. A merchant id that begins with
//! `unknown` is rejected with Erro 303.
//!
//! # Control endpoints
//!
//! | request | effect |
//! | --- | --- |
//! | `GET /control/messages` | message counts by type, `received` and `sent` |
//! | `GET /control/transactions/{threeDSServerTransID}` | the messages of a transaction |
//! | `POST /control/transactions/{threeDSServerTransID}/result` | sends an RReq again |
//! | `POST /acs/decoupled/{acsTransID}` | completes a decoupled authentication: `approve` or `deny` |
//! | `GET /control/ranges/{network}` | serial number and count |
//! | `POST /control/ranges/{network}` | changes a card range |
//! | `POST /control/ranges/{network}/bump` | increments the serial number without changes |
//! | `POST /control/ranges/{network}/forget` | invalidates earlier serial numbers: Erro 307 |
//! | `POST /control/trouble` | injects a fault |
//! | `DELETE /control/trouble` | removes all injected faults |
//!
//! - A transaction has the AReq (with the last four digits of the card number), the ARes, the RReq, the
//!   replies, and whether the 3DS Method page was loaded.
//! - A result is `{"change": {"transStatus": "N"}, "certificate": false}`; null removes a field.
//! - A range change is `{"action": "add", "start": .., "end": ..}`; other actions are `delete` and
//!   `modify`. Optional: `acs_start`, `acs_end`, `method` (`answers`, `absent`, `silent`) and `pretend`,
//!   which announces an invalid change.
//! - A fault is `{"kind": "AReq", "what": "stall", "seconds": 30, "times": 1}`; other values of `what` are
//!   `refuse`, `garbage`, `http-500` and `erro` with `code`. Optional: `network`. Without `times`, it
//!   lasts until it is removed.
//!
//! # Vendor interface
//!
//! With [`VENDOR_API_KEY`] in the header `APIKey`, the ACS listener also acts as a certified vendor that
//! is the 3DS Server itself. All bodies are JSON; errors are an Erro with status 200.
//!
//! | request | response |
//! | --- | --- |
//! | `POST /vendor/preauth` `{"acctNumber", "ds"?}` | a `CRD` with a transaction id |
//! | `POST /vendor/auth` an AReq | the ARes |
//! | `POST /vendor/postauth` `{"threeDSServerTransID"}` | the RReq |
//!
//! The transaction id is valid for 80 seconds. The AReq contains no `threeDSServer...` fields except the
//! id. Errors: not enrolled 305 (`preauth`); no response within 10 seconds 405 (`auth`); not available
//! yet 305, unknown 301 (`postauth`).
//!
//! Injected faults for these calls have the kinds `preauth`, `auth` and `postauth`.

mod acs;
mod behavior;
mod cards;
mod certificates;
mod control;
mod directory;
mod fault_injection;
mod listener;
mod networks;
mod ranges;
mod results;
mod rreq;
mod sender;
mod state;
mod tls;
mod transaction;
mod vendor;
mod wire;

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;

pub use cards::{Expected, Scenario, TestCard, test_cards};
pub use certificates::Certificates;
pub use networks::NETWORKS;
pub use vendor::VENDOR_API_KEY;

use listener::Listener;
use state::SharedState;

/// Maximum time between the ARes and the first CReq.
pub const CREQ_TIMEOUT: Duration = Duration::from_secs(30);
/// Duration of a decoupled authentication.
pub const DECOUPLED_DELAY: Duration = Duration::from_secs(2);

#[derive(Clone, Debug)]
pub struct Options {
    /// Address of the DS, with mutual TLS.
    pub listen: SocketAddr,
    /// Address of the ACS pages and of the control endpoints.
    pub acs_listen: SocketAddr,
    /// Serve the ACS over plain HTTP, for a browser that does not trust the test CA.
    pub acs_plain: bool,
    /// Folder of the certificates, which are created if missing.
    pub folder: PathBuf,
    pub decoupled_delay: Duration,
    pub creq_timeout: Duration,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the simulator listens on loopback addresses only, not on {address}")]
    NotLoopback { address: SocketAddr },
    #[error("cannot listen on {address}: {}", reason.kind())]
    Listen {
        address: SocketAddr,
        reason: io::Error,
    },
    #[error("cannot use {}: {}", path.display(), reason.kind())]
    File { path: PathBuf, reason: io::Error },
    #[error("cannot use the certificate or key in {}", path.display())]
    Pem { path: PathBuf },
    #[error("the certificates cannot be created or read")]
    Certificates(#[from] rcgen::Error),
    #[error("the certificates are not usable for TLS")]
    Tls(#[from] tokio_rustls::rustls::Error),
    #[error("the test CA cannot be used to verify clients")]
    NoVerifier,
    #[error("the TLS library has no SHA-256")]
    NoDigest,
}

impl Error {
    fn file(path: &Path, reason: io::Error) -> Self {
        Self::File {
            path: path.to_owned(),
            reason,
        }
    }
}

/// The running servers. Dropping it stops them.
pub struct Simulator {
    directory: SocketAddr,
    state: Arc<SharedState>,
    certificates: Certificates,
    listeners: JoinSet<()>,
}

impl Simulator {
    pub async fn start(options: Options) -> Result<Self, Error> {
        let directory = Listener::bind(options.listen).await?;
        let acs = Listener::bind(options.acs_listen).await?;
        let certificates = Certificates::create_or_load(&options.folder)?;
        let directory_tls = tls::mutual(&certificates)?;
        let (scheme, acs_tls) = match options.acs_plain {
            true => ("http", None),
            false => ("https", Some(tls::server_only(&certificates)?)),
        };
        let state = Arc::new(SharedState::new(
            format!("{scheme}://{}", acs.address),
            options.creq_timeout,
            options.decoupled_delay,
            sender::ResultSender::new(&certificates)?,
        ));
        let directory_address = directory.address;
        let mut listeners = JoinSet::new();
        let app = directory::router(Arc::clone(&state));
        listeners.spawn(directory.run(app, Some(directory_tls)));
        let app = acs::router(Arc::clone(&state))
            .merge(control::router(Arc::clone(&state)))
            .merge(vendor::router(Arc::clone(&state)));
        listeners.spawn(acs.run(app, acs_tls));
        Ok(Self {
            directory: directory_address,
            state,
            certificates,
            listeners,
        })
    }

    /// The URL of a network's DS.
    pub fn directory_url(&self, network: &str) -> String {
        format!("https://{}/ds/{network}", self.directory)
    }

    /// The base URL of the ACS pages and the control endpoints.
    pub fn acs_url(&self) -> String {
        self.state.acs_url.clone()
    }

    pub fn certificates(&self) -> &Certificates {
        &self.certificates
    }

    /// Closes all connections and cancels all timers.
    pub async fn stop(mut self) {
        self.listeners.shutdown().await;
        self.state.stop();
    }
}

impl Drop for Simulator {
    /// Cancels timers, which hold references to the state and would otherwise keep running.
    fn drop(&mut self) {
        self.state.stop();
    }
}
