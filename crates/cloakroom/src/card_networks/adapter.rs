//! The seam in front of everybody who can be asked about a card.

use cloakroom_emv3ds::{AReq, ARes, CardRange, Message, MessageKind, RReq, Version, read, write};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::directory::Directory;
use super::vendor::Vendor;
use super::{Network, Trouble};

/// No answer to one authentication is longer.
pub(super) const ANSWER_MAX: usize = 128 * 1024;

/// Who is asked about cards.
pub enum Adapter {
    /// The networks themselves.
    Directories(Vec<Directory>),
    /// A certified 3DS Server of somebody else.
    Vendor(Box<Vendor>),
}

/// What is known of a card before anything is authenticated.
#[derive(Clone, Debug)]
pub struct Found {
    /// The id of the transaction, and so of the session.
    pub id: Uuid,
    /// Every network that knows the card, in the order of the configuration.
    pub offers: Vec<Offer>,
}

/// What one network offers for a card.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Offer {
    pub network: Network,
    pub range: CardRange,
    /// Until when whoever told it remembers having told it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<Timestamp>,
}

impl Offer {
    /// What we and both sides of it speak, ascending.
    pub fn versions(&self, ours: &[Version]) -> Vec<Version> {
        self.range.common_versions(ours)
    }

    /// Whether what it says makes sense.
    pub fn is_sound(&self) -> bool {
        self.range.acs.is_sound() && self.range.directory_server.is_sound()
    }
}

impl Adapter {
    /// Whether somebody outside is asked already when a card is looked up.
    pub fn tells_others(&self) -> bool {
        matches!(self, Self::Vendor(_))
    }

    /// Asks which networks know a card. A network that knows nothing of it is not among them.
    pub async fn look_up(
        &self,
        number: &str,
        proposed: Uuid,
        now: Timestamp,
    ) -> Result<Found, Trouble> {
        match self {
            Self::Directories(directories) => {
                let offers: Vec<Offer> = directories
                    .iter()
                    .filter_map(|one| one.offer(number))
                    .collect();
                if offers.is_empty() && !directories.iter().all(Directory::is_known) {
                    return Err(Trouble::not_known_yet());
                }
                Ok(Found {
                    id: proposed,
                    offers,
                })
            }
            Self::Vendor(vendor) => vendor.look_up(number, now).await,
        }
    }

    /// Asks a network, and through it the issuer, to authenticate. Never asked twice by itself.
    pub async fn authenticate(&self, network: Network, request: &AReq) -> Result<ARes, Trouble> {
        let text = write(&Message::AReq(Box::new(request.clone())))
            .map_err(|fault| Trouble::bad_question(&fault))?;
        let answer = match self {
            Self::Directories(directories) => {
                let directory = directories.iter().find(|one| one.network() == network);
                let directory = directory.ok_or_else(Trouble::not_supported)?;
                directory.ask(text).await?
            }
            Self::Vendor(vendor) => vendor.authenticate(text).await?,
        };
        let answer = read(
            &answer,
            &[MessageKind::ARes],
            std::slice::from_ref(&request.message_version),
        );
        match answer.map_err(|fault| Trouble::bad_answer(&fault))? {
            Message::ARes(answer) => {
                answer
                    .answers(request)
                    .map_err(|fault| Trouble::bad_answer(&fault))?;
                Ok(*answer)
            }
            Message::Erro(erro) => Err(Trouble::told(&erro)),
            _ => Err(Trouble::cut_off()),
        }
    }

    /// Asks what became of a challenge. Nothing for directory servers, which tell it by themselves.
    pub async fn result(&self, session: Uuid) -> Result<Option<RReq>, Trouble> {
        match self {
            Self::Directories(_) => Ok(None),
            Self::Vendor(vendor) => vendor.result(session).await,
        }
    }

    /// What the network calls the operator of this 3DS Server.
    pub fn operator_id(&self, network: Network) -> Option<&str> {
        self.directory(network).and_then(Directory::operator_id)
    }

    /// The directory server of a network, if it is asked directly.
    pub fn directory(&self, network: Network) -> Option<&Directory> {
        self.directories()
            .iter()
            .find(|one| one.network() == network)
    }

    pub fn directories(&self) -> &[Directory] {
        match self {
            Self::Directories(directories) => directories,
            Self::Vendor(_) => &[],
        }
    }
}
