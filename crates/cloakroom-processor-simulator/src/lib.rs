//! The charge requests of four payment processors, over TLS on a loopback address.
//!
//! [`Simulator::start`] serves every processor on one address; the `Host` of a request selects the
//! processor. Each validates credentials, media type, field names and field types of its public API
//! as strictly as the processor does, so that a request that passes here has the shape that the
//! processor accepts.
//!
//! | processor | host | request | credentials |
//! | --- | --- | --- | --- |
//! | Stripe | [`stripe::HOST`] | `POST /v1/payment_intents`, form; `GET /v1/issuing/cards/{id}` | `Authorization: Bearer` |
//! | Adyen | [`adyen::HOST`] | `POST /v71/payments`, JSON | `X-API-Key` |
//! | Checkout.com | [`checkout::HOST`] | `POST /payments`, JSON | `Authorization: Bearer` |
//! | Braintree | [`braintree::HOST`] | `POST /graphql`, two mutations | `Authorization: Basic` |
//!
//! [`DECLINED_NUMBER`] is declined, every other valid card number is approved.

#![expect(
    clippy::disallowed_methods,
    reason = "routes of the simulator are not part of the API, and its task ends when it is dropped"
)]

pub mod adyen;
pub mod braintree;
mod charge;
pub mod checkout;
mod listener;
pub mod stripe;
mod tls;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use axum::Router;
use axum::body::Body;
use http::{Request, StatusCode, header};
use tower::util::ServiceExt as _;

pub use self::charge::{Charge, Charges, DECLINED_NUMBER, Outcome};
use self::listener::Listener;
pub use self::tls::TestTls;

/// Hosts of all processors, the names of the simulator's certificate.
pub const HOSTS: [&str; 4] = [stripe::HOST, adyen::HOST, checkout::HOST, braintree::HOST];

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot listen on {address}: {reason}")]
    Listen {
        address: SocketAddr,
        reason: io::Error,
    },
    #[error("the certificate could not be created: {0}")]
    Certificate(#[from] rcgen::Error),
    #[error("TLS could not be configured: {0}")]
    Tls(#[from] tokio_rustls::rustls::Error),
    #[error("the private key could not be read")]
    PrivateKey,
    #[error("the TLS library has no SHA-256")]
    NoDigest,
    #[error("{path:?} could not be written: {reason}")]
    File { path: PathBuf, reason: io::Error },
}

/// A running simulator; dropping it stops it.
pub struct Simulator {
    pub address: SocketAddr,
    /// The CA that issued the simulator's certificate, in PEM.
    pub ca_certificate: String,
    /// What the processors have received.
    pub charges: Charges,
    task: tokio::task::JoinHandle<()>,
}

impl Simulator {
    /// Starts on a free port of the loopback interface.
    pub async fn start() -> Result<Self, Error> {
        let charges = Charges::default();
        let listener = Listener::bind().await?;
        let address = listener.address;
        let tls = TestTls::create(&HOSTS)?;
        let app = router(&charges);
        let task = tokio::spawn(listener.run(app, tls.acceptor));
        Ok(Self {
            address,
            ca_certificate: tls.ca_certificate,
            charges,
            task,
        })
    }
}

impl Drop for Simulator {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Dispatches by host. A host that no processor has gets a 421, as from a TLS front end.
fn router(charges: &Charges) -> Router {
    let processors = [
        (stripe::HOST, stripe::router(charges.clone())),
        (adyen::HOST, adyen::router(charges.clone())),
        (checkout::HOST, checkout::router(charges.clone())),
        (braintree::HOST, braintree::router(charges.clone())),
    ];
    Router::new().fallback(async move |request: Request<Body>| {
        let host = request.headers().get(header::HOST);
        let host = host.and_then(|host| host.to_str().ok()).unwrap_or_default();
        let name = host.split_once(':').map_or(host, |(name, _)| name);
        match processors.iter().find(|(host, _)| *host == name) {
            Some((_, processor)) => processor.clone().oneshot(request).await,
            None => Ok(axum::response::IntoResponse::into_response(
                StatusCode::MISDIRECTED_REQUEST,
            )),
        }
    })
}
