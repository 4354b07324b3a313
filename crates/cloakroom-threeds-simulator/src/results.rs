//! Results on their way to the 3DS Server: the RReq of a challenge or decoupled authentication.

use std::sync::Arc;
use std::time::Duration;

use cloakroom_emv3ds::{ErrorCode, MessageKind};
use http::{Request, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use crate::behaviour::{Answer, Challenge, Delivery, Ending, Page};
use crate::transaction::{Channel, Stage, Transaction, new_id};
use crate::vendor::is_kept_here;
use crate::wire::{self, Fields, put, put_some};
use crate::world::World;
use crate::{Certificates, Error, networks, tls};

/// A 3DS Server answers within three seconds.
const PATIENCE: Duration = Duration::from_secs(5);
/// The cardholder waits for so many attempts.
const ATTEMPTS: usize = 2;
/// A result is the only word about a challenge: a 3DS Server that is away or busy is told again
/// after the cardholder has gone on, with pauses that double.
const LATER_ATTEMPTS: usize = 6;
const RETRY_PAUSE: Duration = Duration::from_millis(300);
/// How long after the CRes a result comes that is to be late.
const LATENESS: Duration = Duration::from_secs(1);
const REPLY_BYTES_MAX: usize = 128 * 1024;
const REPLIES_MAX: usize = 20;

/// The `challengeCancel` of a challenge whose first CReq did not come.
pub(crate) const NOT_STARTED: &str = "05";

/// How an authentication ended, and why if the cardholder did not finish it.
#[derive(Clone, Copy)]
pub(crate) struct Outcome {
    pub(crate) ending: Ending,
    pub(crate) cancel: Option<&'static str>,
}

impl Outcome {
    pub(crate) const fn of(ending: Ending) -> Self {
        Self {
            ending,
            cancel: None,
        }
    }

    pub(crate) const fn failed(reason: &'static str, cancel: Option<&'static str>) -> Self {
        let ending = Ending {
            status: "N",
            reason: Some(reason),
        };
        Self { ending, cancel }
    }

    /// How a challenge ends if nobody makes a mistake.
    pub(crate) fn unattended(challenge: &Challenge) -> Self {
        match challenge.page {
            Page::Cancelled => Self::failed("01", Some("01")),
            _ => Self::of(challenge.ending),
        }
    }

    /// A browser learns only whether it went well.
    pub(crate) fn browser_status(&self) -> &'static str {
        match self.ending.status {
            "Y" | "A" => "Y",
            _ => "N",
        }
    }
}

/// Ends a transaction once, and delivers its result as its card has it. False if it had ended.
pub(crate) async fn conclude(
    world: &Arc<World>,
    transaction: &Arc<Transaction>,
    outcome: Outcome,
    stage: Stage,
) -> bool {
    let result = {
        let mut progress = transaction.progress();
        let is_over = match progress.stage {
            Stage::Ended(_) | Stage::TimedOut => true,
            // What was shown cannot end because nobody came to see it.
            Stage::Shown => outcome.cancel == Some(NOT_STARTED),
            Stage::Waiting => false,
        };
        if is_over {
            return false;
        }
        progress.stage = stage;
        let result = compose(transaction, outcome, progress.attempts);
        progress.result = Some(result.clone());
        result
    };
    let delivery = match &transaction.answer {
        Answer::Challenge(challenge) => challenge.delivery,
        _ => Delivery::ResultFirst,
    };
    match delivery {
        Delivery::ResultFirst | Delivery::ResultOnly => {
            deliver(world, transaction, result).await;
        }
        Delivery::WrongDirectoryId => {
            let mut wrong = result;
            put(&mut wrong, "dsTransID", new_id());
            deliver(world, transaction, wrong).await;
        }
        Delivery::ResultLate => {
            let (shared, transaction) = (Arc::clone(world), Arc::clone(transaction));
            world.later(async move {
                sleep(LATENESS).await;
                deliver(&shared, &transaction, result).await;
            });
        }
    }
    true
}

async fn deliver(world: &Arc<World>, transaction: &Arc<Transaction>, result: Fields) {
    let text = match wire::checked(MessageKind::RReq, &result) {
        Ok(text) => text,
        Err(fault) => {
            note(transaction, json!({"failure": fault.to_string()}));
            return;
        }
    };
    if is_kept_here(&transaction.results_url) {
        return;
    }
    for attempt in 1..=ATTEMPTS {
        if tell(world, transaction, &text).await {
            return;
        }
        if attempt < ATTEMPTS {
            sleep(RETRY_PAUSE).await;
        }
    }
    let (shared, transaction) = (Arc::clone(world), Arc::clone(transaction));
    world.later(async move {
        let mut pause = RETRY_PAUSE;
        for _ in 0..LATER_ATTEMPTS {
            pause *= 2;
            sleep(pause).await;
            if tell(&shared, &transaction, &text).await {
                return;
            }
        }
    });
}

/// Sends a result once; whether that settles it.
async fn tell(world: &World, transaction: &Transaction, text: &str) -> bool {
    let reply = world.send_result(transaction, text, true).await;
    let is_settled = is_settled(&reply);
    note(transaction, reply);
    is_settled
}

/// Whether a 3DS Server has said what it makes of a result, other than that it cannot just now.
fn is_settled(reply: &Value) -> bool {
    reply
        .get("message")
        .is_some_and(|message| message["errorCode"] != json!(ErrorCode::TransientFailure.code()))
}

/// Keeps what came back, for tests that ask.
fn note(transaction: &Transaction, reply: Value) {
    let mut progress = transaction.progress();
    if progress.replies.len() < REPLIES_MAX {
        progress.replies.push(reply);
    }
}

/// The RReq of an ended transaction.
pub(crate) fn compose(transaction: &Transaction, outcome: Outcome, attempts: u8) -> Fields {
    let status = outcome.ending.status;
    let is_decoupled = matches!(transaction.answer, Answer::Decoupled(_));
    let mut fields = Fields::new();
    put(&mut fields, "messageType", "RReq");
    put(&mut fields, "messageVersion", transaction.version.as_str());
    put(
        &mut fields,
        "messageCategory",
        transaction.category.as_str(),
    );
    put(
        &mut fields,
        "threeDSServerTransID",
        transaction.server_id.as_str(),
    );
    put(&mut fields, "acsTransID", transaction.acs_id.as_str());
    put(&mut fields, "dsTransID", transaction.directory_id.as_str());
    put_some(&mut fields, "sdkTransID", transaction.sdk_id.as_deref());
    put(&mut fields, "transStatus", status);
    put_some(&mut fields, "transStatusReason", outcome.ending.reason);
    if matches!(status, "Y" | "A") {
        put(
            &mut fields,
            "authenticationValue",
            transaction.authentication_value(),
        );
        put_some(
            &mut fields,
            "eci",
            networks::eci(transaction.network, status),
        );
    }
    if matches!(status, "Y" | "N") {
        put_challenge_type(&mut fields, transaction);
    }
    if !is_decoupled {
        put(&mut fields, "interactionCounter", format!("{attempts:02}"));
    }
    put_some(&mut fields, "challengeCancel", outcome.cancel);
    if transaction.channel == Channel::App {
        put(
            &mut fields,
            "acsRenderingType",
            rendering(&transaction.version),
        );
    }
    if transaction.wants_trust && transaction.version != "2.1.0" {
        let trust = if status == "Y" { "Y" } else { "N" };
        put_trust(&mut fields, &transaction.version, trust);
    }
    fields
}

/// `authenticationType`, which version 2.3.1 made a list of finer codes.
pub(crate) fn put_challenge_type(fields: &mut Fields, transaction: &Transaction) {
    let kind = match &transaction.answer {
        Answer::Challenge(challenge) => challenge.kind,
        _ => "04",
    };
    if transaction.version != "2.3.1" {
        return put(fields, "authenticationType", kind);
    }
    let finer = match kind {
        "03" => "09",
        "04" => "12",
        same => same,
    };
    put(fields, "authenticationMethod", json!([finer]));
}

pub(crate) fn put_trust(fields: &mut Fields, version: &str, status: &str) {
    let list = if version == "2.3.1" { "trust" } else { "white" };
    put(fields, &format!("{list}ListStatus"), status);
    put(fields, &format!("{list}ListStatusSource"), "03");
}

/// How an app is to show the challenge.
pub(crate) fn rendering(version: &str) -> Value {
    match version {
        "2.3.1" => {
            json!({"acsInterface": "01", "acsUiTemplate": "01", "deviceUserInterfaceMode": "01"})
        }
        _ => json!({"acsInterface": "01", "acsUiTemplate": "01"}),
    }
}

type Connection = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// Sends to the 3DS Server, with the certificate that it demands or, to be refused, without.
pub(crate) struct Messenger {
    certified: Connection,
    anonymous: Connection,
}

impl Messenger {
    pub(crate) fn new(certificates: &Certificates) -> Result<Self, Error> {
        let connection = |shows| -> Result<Connection, Error> {
            let connector = HttpsConnectorBuilder::new()
                .with_tls_config(tls::client(certificates, shows)?)
                .https_only()
                .enable_http1()
                .build();
            let mut builder = Client::builder(TokioExecutor::new());
            // Results are rare; a kept connection would only be found closed.
            Ok(builder.pool_max_idle_per_host(0).build(connector))
        };
        Ok(Self {
            certified: connection(true)?,
            anonymous: connection(false)?,
        })
    }

    async fn post(&self, url: &str, body: &str, certified: bool) -> Result<(u16, Bytes), String> {
        let request = Request::post(url)
            .header(header::CONTENT_TYPE, "application/json; charset=utf-8")
            .body(Full::from(body.to_owned()))
            .map_err(|_| "the address of the 3DS Server is not one".to_owned())?;
        let connection = if certified {
            &self.certified
        } else {
            &self.anonymous
        };
        let exchange = async {
            let response = connection
                .request(request)
                .await
                .map_err(|error| error.to_string())?;
            let status = response.status().as_u16();
            let body = Limited::new(response.into_body(), REPLY_BYTES_MAX);
            let body = body.collect().await.map_err(|error| error.to_string())?;
            Ok((status, body.to_bytes()))
        };
        timeout(PATIENCE, exchange)
            .await
            .map_err(|_| "the 3DS Server did not answer in time".to_owned())?
    }
}

impl World {
    /// What came back: `{"status", "message"}`, or `{"failure"}` in words.
    pub(crate) async fn send_result(
        &self,
        transaction: &Transaction,
        text: &str,
        certified: bool,
    ) -> Value {
        self.count_sent("RReq");
        let reply = self
            .messenger
            .post(&transaction.results_url, text, certified);
        match reply.await {
            Ok((status, body)) => match wire::object(&body) {
                Some(message) => {
                    self.count_received(wire::text(&message, "messageType").unwrap_or("unknown"));
                    json!({"status": status, "message": message})
                }
                None => json!({"status": status, "failure": "the answer is no message"}),
            },
            Err(failure) => json!({"failure": failure}),
        }
    }
}
