//! One share as a line of text, with a checksum against typing errors.

use cloakroom_crypto::{CheckValue, Sensitive, Share, content_digest};

use super::Rejection;

const PREFIX: &str = "cloakroom-share-v1";
const CHECKSUM_BYTES: usize = 4;

/// A share, and what identifies its root key.
pub struct ShareLine {
    pub(super) check_value: CheckValue,
    pub(super) threshold: u8,
    pub(super) share: Share,
}

impl ShareLine {
    pub(super) fn new(check_value: CheckValue, threshold: u8, share: Share) -> Self {
        Self {
            check_value,
            threshold,
            share,
        }
    }

    pub(super) fn to_text(&self) -> Sensitive<String> {
        let values = Sensitive::new(hex::encode(self.share.expose()));
        let body = Sensitive::new(format!(
            "{PREFIX} {} {} {} {}",
            hex::encode(self.check_value.as_bytes()),
            self.threshold,
            self.share.number(),
            values.expose()
        ));
        let checksum = checksum(body.expose());
        Sensitive::new(format!("{} {checksum}", body.expose()))
    }

    /// Reads a share. Spaces may be repeated, and letters may be upper case.
    pub fn parse(text: &str) -> Result<Self, Rejection> {
        let lower = Sensitive::new(text.to_ascii_lowercase());
        let words: Vec<&str> = lower.expose().split_whitespace().collect();
        let [PREFIX, check_value, threshold, number, values, written] = words[..] else {
            return Err(Rejection::NotAShare);
        };
        let body = Sensitive::new(words[..5].join(" "));
        if checksum(body.expose()) != written {
            return Err(Rejection::Checksum);
        }
        let check_value = hex::decode(check_value).map_err(|_| Rejection::NotAShare)?;
        let check_value: [u8; 8] = check_value.try_into().map_err(|_| Rejection::NotAShare)?;
        let values = hex::decode(values).map_err(|_| Rejection::NotAShare)?;
        let number = number.parse().map_err(|_| Rejection::NotAShare)?;
        let share = Share::new(number, Sensitive::new(values));
        Ok(Self {
            check_value: CheckValue::from(check_value),
            threshold: threshold.parse().map_err(|_| Rejection::NotAShare)?,
            share: share.map_err(|_| Rejection::NotAShare)?,
        })
    }
}

fn checksum(body: &str) -> String {
    hex::encode(&content_digest(body.as_bytes())[..CHECKSUM_BYTES])
}
