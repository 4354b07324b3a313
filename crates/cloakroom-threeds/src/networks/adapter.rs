//! The interface to card networks, either directly or through a vendor's 3DS Server.

use cloakroom_emv3ds::{AReq, ARes, CardRange, Message, MessageKind, RReq, Version, read, write};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::directory::DirectoryServer;
use super::vendor::Vendor;
use super::{Network, NetworkFailure};

/// Maximum size of a response to a single message, in bytes.
pub(super) const RESPONSE_MAX: usize = 128 * 1024;

/// Route to the card networks.
pub enum Adapter {
    /// Directory servers of the networks, called directly.
    Directories(Vec<DirectoryServer>),
    /// A vendor's certified 3DS Server.
    Vendor(Box<Vendor>),
}

/// Networks that support 3-D Secure for a card, before any authentication.
#[derive(Clone, Debug)]
pub struct CardLookup {
    /// The 3DS Server transaction ID, which is also the session ID.
    pub id: Uuid,
    /// Networks with a card range for the card, in configuration order.
    pub network_ranges: Vec<NetworkRange>,
}

/// The card range of one network that contains a card.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NetworkRange {
    pub network: Network,
    pub range: CardRange,
    /// End of the vendor's lookup; a later authentication fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

impl NetworkRange {
    /// Protocol versions supported by this 3DS Server, the DS and the ACS, ascending.
    pub fn versions(&self, ours: &[Version]) -> Vec<Version> {
        self.range.common_versions(ours)
    }

    /// Whether the version ranges of ACS and DS are valid.
    pub fn is_valid(&self) -> bool {
        self.range.acs.is_sound() && self.range.directory_server.is_sound()
    }
}

impl Adapter {
    /// Whether a lookup sends the card number to a third party.
    pub fn sends_card_number_on_lookup(&self) -> bool {
        matches!(self, Self::Vendor(_))
    }

    /// Returns the networks that have a card range for a card.
    pub async fn look_up(
        &self,
        number: &str,
        proposed: Uuid,
        now: Timestamp,
    ) -> Result<CardLookup, NetworkFailure> {
        match self {
            Self::Directories(directories) => {
                let network_ranges: Vec<NetworkRange> = directories
                    .iter()
                    .filter_map(|one| one.find_range(number))
                    .collect();
                if network_ranges.is_empty() && !directories.iter().all(DirectoryServer::has_ranges)
                {
                    return Err(NetworkFailure::ranges_not_loaded());
                }
                Ok(CardLookup {
                    id: proposed,
                    network_ranges,
                })
            }
            Self::Vendor(vendor) => vendor.look_up(number, now).await,
        }
    }

    /// Sends an AReq and returns the validated ARes. Never retries.
    pub async fn authenticate(
        &self,
        network: Network,
        request: &AReq,
    ) -> Result<ARes, NetworkFailure> {
        let text = write(&Message::AReq(Box::new(request.clone())))
            .map_err(|fault| NetworkFailure::invalid_request(&fault))?;
        let response = match self {
            Self::Directories(directories) => {
                let directory = directories.iter().find(|one| one.network() == network);
                let directory = directory.ok_or_else(NetworkFailure::not_supported)?;
                directory.send(text).await?
            }
            Self::Vendor(vendor) => vendor.authenticate(text).await?,
        };
        let response = read(
            &response,
            &[MessageKind::ARes],
            std::slice::from_ref(&request.message_version),
        );
        match response.map_err(|fault| NetworkFailure::invalid_response(&fault))? {
            Message::ARes(response) => {
                response
                    .answers(request)
                    .map_err(|fault| NetworkFailure::invalid_response(&fault))?;
                Ok(*response)
            }
            Message::Erro(erro) => Err(NetworkFailure::from_erro(&erro)),
            _ => Err(NetworkFailure::connection_lost()),
        }
    }

    /// Fetches the result of a challenge from a vendor. Returns `None` for directory servers, which send an RReq.
    pub async fn fetch_result(&self, session: Uuid) -> Result<Option<RReq>, NetworkFailure> {
        match self {
            Self::Directories(_) => Ok(None),
            Self::Vendor(vendor) => vendor.fetch_result(session).await,
        }
    }

    /// The 3DS Server operator ID that the network assigned.
    pub fn operator_id(&self, network: Network) -> Option<&str> {
        self.directory(network)
            .and_then(DirectoryServer::operator_id)
    }

    /// The directory server of a network, if it is called directly.
    pub fn directory(&self, network: Network) -> Option<&DirectoryServer> {
        self.directories()
            .iter()
            .find(|one| one.network() == network)
    }

    pub fn directories(&self) -> &[DirectoryServer] {
        match self {
            Self::Directories(directories) => directories,
            Self::Vendor(_) => &[],
        }
    }
}
