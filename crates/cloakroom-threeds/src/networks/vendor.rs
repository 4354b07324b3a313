//! A vendor's certified 3DS Server: `/preauth` returns the card range, `/auth` authenticates, and
//! `/postauth` returns the result of a challenge.

use std::time::Duration;

use cloakroom_emv3ds::{Announced, CardRange, Erro, Message, MessageKind, RReq, Span, read};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use super::adapter::RESPONSE_MAX;
use super::client::{HttpsClient, Limits};
use super::{CardLookup, Identity, Network, NetworkFailure, NetworkRange};

/// How long a `/preauth` lookup can be authenticated at the vendor, with a safety margin.
const VENDOR_LOOKUP_TTL: Duration = Duration::from_secs(75);

pub struct Vendor {
    identity: Identity,
    client: HttpsClient,
    limits: Limits,
}

/// Response of `/preauth`.
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
    pub(super) fn new(identity: Identity, client: HttpsClient, answer_timeout: Duration) -> Self {
        Self {
            identity,
            client,
            limits: Limits {
                timeout: answer_timeout,
                max_bytes: RESPONSE_MAX,
            },
        }
    }

    pub(super) async fn look_up(
        &self,
        number: &str,
        now: Timestamp,
    ) -> Result<CardLookup, NetworkFailure> {
        let request = json!({"acctNumber": number}).to_string();
        let response = self.client.post("/preauth", request, self.limits).await?;
        if let Some(erro) = self.erro(&response) {
            return match erro.error_code.as_str() {
                "305" => Err(NetworkFailure::not_supported()),
                _ => Err(NetworkFailure::from_erro(&erro)),
            };
        }
        let data: CardRangeData =
            serde_json::from_slice(&response).map_err(|_| NetworkFailure::connection_lost())?;
        let network = Network::of_card_brand(&data.scheme.to_ascii_lowercase());
        let network = network.ok_or_else(NetworkFailure::not_supported)?;
        let network_range = NetworkRange {
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
            until: now.checked_add(VENDOR_LOOKUP_TTL).ok(),
        };
        Ok(CardLookup {
            id: data.threeds_server_trans_id,
            network_ranges: vec![network_range],
        })
    }

    pub(super) async fn authenticate(&self, text: String) -> Result<Vec<u8>, NetworkFailure> {
        self.client.post("/auth", text, self.limits).await
    }

    /// Returns `None` while the challenge is pending.
    pub(super) async fn fetch_result(&self, session: Uuid) -> Result<Option<RReq>, NetworkFailure> {
        let request = json!({"threeDSServerTransID": session}).to_string();
        let response = self.client.post("/postauth", request, self.limits).await?;
        if let Some(erro) = self.erro(&response) {
            return match erro.error_code.as_str() {
                "301" | "305" => Ok(None),
                _ => Err(NetworkFailure::from_erro(&erro)),
            };
        }
        let response = read(&response, &[MessageKind::RReq], &self.identity.versions);
        match response.map_err(|fault| NetworkFailure::invalid_response(&fault))? {
            Message::RReq(result) => Ok(Some(*result)),
            _ => Err(NetworkFailure::connection_lost()),
        }
    }

    fn erro(&self, response: &[u8]) -> Option<Erro> {
        match read(response, &[], &self.identity.versions) {
            Ok(Message::Erro(erro)) => Some(erro),
            _ => None,
        }
    }
}
