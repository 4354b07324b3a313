//! A certified 3DS Server of somebody else, asked with the names of the protocol: `/preauth` for what is
//! known of a card, `/auth` for an authentication, `/postauth` for the result of a challenge.

use std::time::Duration;

use cloakroom_emv3ds::{Announced, CardRange, Erro, Message, MessageKind, RReq, Span, read};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use super::adapter::ANSWER_MAX;
use super::line::{Bounds, Line};
use super::{Found, Identity, Network, Offer, Trouble};

/// How long the vendor remembers a card that it was asked about, with some time to spare.
const REMEMBERED: Duration = Duration::from_secs(75);

/// The vendor.
pub struct Vendor {
    identity: Identity,
    line: Line,
    bounds: Bounds,
}

/// What the vendor knows of a card.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CardRangeData {
    #[serde(rename = "threeDSServerTransID")]
    threeds_server_trans_id: Uuid,
    acs_start_protocol_version: Announced,
    acs_end_protocol_version: Announced,
    ds_start_protocol_version: Announced,
    ds_end_protocol_version: Announced,
    #[serde(rename = "threeDSMethodURL")]
    threeds_method_url: Option<String>,
    #[serde(default)]
    acs_info_ind: Vec<String>,
    scheme: String,
}

impl Vendor {
    pub(super) fn new(identity: Identity, line: Line, answer_timeout: Duration) -> Self {
        Self {
            identity,
            line,
            bounds: Bounds {
                time: answer_timeout,
                bytes: ANSWER_MAX,
            },
        }
    }

    pub(super) async fn look_up(&self, number: &str, now: Timestamp) -> Result<Found, Trouble> {
        let question = json!({"acctNumber": number}).to_string();
        let answer = self.line.ask("/preauth", question, self.bounds).await?;
        if let Some(erro) = self.erro(&answer) {
            return match erro.error_code.as_str() {
                "305" => Err(Trouble::not_supported()),
                _ => Err(Trouble::told(&erro)),
            };
        }
        let data: CardRangeData =
            serde_json::from_slice(&answer).map_err(|_| Trouble::cut_off())?;
        let network = Network::of_card_brand(&data.scheme.to_ascii_lowercase());
        let network = network.ok_or_else(Trouble::not_supported)?;
        let offer = Offer {
            network,
            range: CardRange {
                start: String::new(),
                end: String::new(),
                acs: Span {
                    start: data.acs_start_protocol_version,
                    end: data.acs_end_protocol_version,
                },
                directory_server: Span {
                    start: data.ds_start_protocol_version,
                    end: data.ds_end_protocol_version,
                },
                acs_information: data.acs_info_ind,
                method_url: data.threeds_method_url,
                acs_versions: Vec::new(),
            },
            until: now.checked_add(REMEMBERED).ok(),
        };
        Ok(Found {
            id: data.threeds_server_trans_id,
            offers: vec![offer],
        })
    }

    pub(super) async fn authenticate(&self, text: String) -> Result<Vec<u8>, Trouble> {
        self.line.ask("/auth", text, self.bounds).await
    }

    /// Nothing while the challenge goes on.
    pub(super) async fn result(&self, session: Uuid) -> Result<Option<RReq>, Trouble> {
        let question = json!({"threeDSServerTransID": session}).to_string();
        let answer = self.line.ask("/postauth", question, self.bounds).await?;
        if let Some(erro) = self.erro(&answer) {
            return match erro.error_code.as_str() {
                "301" | "305" => Ok(None),
                _ => Err(Trouble::told(&erro)),
            };
        }
        let answer = read(&answer, &[MessageKind::RReq], &self.identity.versions);
        match answer.map_err(|fault| Trouble::bad_answer(&fault))? {
            Message::RReq(result) => Ok(Some(*result)),
            _ => Err(Trouble::cut_off()),
        }
    }

    fn erro(&self, answer: &[u8]) -> Option<Erro> {
        match read(answer, &[], &self.identity.versions) {
            Ok(Message::Erro(erro)) => Some(erro),
            _ => None,
        }
    }
}
