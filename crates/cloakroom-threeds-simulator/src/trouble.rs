//! Trouble on request: what goes wrong with the next messages of a kind, so that the other side can
//! show how it bears it.

use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use serde::Deserialize;
use tokio::time::sleep;

use crate::listener::HangUp;

const PLANNED_MAX: usize = 64;
const STALL_SECONDS_MAX: u64 = 120;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Trouble {
    /// `PReq` or `AReq`.
    kind: String,
    /// All networks if absent.
    network: Option<String>,
    what: What,
    /// How long a stall lasts.
    #[serde(default = "stall_seconds")]
    seconds: u64,
    /// The code of an Erro.
    code: Option<String>,
    /// For how many messages; for all that follow if absent.
    times: Option<u32>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum What {
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
pub(crate) struct Troubles(Vec<Trouble>);

impl Troubles {
    pub(crate) fn plan(&mut self, trouble: Trouble) {
        if self.0.len() < PLANNED_MAX {
            self.0.push(trouble);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// What is to go wrong with this message, if anything.
    pub(crate) fn take(&mut self, kind: &str, network: &str) -> Option<Trouble> {
        let concerns = |trouble: &Trouble| {
            trouble.kind == kind
                && trouble
                    .network
                    .as_deref()
                    .is_none_or(|name| name == network)
        };
        let at = self.0.iter().position(concerns)?;
        let trouble = self.0.get_mut(at)?;
        let taken = trouble.clone();
        if let Some(times) = &mut trouble.times {
            *times = times.saturating_sub(1);
            if *times == 0 {
                self.0.remove(at);
            }
        }
        Some(taken)
    }
}

/// What trouble makes of an answer.
pub(crate) enum Effect {
    Response(Response),
    /// An Erro with this code.
    Erro(String),
}

impl Trouble {
    pub(crate) async fn happen(self) -> Effect {
        match self.what {
            What::Stall => {
                sleep(Duration::from_secs(self.seconds.min(STALL_SECONDS_MAX))).await;
                Effect::Response(hang_up())
            }
            What::Refuse => Effect::Response(hang_up()),
            What::Garbage => Effect::Response("<html>no message".into_response()),
            What::Http500 => Effect::Response(StatusCode::INTERNAL_SERVER_ERROR.into_response()),
            What::Erro => Effect::Erro(self.code.unwrap_or_else(|| "403".to_owned())),
        }
    }
}

/// An answer that closes the connection without a word.
pub(crate) fn hang_up() -> Response {
    let mut response = Response::new(Body::empty());
    response.extensions_mut().insert(HangUp);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trouble_ends_after_its_times_and_concerns_its_kind_only() {
        let plan = r#"{"kind":"AReq","network":"visa","what":"http-500","times":2}"#;
        let mut troubles = Troubles::default();
        troubles.plan(serde_json::from_str(plan).unwrap());
        assert!(troubles.take("PReq", "visa").is_none());
        assert!(troubles.take("AReq", "jcb").is_none());
        assert!(troubles.take("AReq", "visa").is_some());
        assert!(troubles.take("AReq", "visa").is_some());
        assert!(troubles.take("AReq", "visa").is_none());
    }
}
