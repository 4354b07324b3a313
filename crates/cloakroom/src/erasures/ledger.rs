//! The ledger as text: a line for each erasure, and a last one with the signature of them all.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Erasure, Error};
use crate::audit::EntityKind;
use crate::keys::AuditKey;

/// What the signature is about, so that it can be taken for nothing else.
const LABEL: &str = "erasures.v1";

/// What was erased in a span of time, oldest first.
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
        let signature = key.authenticate(LABEL, &parts(&text, &span));
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

    /// Reads a ledger that this vault wrote, whole.
    pub fn parse(text: &str, key: &AuditKey) -> Result<Self, Error> {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let (last, lines) = lines.split_last().ok_or(Error::Unreadable(1))?;
        let unreadable = Error::Unreadable(lines.len() + 1);
        let last: LastLine = serde_json::from_str(last).map_err(|_| unreadable)?;
        let signature = hex::decode(&last.signature).map_err(|_| Error::NotGenuine)?;
        let span = [last.from.to_string(), last.to.to_string()];
        if !key.verifies(LABEL, &parts(&lines.concat(), &span), &signature) {
            return Err(Error::NotGenuine);
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
