//! Text format of the ledger: one line per erasure, and a last line with the signature.

use cloakroom_core::audit::EntityKind;
use cloakroom_core::keys::{self, AuditAuthority};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Erasure, Error};

/// Domain of the signature.
const SIGNATURE_DOMAIN: &[u8] = b"cloakroom erasures v2";

/// The erasures of a time span, oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ledger {
    pub from: Timestamp,
    pub to: Timestamp,
    pub erasures: Vec<Erasure>,
}

#[derive(Serialize, Deserialize)]
struct Line {
    at: Timestamp,
    tenant: Uuid,
    kind: String,
    id: String,
}

#[derive(Serialize, Deserialize)]
struct LastLine {
    from: Timestamp,
    to: Timestamp,
    erasures: usize,
    signature: String,
}

impl Ledger {
    /// Signs the ledger and writes it as text.
    pub async fn to_text(&self, authority: &AuditAuthority) -> Result<String, keys::Error> {
        let mut text = String::new();
        for erasure in &self.erasures {
            let line = Line {
                at: erasure.at,
                tenant: erasure.tenant,
                kind: erasure.kind.value().to_owned(),
                id: erasure.id.clone(),
            };
            push_line(&mut text, &line);
        }
        let span = [self.from.to_string(), self.to.to_string()];
        let signature = authority.sign(&message(&text, &span)).await?;
        let last = LastLine {
            from: self.from,
            to: self.to,
            erasures: self.erasures.len(),
            signature: hex::encode(signature),
        };
        push_line(&mut text, &last);
        Ok(text)
    }

    /// Parses a ledger and verifies its signature.
    pub fn parse(text: &str, authority: &AuditAuthority) -> Result<Self, Error> {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let (last, lines) = lines.split_last().ok_or(Error::Unreadable(1))?;
        let unreadable = Error::Unreadable(lines.len() + 1);
        let last: LastLine = serde_json::from_str(last).map_err(|_| unreadable)?;
        let signature = hex::decode(&last.signature).map_err(|_| Error::InvalidSignature)?;
        let span = [last.from.to_string(), last.to.to_string()];
        if !authority.verifies(&message(&lines.concat(), &span), &signature) {
            return Err(Error::InvalidSignature);
        }
        let erasures = lines
            .iter()
            .enumerate()
            .map(|(at, line)| erasure(line).ok_or(Error::Unreadable(at + 1)));
        Ok(Self {
            from: last.from,
            to: last.to,
            erasures: erasures.collect::<Result<_, _>>()?,
        })
    }
}

/// What is signed, each part with its length.
fn message(lines: &str, [from, to]: &[String; 2]) -> Vec<u8> {
    let mut message = SIGNATURE_DOMAIN.to_vec();
    for part in [lines, from, to] {
        message.extend((part.len() as u64).to_be_bytes());
        message.extend(part.as_bytes());
    }
    message
}

fn push_line(text: &mut String, line: &impl Serialize) {
    // Times, ids and strings can always be serialized.
    text.push_str(&serde_json::to_string(line).unwrap_or_default());
    text.push('\n');
}

fn erasure(line: &str) -> Option<Erasure> {
    let line: Line = serde_json::from_str(line).ok()?;
    let kind = EntityKind::ALL.iter().find(|it| it.value() == line.kind)?;
    Some(Erasure {
        at: line.at,
        tenant: line.tenant,
        kind: *kind,
        id: line.id,
    })
}
