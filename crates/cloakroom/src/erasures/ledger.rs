//! Text format of the ledger: one line per erasure, and a last line with the signature.

use cloakroom_core::audit::EntityKind;
use cloakroom_core::keys::AuditKey;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Erasure, Error};

/// Domain of the signature.
const SIGNATURE_DOMAIN: &str = "erasures.v1";

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
    pub fn to_text(&self, key: &AuditKey) -> Result<String, serde_json::Error> {
        let mut text = String::new();
        for erasure in &self.erasures {
            let line = Line {
                at: erasure.at,
                tenant: erasure.tenant,
                kind: erasure.kind.value().to_owned(),
                id: erasure.id.clone(),
            };
            text.push_str(&serde_json::to_string(&line)?);
            text.push('\n');
        }
        let span = [self.from.to_string(), self.to.to_string()];
        let signature = key.authenticate(SIGNATURE_DOMAIN, &parts(&text, &span));
        let last = LastLine {
            from: self.from,
            to: self.to,
            erasures: self.erasures.len(),
            signature: hex::encode(signature),
        };
        text.push_str(&serde_json::to_string(&last)?);
        text.push('\n');
        Ok(text)
    }

    /// Parses a ledger and verifies its signature.
    pub fn parse(text: &str, key: &AuditKey) -> Result<Self, Error> {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let (last, lines) = lines.split_last().ok_or(Error::Unreadable(1))?;
        let unreadable = Error::Unreadable(lines.len() + 1);
        let last: LastLine = serde_json::from_str(last).map_err(|_| unreadable)?;
        let signature = hex::decode(&last.signature).map_err(|_| Error::InvalidSignature)?;
        let span = [last.from.to_string(), last.to.to_string()];
        if !key.verifies(SIGNATURE_DOMAIN, &parts(&lines.concat(), &span), &signature) {
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

fn parts<'a>(lines: &'a str, [from, to]: &'a [String; 2]) -> [&'a [u8]; 3] {
    [lines.as_bytes(), from.as_bytes(), to.as_bytes()]
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
