//! The audit authority: the key pair that certifies the keys with which nodes sign the audit log.

use std::fmt::{self, Display, Formatter};
use std::pin::Pin;
use std::str::FromStr;
use std::sync::{Arc, PoisonError, RwLock};

use cloakroom_crypto::{
    AuditAuthority as Purpose, KeyPurpose, LogKey, LogPublicKey, LogSignature, verify_log_signature,
};
use cloakroom_platform::ids::TenantId;
use jiff::Timestamp;

use super::keyset::VAULT;
use super::load::{Loader, SystemKey};
use super::store::{self, KeyRow};
use super::{Error, State};

/// Start of the line of a proof that names a former public key, see [`AuthorityKey::former_line`].
const FORMER: &str = "former authority: ";
const UNTIL: &str = " until ";

/// A public key of the authority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuthorityKey {
    pub public_key: LogPublicKey,
    /// When its successor was activated; `None` for the active key.
    pub until: Option<Timestamp>,
}

impl AuthorityKey {
    /// A line of a signed statement.
    fn former_line(&self) -> Option<String> {
        let until = self.until?;
        let key = hex::encode(self.public_key);
        Some(format!("{FORMER}{key}{UNTIL}{until}\n"))
    }

    fn parse_line(line: &str) -> Option<Self> {
        let (key, until) = line.strip_prefix(FORMER)?.split_once(UNTIL)?;
        Some(Self {
            public_key: hex::decode(key).ok()?.try_into().ok()?,
            until: Some(until.parse().ok()?),
        })
    }

    /// The former keys that a signed statement names.
    pub fn parse_former(statement: &str) -> impl Iterator<Item = Self> + '_ {
        statement.lines().filter_map(Self::parse_line)
    }
}

impl From<LogPublicKey> for AuthorityKey {
    /// An active key.
    fn from(public_key: LogPublicKey) -> Self {
        Self {
            public_key,
            until: None,
        }
    }
}

/// As `cloakroom audit public-key` prints it: hexadecimal digits, and for a former key `@` and its end.
impl Display for AuthorityKey {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.public_key))?;
        match self.until {
            Some(until) => write!(f, "@{until}"),
            None => Ok(()),
        }
    }
}

impl FromStr for AuthorityKey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (key, until) = match text.split_once('@') {
            Some((key, until)) => (key, Some(until)),
            None => (text, None),
        };
        let key = hex::decode(key).ok().and_then(|key| key.try_into().ok());
        let until = until.map(str::parse).transpose();
        Ok(Self {
            public_key: key.ok_or("expected 64 hexadecimal digits")?,
            until: until.map_err(|_| "expected a time such as 2030-02-05T10:00:00Z after @")?,
        })
    }
}

type PublicKeys = Arc<Vec<AuthorityKey>>;

/// Signs with the authority's key, which is unwrapped for each signature and then dropped: a copy of a node's memory
/// contains it only if it is taken while the node certifies a key.
pub struct AuditAuthority {
    loader: Arc<Loader>,
    /// One for each version, the active one first, destroyed ones included: what they signed remains verifiable.
    public_keys: RwLock<PublicKeys>,
}

impl AuditAuthority {
    pub(super) async fn load(loader: &Arc<Loader>) -> Result<Self, Error> {
        let public_keys = RwLock::new(Arc::new(load_public_keys(loader).await?));
        Ok(Self {
            loader: loader.clone(),
            public_keys,
        })
    }

    /// Loads the public keys again.
    pub async fn reload(&self) -> Result<(), Error> {
        let public_keys = Arc::new(load_public_keys(&self.loader).await?);
        *self
            .public_keys
            .write()
            .unwrap_or_else(PoisonError::into_inner) = public_keys;
        Ok(())
    }

    /// The public keys by which the log can be verified, the active one first.
    pub fn public_keys(&self) -> PublicKeys {
        self.public_keys
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The active public key.
    pub fn public_key(&self) -> LogPublicKey {
        // The keyring never loads without one; the zero key verifies nothing.
        let first = self.public_keys().first().map(|key| key.public_key);
        first.unwrap_or_default()
    }

    /// The lines of a statement that name the former public keys and when they ended.
    pub fn former_lines(&self) -> String {
        let keys = self.public_keys();
        keys.iter().filter_map(AuthorityKey::former_line).collect()
    }

    /// Signs a message, which starts with a domain of its own.
    pub async fn sign(&self, message: &[u8]) -> Result<LogSignature, Error> {
        let unwrapping: Unwrapping<'_> = Box::pin(unwrap_active(&self.loader));
        Ok(unwrapping.await?.sign(message))
    }

    /// Whether any version of the authority's key signed the message.
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let keys = self.public_keys();
        keys.iter()
            .any(|key| verify_log_signature(&key.public_key, message, signature))
    }

    /// Whether the active version signed the message.
    pub fn is_signed_by_active(&self, message: &[u8], signature: &[u8]) -> bool {
        verify_log_signature(&self.public_key(), message, signature)
    }
}

/// Boxed, because every request that is logged may certify a key: its future would contain the calls of all providers.
type Unwrapping<'a> = Pin<Box<dyn Future<Output = Result<LogKey, Error>> + Send + 'a>>;

async fn unwrap_active(loader: &Loader) -> Result<LogKey, Error> {
    let mut rows = loader.list_system_keys().await?;
    rows.retain(|row| is_in(row, State::Active));
    let keys = loader.unwrap_system_keys::<Purpose>(&rows).await?;
    let active = keys.first().ok_or(Error::SystemKeysLost)?;
    LogKey::of_authority(&active.key).map_err(|_| Error::Seal)
}

fn is_in(row: &KeyRow, state: State) -> bool {
    row.purpose == KeyPurpose::AuditAuthority.number()
        && State::from_number(row.state) == Some(state)
}

async fn load_public_keys(loader: &Loader) -> Result<Vec<AuthorityKey>, Error> {
    let rows = loader.list_system_keys().await?;
    let unwrapped = loader.unwrap_system_keys::<Purpose>(&rows).await?;
    let mut keys = Vec::new();
    for SystemKey { version, key } in &unwrapped {
        let pair = LogKey::of_authority(key).map_err(|_| Error::Seal)?;
        keys.push(AuthorityKey {
            public_key: *pair.public_key(),
            until: end_of(&rows, *version),
        });
    }
    keys.extend(list_destroyed(loader, &rows, &keys).await?);
    Ok(keys)
}

/// When the version after this one was activated. The keyset authenticates that time.
fn end_of(rows: &[KeyRow], version: u32) -> Option<Timestamp> {
    let purpose = KeyPurpose::AuditAuthority.number();
    let successor = rows
        .iter()
        .find(|row| (row.purpose, row.version) == (purpose, version + 1));
    successor?.activated_at
}

/// The public keys of destroyed versions, as the proof of the newest one states them, signed by a later version.
async fn list_destroyed(
    loader: &Loader,
    rows: &[KeyRow],
    usable: &[AuthorityKey],
) -> Result<Vec<AuthorityKey>, Error> {
    let destroyed = rows.iter().filter(|row| is_in(row, State::Destroyed));
    let Some(version) = destroyed.map(|row| row.version).max() else {
        return Ok(Vec::new());
    };
    let purpose = KeyPurpose::AuditAuthority;
    let key = (VAULT, purpose, version);
    let proof = store::find_proof(&loader.db, key).await?;
    let heading = proof_heading(&loader.environment, key);
    let proof = proof.filter(|(statement, signature)| {
        statement.starts_with(&heading)
            && usable
                .iter()
                .any(|key| verify_log_signature(&key.public_key, statement.as_bytes(), signature))
    });
    let Some((statement, _)) = proof else {
        tracing::error!(
            error.kind = "altered_proof",
            "the proof of a destroyed audit authority is missing or was changed outside the vault; what it certified \
             does not verify"
        );
        return Ok(Vec::new());
    };
    let former = AuthorityKey::parse_former(&statement);
    let known = |key: &AuthorityKey| usable.iter().any(|it| it.public_key == key.public_key);
    Ok(former.filter(|key| !known(key)).collect())
}

/// The first lines of the signed statement that a version of a key is unused, which identify the key.
pub fn proof_heading(
    environment: &str,
    (owner, purpose, version): (TenantId, KeyPurpose, u32),
) -> String {
    format!(
        "cloakroom key proof v1\nenvironment: {environment}\ntenant: {}\npurpose: {}\nversion: {version}\n",
        owner.uuid,
        purpose.name(),
    )
}
