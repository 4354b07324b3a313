//! Fault injection: tests select faults for the next messages of a type.

use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use serde::Deserialize;
use tokio::time::sleep;

use crate::listener::CloseConnection;

const FAULTS_MAX: usize = 64;
const STALL_SECONDS_MAX: u64 = 120;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct InjectedFault {
    /// Message type: `PReq`, `AReq`, or a vendor call.
    kind: String,
    /// All networks if absent.
    network: Option<String>,
    what: FaultKind,
    /// Duration of a stall.
    #[serde(default = "stall_seconds")]
    seconds: u64,
    /// The code of an Erro.
    code: Option<String>,
    /// Number of affected messages; unlimited if absent.
    times: Option<u32>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum FaultKind {
    Stall,
    Refuse,
    Garbage,
    #[serde(rename = "http-500")]
    Http500,
    Erro,
}

fn stall_seconds() -> u64 {
    30
}

#[derive(Default)]
pub(crate) struct InjectedFaults(Vec<InjectedFault>);

impl InjectedFaults {
    pub(crate) fn add(&mut self, fault: InjectedFault) {
        if self.0.len() < FAULTS_MAX {
            self.0.push(fault);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// The fault for a message, if any; counts down its `times`.
    pub(crate) fn take(&mut self, kind: &str, network: &str) -> Option<InjectedFault> {
        let applies = |fault: &InjectedFault| {
            fault.kind == kind && fault.network.as_deref().is_none_or(|name| name == network)
        };
        let at = self.0.iter().position(applies)?;
        let fault = self.0.get_mut(at)?;
        let taken = fault.clone();
        if let Some(times) = &mut fault.times {
            *times = times.saturating_sub(1);
            if *times == 0 {
                self.0.remove(at);
            }
        }
        Some(taken)
    }
}

/// The effect of a fault on the response.
pub(crate) enum Effect {
    Response(Response),
    /// An Erro with this code.
    Erro(String),
}

impl InjectedFault {
    pub(crate) async fn apply(self) -> Effect {
        match self.what {
            FaultKind::Stall => {
                sleep(Duration::from_secs(self.seconds.min(STALL_SECONDS_MAX))).await;
                Effect::Response(close_connection())
            }
            FaultKind::Refuse => Effect::Response(close_connection()),
            FaultKind::Garbage => Effect::Response("<html>not a message".into_response()),
            FaultKind::Http500 => {
                Effect::Response(StatusCode::INTERNAL_SERVER_ERROR.into_response())
            }
            FaultKind::Erro => Effect::Erro(self.code.unwrap_or_else(|| "403".to_owned())),
        }
    }
}

/// A response that closes the connection without sending anything.
pub(crate) fn close_connection() -> Response {
    let mut response = Response::new(Body::empty());
    response.extensions_mut().insert(CloseConnection);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_applies_to_its_message_type_and_ends_after_its_count() {
        let fault = r#"{"kind":"AReq","network":"visa","what":"http-500","times":2}"#;
        let mut faults = InjectedFaults::default();
        faults.add(serde_json::from_str(fault).unwrap());
        assert!(faults.take("PReq", "visa").is_none());
        assert!(faults.take("AReq", "jcb").is_none());
        assert!(faults.take("AReq", "visa").is_some());
        assert!(faults.take("AReq", "visa").is_some());
        assert!(faults.take("AReq", "visa").is_none());
    }
}
