//! A directory server and an issuer's access control server for tests and laptops. They speak the
//! real messages of EMV 3-D Secure over real mutual TLS, and every card ends as its number says.
//!
//! [`Simulator::start`] opens two listeners, on loopback addresses only:
//!
//! | listener | who comes | what is there |
//! | --- | --- | --- |
//! | directory server | the 3DS Server, with a certificate | `POST /ds/{network}` for PReq and AReq |
//! | access control server | browsers and tests | `/acs/...` pages, `/control/...` |
//!
//! Results (RReq) go to the `threeDSServerURL` of the AReq, with the simulator's certificate.
//!
//! # Which card does what
//!
//! 1. [`test_cards`] lists numbers with a fixed scenario.
//! 2. Sixteen digits that begin with `900010` are read digit by digit, by their last four, `vmac`.
//!    The range of the card follows `v` and `m` if the digits seven to eleven are zero; the twelfth
//!    is free, so that one number of ten passes the Luhn check.
//! 3. Every other number of a network passes without friction. `4100000000000003` is in no range.
//!
//! | digit | 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9 |
//! | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
//! | `v` version | all | 2.1.0 | 2.2.0 | 2.3.1 | | | | | | |
//! | `m` 3DS Method | answers | absent | never answers | | | | | | | |
//! | `a` answer | Y | N | A | R | I | U | silence | challenge | decoupled | Erro |
//! | `c` of N | 01 | 02 | 03 | 04 | 05 | 06 | 07 | 08 | 09 | 10 |
//! | `c` of R | 11 | 12 | 13 | 14 | 15 | 16 | 17 | 18 | 19 | 20 |
//! | `c` of U | 13 | 14 | 19 | 20 | 21 | 22 | 23 | 24 | 25 | 26 |
//! | `c` of a challenge | passes by itself | fails by itself | code | out of band | cancelled | RReq, no CRes | CRes before RReq | RReq with a wrong dsTransID | RReq U | RReq R |
//! | `c` of decoupled | approved | denied | never | too little time (N, 25) | | | | | | |
//! | `c` of Erro | 101 | 102 | 201 | 203 | 303 | 305 | 402 | 403 | 404 | 405 |
//!
//! Version 2.1.0 has no I and no reasons above 21: there I becomes U with 12, and such reasons 14. A
//! decoupled authentication that was not asked for becomes U with 23 (2.1.0: 12). Without a cardholder
//! (3RI) a challenge becomes a decoupled authentication if one was asked for, else U with 23 (2.1.0: 21).
//! A challenge in an app ends by itself after `decoupled_delay`.
//!
//! # What an amount adds
//!
//! | `purchaseAmount` | the answer |
//! | --- | --- |
//! | 990101 | has a `cardholderInfo` |
//! | 990102 | has an extension that is critical and unknown |
//! | 990103 | has an unknown extension that is not critical |
//! | 990201 to 990212 | comes 1 to 12 seconds later |
//! | 991000 + code | is an Erro with that code, for example 991303 |
//!
//! Answers of `cartes-bancaires` have the extension CB-SCORE. Preference 08 is answered with a trust
//! list status Y, preference 09 with P, and its RReq with Y or N. A merchant id that begins with
//! `unknown` gets Erro 303.
//!
//! # Control
//!
//! | request | what it does |
//! | --- | --- |
//! | `GET /control/messages` | counts messages by kind, `received` and `sent` |
//! | `GET /control/transactions/{threeDSServerTransID}` | the AReq (card number: its last four digits), the ARes, the RReq, the replies, whether the method page was seen |
//! | `POST /control/transactions/{threeDSServerTransID}/result` | sends an RReq again: `{"change": {"transStatus": "N"}, "certificate": false}`; null removes a field |
//! | `POST /acs/decoupled/{acsTransID}` | decides now: `approve` or `deny` |
//! | `GET /control/ranges/{network}` | serial number and count |
//! | `POST /control/ranges/{network}` | `{"action": "add", "start": .., "end": ..}`; `delete`, `modify`; optional `acs_start`, `acs_end`, `method` (`answers`, `absent`, `silent`), `pretend` (announce even the impossible) |
//! | `POST /control/ranges/{network}/bump` | a new serial number without changes |
//! | `POST /control/ranges/{network}/forget` | no earlier serial number is valid: Erro 307 |
//! | `POST /control/trouble` | `{"kind": "AReq", "what": "stall", "seconds": 30, "times": 1}`; `refuse`, `garbage`, `http-500`, `erro` with `code`; optional `network`; without `times` until cleared |
//! | `DELETE /control/trouble` | ends all trouble |
//!
//! # A vendor instead of directory servers
//!
//! With [`VENDOR_API_KEY`] in the header `APIKey`, the pages' listener also plays a certified vendor
//! that is the 3DS Server itself. All bodies are JSON; refusals are Erro with status 200.
//!
//! | request | answer |
//! | --- | --- |
//! | `POST /vendor/preauth` `{"acctNumber", "ds"?}` | a `CRD` with the id to use within 80 seconds; not enrolled: Erro 305 |
//! | `POST /vendor/auth` an AReq without `threeDSServer...` besides the id | the ARes; no answer within 10 seconds: Erro 405 |
//! | `POST /vendor/postauth` `{"threeDSServerTransID"}` | the RReq; none yet: Erro 305; unknown: Erro 301 |
//!
//! Trouble for these calls has the kinds `preauth`, `auth` and `postauth`.

mod acs;
mod behaviour;
mod cards;
mod certificates;
mod control;
mod directory;
mod listener;
mod networks;
mod ranges;
mod results;
mod tls;
mod transaction;
mod trouble;
mod vendor;
mod wire;
mod world;

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
use world::World;

/// How long a browser may take from the ARes to the first CReq.
pub const CREQ_TIMEOUT: Duration = Duration::from_secs(30);
/// How long the cardholder of a decoupled authentication takes.
pub const DECOUPLED_DELAY: Duration = Duration::from_secs(2);

#[derive(Clone, Debug)]
pub struct Options {
    /// Where the directory server listens, with mutual TLS.
    pub listen: SocketAddr,
    /// Where pages for browsers and control for tests are.
    pub acs_listen: SocketAddr,
    /// Pages over plain HTTP, for a laptop's browser that does not know the test authority.
    pub acs_plain: bool,
    /// Where the certificates are; they are used if they are there, else made.
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
    #[error("the certificates cannot be made or read")]
    Certificates(#[from] rcgen::Error),
    #[error("the certificates do not serve TLS")]
    Tls(#[from] tokio_rustls::rustls::Error),
    #[error("the test authority cannot verify clients")]
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

/// Both servers, running. Dropping it stops them as well.
pub struct Simulator {
    directory: SocketAddr,
    world: Arc<World>,
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
            false => ("https", Some(tls::one_sided(&certificates)?)),
        };
        let world = Arc::new(World::new(
            format!("{scheme}://{}", acs.address),
            options.creq_timeout,
            options.decoupled_delay,
            results::Messenger::new(&certificates)?,
        ));
        let directory_address = directory.address;
        let mut listeners = JoinSet::new();
        let app = directory::router(Arc::clone(&world));
        listeners.spawn(directory.run(app, Some(directory_tls)));
        let app = acs::router(Arc::clone(&world))
            .merge(control::router(Arc::clone(&world)))
            .merge(vendor::router(Arc::clone(&world)));
        listeners.spawn(acs.run(app, acs_tls));
        Ok(Self {
            directory: directory_address,
            world,
            certificates,
            listeners,
        })
    }

    /// Where PReq and AReq of a network go.
    pub fn directory_url(&self, network: &str) -> String {
        format!("https://{}/ds/{network}", self.directory)
    }

    /// Where the pages and the control endpoints are, without a path.
    pub fn acs_url(&self) -> String {
        self.world.acs_url.clone()
    }

    pub fn certificates(&self) -> &Certificates {
        &self.certificates
    }

    /// Cuts all connections and forgets all timers.
    pub async fn stop(mut self) {
        self.listeners.shutdown().await;
        self.world.stop();
    }
}

impl Drop for Simulator {
    /// Timers hold what they work on, so they would not end by themselves.
    fn drop(&mut self) {
        self.world.stop();
    }
}
