//! The former public keys of the audit authority, as an export states them.

use cloakroom_crypto::{LogSignature, verify_log_signature};

use crate::audit::Audit;
use crate::keys::{AuthorityKey, Error};

const HEADING: &str = "cloakroom audit authorities v1\n";
const ACTIVE: &str = "active authority: ";

/// A statement of the active authority about those before it. It is the first record of an export.
#[derive(Clone, Debug)]
pub struct StatedAuthorities {
    pub statement: String,
    pub signature: LogSignature,
}

impl StatedAuthorities {
    /// States the former authorities; `None` if there are none.
    pub(super) async fn of(audit: &Audit) -> Result<Option<Self>, Error> {
        let authority = audit.writers.chains.authority();
        let former = authority.former_lines();
        if former.is_empty() {
            return Ok(None);
        }
        let active = hex::encode(authority.public_key());
        let environment = &audit.environment;
        let statement = format!("{HEADING}environment: {environment}\n{ACTIVE}{active}\n{former}");
        let signature = authority.sign(statement.as_bytes()).await?;
        Ok(Some(Self {
            statement,
            signature,
        }))
    }

    /// Adds the former authorities, if the one that states them is trusted without an end. A statement of another one is
    /// ignored: what only those certified that it names does not verify.
    pub(super) fn extend(&self, trusted: &mut Vec<AuthorityKey>) {
        let statement = self.statement.as_bytes();
        let is_stated = trusted.iter().any(|key| {
            let active = format!("\n{ACTIVE}{}\n", hex::encode(key.public_key));
            key.until.is_none()
                && self.statement.starts_with(HEADING)
                && self.statement.contains(&active)
                && verify_log_signature(&key.public_key, statement, &self.signature)
        });
        if !is_stated {
            return;
        }
        for former in AuthorityKey::parse_former(&self.statement) {
            let mut known = trusted.iter_mut();
            match known.find(|key| key.public_key == former.public_key) {
                Some(known) => known.until = known.until.min(former.until).or(former.until),
                None => trusted.push(former),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use cloakroom_crypto::LogKey;

    use super::*;

    fn key(pair: &LogKey, until: Option<&str>) -> AuthorityKey {
        AuthorityKey {
            public_key: *pair.public_key(),
            until: until.map(|until| until.parse().unwrap()),
        }
    }

    #[test]
    fn only_a_trusted_authority_without_an_end_states_former_ones() {
        let (active, former) = (LogKey::generate().unwrap(), LogKey::generate().unwrap());
        let end = "2030-01-02T03:04:05Z";
        let statement = format!(
            "{HEADING}environment: test\n{ACTIVE}{}\nformer authority: {} until {end}\n",
            hex::encode(active.public_key()),
            hex::encode(former.public_key()),
        );
        let signed_by = |pair: &LogKey| StatedAuthorities {
            signature: pair.sign(statement.as_bytes()),
            statement: statement.clone(),
        };
        let extended = |stated: StatedAuthorities, trusted: &[AuthorityKey]| {
            let mut trusted = trusted.to_vec();
            stated.extend(&mut trusted);
            trusted
        };
        let both = [key(&active, None), key(&former, Some(end))];

        assert_eq!(extended(signed_by(&active), &both[..1]), both);
        // One that was named on the command line ends as well.
        let unlimited = [key(&active, None), key(&former, None)];
        assert_eq!(extended(signed_by(&active), &unlimited), both);
        for (stated, trusted) in [
            (signed_by(&former), &both[..1]),
            (signed_by(&former), &both[..]),
            (signed_by(&former), &[key(&former, None)]),
            (signed_by(&active), &[key(&active, Some(end))]),
        ] {
            assert_eq!(extended(stated, trusted), trusted);
        }
    }
}
