//! Collects shares until they restore the root key.

use cloakroom_crypto::{CheckValue, Key, RootKek, Share, combine_shares};

use super::ShareLine;

/// How many shares a sealed node has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    pub received: usize,
    /// Unknown before the first share.
    pub needed: Option<u8>,
}

impl std::fmt::Display for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.needed {
            Some(needed) => write!(f, "{} of {needed} shares received", self.received),
            None => f.write_str("no share received"),
        }
    }
}

/// Why a share is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    #[error("it is not a share; a share begins with cloakroom-share-v1")]
    NotAShare,
    #[error("its checksum does not match: it has a typing error")]
    Checksum,
    #[error("a share with this number was received already")]
    Repeated,
    #[error(
        "it belongs to another root key than the shares before it; to begin again, restart the node"
    )]
    OtherKey,
    #[error(
        "the shares do not restore the root key: one of them is wrong; all were discarded, submit them again"
    )]
    WrongShares,
}

/// The shares received so far. They are wiped when the key is restored and when this is dropped.
#[derive(Default)]
pub struct Collector {
    root: Option<(CheckValue, u8)>,
    shares: Vec<Share>,
}

impl Collector {
    pub fn progress(&self) -> Progress {
        Progress {
            received: self.shares.len(),
            needed: self.root.map(|(_, threshold)| threshold),
        }
    }

    /// Adds a share; returns the root key once there are enough and its check value matches.
    pub fn add(&mut self, line: &str) -> Result<Option<Key<RootKek>>, Rejection> {
        let line = ShareLine::parse(line)?;
        let root = (line.check_value, line.threshold);
        if self.root.is_some_and(|first| first != root) {
            return Err(Rejection::OtherKey);
        }
        let number = line.share.number();
        if self.shares.iter().any(|share| share.number() == number) {
            return Err(Rejection::Repeated);
        }
        self.root = Some(root);
        self.shares.push(line.share);
        if self.shares.len() < usize::from(line.threshold) {
            return Ok(None);
        }
        let shares = std::mem::take(&mut self.shares);
        match combine_shares(&shares) {
            Ok(key) if key.check_value() == line.check_value => Ok(Some(key)),
            _ => {
                self.root = None;
                Err(Rejection::WrongShares)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use cloakroom_crypto::{Sensitive, split_into_shares};

    use super::*;

    fn lines(root: &Key<RootKek>) -> Vec<Sensitive<String>> {
        let shares = split_into_shares(root, 2, 3).unwrap();
        let line = |share| ShareLine::new(root.check_value(), 2, share).to_text();
        shares.into_iter().map(line).collect()
    }

    #[test]
    fn two_of_three_shares_restore_the_key() {
        let root = Key::<RootKek>::generate();
        let lines = lines(&root);
        let mut collector = Collector::default();

        assert_eq!(collector.progress().to_string(), "no share received");
        assert!(collector.add(lines[2].expose()).unwrap().is_none());
        let progress = collector.progress().to_string();
        assert_eq!(progress, "1 of 2 shares received");
        let upper = lines[0].expose().to_ascii_uppercase();
        let restored = collector.add(&upper).unwrap().unwrap();

        assert_eq!(restored.check_value(), root.check_value());
    }

    #[test]
    fn wrong_and_repeated_shares_are_rejected_with_a_reason() {
        let root = Key::<RootKek>::generate();
        let good = lines(&root);
        let foreign = lines(&Key::generate());
        let mut collector = Collector::default();
        collector.add(good[0].expose()).unwrap();
        let mut mistyped = good[1].expose().clone().into_bytes();
        let position = mistyped.len() - 20;
        mistyped[position] = if mistyped[position] == b'0' {
            b'1'
        } else {
            b'0'
        };
        let mistyped = String::from_utf8(mistyped).unwrap();

        for (line, expected) in [
            ("hello", Rejection::NotAShare),
            (mistyped.as_str(), Rejection::Checksum),
            (good[0].expose().as_str(), Rejection::Repeated),
            (foreign[1].expose().as_str(), Rejection::OtherKey),
        ] {
            assert_eq!(collector.add(line).err(), Some(expected));
        }
        assert!(collector.add(good[1].expose()).unwrap().is_some());
    }

    /// A forged share with the right check value and checksum, but other values.
    #[test]
    fn shares_that_restore_another_key_are_discarded() {
        let root = Key::<RootKek>::generate();
        let good = lines(&root);
        let share = Share::new(2, Sensitive::new(vec![7; 32])).unwrap();
        let forged = ShareLine::new(root.check_value(), 2, share).to_text();
        let mut collector = Collector::default();
        collector.add(good[0].expose()).unwrap();

        let result = collector.add(forged.expose()).err();

        assert_eq!(result, Some(Rejection::WrongShares));
        assert_eq!(collector.progress().received, 0);
        collector.add(good[0].expose()).unwrap();
        assert!(collector.add(good[2].expose()).unwrap().is_some());
    }
}
